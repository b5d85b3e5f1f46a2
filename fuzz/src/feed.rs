//! Arbitrary capture files as replay feeds: for any file and options, a feed ends, times never
//! decrease, and every record is accounted for.
//!
//! The input is text with one option per line (`filter udp`), then a line `---`, then a file:
//! classic pcap or pcapng, plain or compressed with gzip, zstd or lz4.

use std::fs;
use std::io::Cursor;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use longwire_capture::CaptureReader;
use longwire_engine::models::FRAMING;
use longwire_engine::replay::Pace;
use longwire_engine::{Nanos, Speed};
use longwire_io::PortError;
use longwire_packet::alter::Alterations;
use longwire_packet::filter::Filter;
use longwire_runtime::Feed;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::capture::is_packed;
use super::{accepted, alter, parts, set};

/// Maximum rounds, and maximum frames of an endless feed.
const ROUNDS_MAX: u64 = 4;
const LIMIT_MAX: u64 = 5_000;

/// Timeout for a feed's next frame, in milliseconds; the file is small and on disk.
const TIMEOUT_MS: u16 = 20_000;

#[derive(Default)]
struct FeedInput {
    config: TraceConfig,
    /// Alterations of frames, if any.
    alter: Option<alter::AlterInput>,
    /// Whether the file is repeated or merged with itself.
    twice: bool,
    /// Whether to request the first frame's timestamp in advance.
    ask_first: bool,
    /// Maximum frames per call; 0 alternates between small numbers.
    burst: usize,
}

/// Checks a file with a set of options.
pub fn check(data: &[u8]) {
    let Some((text, capture)) = parts(data) else {
        return;
    };
    let mut wanted = FeedInput::default();
    text.lines().for_each(|line| read(&mut wanted, line));
    if wanted.config.rounds.is_none() && wanted.config.limit.is_none() {
        wanted.config.limit = Some(LIMIT_MAX);
    }
    let file = TempFile::new(capture);
    check_feed(wanted, &file.path, capture);
}

fn check_feed(wanted: FeedInput, path: &str, file: &[u8]) {
    let traces = if wanted.twice { 2 } else { 1 };
    let config = TraceConfig {
        traces: vec![path.to_owned(); traces],
        alterations: wanted.alter.map_or_else(Alterations::default, |wanted| {
            Alterations::new(wanted.options)
        }),
        ..wanted.config
    };
    let mut feed = match TraceFeed::open(config.clone()) {
        Ok(feed) => feed,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let first = wanted
        .ask_first
        .then(|| feed.first_stamp(&AtomicBool::new(false)));
    let mut handed = FeedTotals::default();
    let (first, fault) = match first {
        Some(Err(error)) => (None, Some(error)),
        first => {
            let fault = drain(&mut feed, &config, wanted.burst, &mut handed);
            (first.and_then(Result::ok), fault)
        }
    };
    if let Some(first) = first {
        assert_eq!(first.is_some(), handed.frames > 0, "asked for the first");
    }
    let status = feed.status();
    assert!(fault.is_some() || status.fraction == Some(1.0));
    assert!(config.limit.is_none_or(|limit| {
        // An alteration may turn one frame into several.
        handed.frames <= limit || !config.alterations.is_nothing()
    }));
    check_counts(&feed, &config, &handed, fault.is_some(), file);
}

/// Checks that every record was counted once per round and trace: as sent, filtered out, outside
/// the window or too short.
fn check_counts(
    feed: &TraceFeed,
    config: &TraceConfig,
    handed: &FeedTotals,
    failed: bool,
    file: &[u8],
) {
    let counts = feed.status().counts;
    let count = |name| {
        let found = counts.iter().find(|(found, _)| *found == name);
        found.map_or(0, |(_, count)| *count)
    };
    if !config.alterations.is_nothing() {
        return;
    }
    let seen = handed.frames + count("filtered") + count("outside_window") + count("too_short");
    let (records, cut_short) = records(file, config.interface.as_deref());
    // A limit or fault may end a round early.
    let rounds = count("rounds") + u64::from(config.limit.is_some() || failed);
    let traces = config.traces.len() as u64;
    assert!(seen <= rounds * traces * records || is_packed(file));
    // A decoder with more bytes available detects a fault earlier.
    if config.limit.is_some() || config.until.is_some() || is_packed(file) && cut_short {
        return;
    }
    assert_eq!(failed, cut_short);
    if !failed {
        assert_eq!(seen, rounds * traces * records);
    } else if traces == 1 || !config.merge {
        // Of consecutive traces, only the first reaches the fault.
        assert_eq!(seen, records);
    } else {
        // Merged traces both reach the fault.
        assert!(seen >= records.min(1));
    }
}

/// Returns the number of records in a file or of one of its interfaces, and whether the file ends
/// with a fault.
fn records(file: &[u8], interface: Option<&str>) -> (u64, bool) {
    let Ok(mut reader) = CaptureReader::new("fuzz", Cursor::new(file.to_vec())) else {
        return (0, true);
    };
    if interface.is_some_and(|interface| reader.choose_interface(interface).is_err()) {
        return (0, true);
    }
    let mut records = 0;
    loop {
        match reader.next() {
            Ok(Some(_)) => records += 1,
            Ok(None) => return (records, false),
            Err(_) => return (records, true),
        }
    }
}

/// Frames returned by a feed.
#[derive(Default)]
struct FeedTotals {
    frames: u64,
    last: Nanos,
}

/// Takes all frames; returns the fault that ended the feed, if any.
fn drain(
    feed: &mut TraceFeed,
    config: &TraceConfig,
    burst: usize,
    handed: &mut FeedTotals,
) -> Option<PortError> {
    let (outputs, frame_max) = (feed.outputs(), feed.frame_max());
    let gap_max = gap_max(config);
    let mut turn = 0;
    loop {
        turn = turn % 7 + 1;
        let max = if burst == 0 { turn } else { burst };
        let before = handed.frames;
        let result = feed.feed(max, &mut |fed| {
            assert!(fed.due >= handed.last, "a time went back");
            let gap = fed.due.saturating_sub(handed.last);
            assert!(gap <= gap_max || handed.frames == 0, "{gap} > {gap_max}");
            assert!(fed.output < outputs && fed.bytes.len() <= frame_max);
            assert!(fed.bytes.len() as u64 <= u64::from(fed.wire_len));
            (handed.frames, handed.last) = (handed.frames + 1, fed.due);
        });
        let frames = handed.frames - before;
        assert!(frames <= max as u64, "more than asked for");
        match result {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let after = feed.feed(max, &mut |_| panic!("a frame after a fault"));
                assert!(after.is_ok_and(|after| after.end && after.frames == 0));
                return Some(error);
            }
            Ok(received) => {
                assert_eq!(received.frames as u64, frames);
                if received.end {
                    return None;
                }
                if received.frames < max {
                    wait(feed.readable());
                }
            }
        }
    }
}

/// Returns the maximum gap, which is known only if it depends solely on the trace's own times and
/// the cap.
fn gap_max(config: &TraceConfig) -> Nanos {
    let plain = config.pace == Pace::Trace(Speed::UNCHANGED) && config.rounds == Some(1);
    match config.gap_cap {
        Some(cap) if plain && config.traces.len() == 1 => cap,
        _ => Nanos::MAX,
    }
}

/// Waits for more frames after a feed returned fewer than requested.
fn wait(readable: Option<BorrowedFd<'_>>) {
    let readable = readable.expect("a feed with later frames has a descriptor");
    let mut fds = [PollFd::new(readable, PollFlags::POLLIN)];
    let ready = poll(&mut fds, PollTimeout::from(TIMEOUT_MS));
    assert!(ready != Ok(0), "the feed waits for nothing");
}

/// Parses a line; an invalid value must produce an error message.
fn read(wanted: &mut FeedInput, line: &str) {
    let (name, value) = line.split_once(' ').unwrap_or((line, ""));
    let config = &mut wanted.config;
    match name {
        "speed" => pace(config, value.parse().map(Pace::Trace)),
        "packets" => pace(config, value.parse().map(Pace::Packets)),
        "bits" => {
            let framing = FRAMING.parse("ethernet").expect("a framing");
            let bits = value.parse().map(|rate| Pace::Bits { rate, framing });
            pace(config, bits);
        }
        "topspeed" => config.pace = Pace::TopSpeed,
        "gap-cap" => set(&mut config.gap_cap, value.parse()),
        "round-gap" => set(&mut config.round_gap, value.parse()),
        "rounds" if value == "forever" => config.rounds = None,
        "rounds" => config.rounds = value.parse().ok().map(|rounds: u64| rounds.min(ROUNDS_MAX)),
        "limit" => config.limit = value.parse().ok().map(|limit: u64| limit.min(LIMIT_MAX)),
        "from" => set(&mut config.from, value.parse()),
        "until" => set(&mut config.until, value.parse()),
        "filter" => set(&mut config.filter, Filter::parse(value)),
        "split" => set(&mut config.splitter, value.parse()),
        "alter" => alter::read(wanted.alter.get_or_insert_default(), value),
        "interface" => config.interface = Some(value.to_owned()),
        "twice" => wanted.twice = true,
        "merge" => (wanted.twice, config.merge) = (true, true),
        "ask-first" => wanted.ask_first = true,
        "burst" => wanted.burst = value.parse().unwrap_or(0).min(512),
        _ => {}
    }
}

fn pace<E: std::fmt::Display>(config: &mut TraceConfig, read: Result<Pace, E>) {
    config.pace = accepted(read).unwrap_or_default();
}

/// A temporary file, removed on drop; feeds open traces by name.
struct TempFile {
    path: String,
}

impl TempFile {
    fn new(bytes: &[u8]) -> TempFile {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("longwire-feed-{}-{number}", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        fs::write(&path, bytes).expect("room for a small file");
        TempFile {
            path: path.to_string_lossy().into_owned(),
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // The file may already be gone.
        let _ = fs::remove_file(&self.path);
    }
}
