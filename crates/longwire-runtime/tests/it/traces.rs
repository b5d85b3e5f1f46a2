//! Traces as feeds: selection, times and faults.
use longwire_testbed::support::Draws;
use longwire_testbed::support::frames::{PLAIN4, ethernet, transport, udp4};
use std::io::Write;
use std::sync::atomic::AtomicBool;

use longwire_engine::replay::Pace;
use longwire_engine::{Nanos, PacketRate};
use longwire_io::PortError;
use longwire_packet::alter::{AlterOptions, Alterations};
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;
use longwire_runtime::Feed;
use longwire_runtime::feed::trace::{Moment, TraceConfig, TraceFeed};

use crate::common::write_capture;

/// A frame's due time in microseconds, its number and its output.
type Frame = (u64, u32, usize);

/// Timestamp of the first frame in most of these traces.
const FIRST: u64 = 1_700_000_000_000_000_000;

fn scratch(name: &str) -> String {
    let dir = env!("CARGO_TARGET_TMPDIR");
    format!("{dir}/{}-{name}", std::process::id())
}

/// Returns a UDP frame from 10.0.0.1, or to it for odd numbers. The payload is the number.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let (mut from, mut to) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    if !number.is_multiple_of(2) {
        std::mem::swap(&mut from, &mut to);
    }
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(len.max(46) - 42, 0);
    udp4(from, to, (0x1000, 0x2000 | number as u16 & 0xff), &payload)
}

/// Writes a trace of frames with timestamps in microseconds after [`FIRST`].
fn trace_of(name: &str, frames: impl IntoIterator<Item = (u64, Vec<u8>)>) -> String {
    let path = scratch(name);
    let frames = frames.into_iter().map(|(micros, bytes)| {
        let len = bytes.len().max(60) as u32;
        (Nanos::from_nanos(FIRST + micros * 1_000), bytes, len)
    });
    write_capture(&path, frames);
    path
}

/// Like [`trace_of`], for numbered frames.
fn trace(name: &str, frames: &[(u64, u32)]) -> String {
    trace_of(name, frames.iter().map(|(at, n)| (*at, frame(*n, 60))))
}

fn config(traces: &[&String]) -> TraceConfig {
    TraceConfig {
        traces: traces.iter().map(|path| (*path).clone()).collect(),
        ..TraceConfig::default()
    }
}

/// Drains a feed with growing limits. Returns its frames and its error.
fn drain(feed: &mut TraceFeed) -> (Vec<Frame>, Option<PortError>) {
    let mut frames: Vec<Frame> = Vec::new();
    let (mut max, outputs) = (1, feed.outputs());
    loop {
        let (before, mut asked) = (frames.len(), 0);
        let received = feed.feed(max, &mut |fed| {
            asked += 1;
            assert!(fed.output < outputs && fed.bytes.len() >= 46);
            let number = u32::from_be_bytes(*fed.bytes[42..].first_chunk().unwrap());
            frames.push((fed.due.as_nanos() / 1_000, number, fed.output));
        });
        assert!(asked <= max);
        match received {
            Err(error) => {
                let again = feed.feed(9, &mut |_| panic!("nothing comes after an error"));
                assert!(again.is_ok_and(|received| received.end && received.frames == 0));
                return (frames, Some(error));
            }
            Ok(received) => {
                assert_eq!(received.frames, frames.len() - before);
                if received.end {
                    return (frames, None);
                }
            }
        }
        max = max % 7 + 1;
    }
}

/// Drains a feed without errors.
fn drain_all(feed: &mut TraceFeed) -> Vec<Frame> {
    let (frames, error) = drain(feed);
    assert!(error.is_none(), "{error:?}");
    frames
}

fn open(config: TraceConfig) -> TraceFeed {
    TraceFeed::open(config).unwrap()
}

fn first_stamp(feed: &mut TraceFeed) -> Option<Nanos> {
    feed.first_stamp(&AtomicBool::new(false)).unwrap()
}

fn frames_of(config: TraceConfig) -> Vec<Frame> {
    drain_all(&mut open(config))
}

fn count(feed: &TraceFeed, name: &str) -> u64 {
    let counts = feed.status().counts;
    counts.iter().find(|(n, _)| *n == name).unwrap().1
}

#[test]
fn a_trace_follows_another_or_is_merged_with_it() {
    let one = trace("one.pcap", &[(0, 0), (100, 1), (400, 2)]);
    let two = trace("two.pcapng", &[(50, 10), (100, 11), (150, 12)]);
    let after = [
        (0, 0, 0),
        (100, 1, 0),
        (400, 2, 0),
        (600, 10, 0),
        (650, 11, 0),
        (700, 12, 0),
    ];
    assert_eq!(frames_of(config(&[&one, &two])), after);
    let merge = TraceConfig {
        merge: true,
        ..config(&[&one, &two])
    };
    let merged = [
        (0, 0, 0),
        (50, 10, 0),
        (100, 1, 0),
        (100, 11, 0),
        (150, 12, 0),
        (400, 2, 0),
    ];
    assert_eq!(frames_of(merge.clone()), merged);
    let twice = frames_of(TraceConfig {
        rounds: Some(2),
        round_gap: Some(Nanos::from_micros(30)),
        ..merge
    });
    let second = merged.map(|(due, number, output)| (due + 430, number, output));
    assert_eq!(twice, [merged, second].concat());
    let thrice = frames_of(TraceConfig {
        rounds: Some(3),
        ..config(&[&one, &two])
    });
    let numbers: Vec<u32> = thrice.iter().map(|frame| frame.1).collect();
    assert_eq!(numbers, [0, 1, 2, 10, 11, 12].repeat(3));
    assert!(thrice.is_sorted());
}

#[test]
fn rounds_end_or_do_not() {
    let path = trace("rounds.pcap", &[(0, 0), (100, 1), (200, 2)]);
    let mut feed = open(TraceConfig {
        rounds: None,
        limit: Some(40_000),
        ..config(&[&path])
    });
    assert!(feed.status().fraction.unwrap() < 1.0);
    let frames = drain_all(&mut feed);
    assert_eq!(feed.status().fraction, Some(1.0));
    assert_eq!(frames.len(), 40_000);
    for (n, (due, number, _)) in frames.into_iter().enumerate() {
        // The mean gap separates two rounds.
        assert_eq!((due, number), (n as u64 * 100, n as u32 % 3));
    }
    // A filter that rejects everything does not loop forever.
    let none = TraceConfig {
        rounds: None,
        filter: Some(Filter::parse("tcp").unwrap()),
        ..config(&[&path])
    };
    let mut feed = open(none);
    assert_eq!(first_stamp(&mut feed), None);
    assert_eq!(drain(&mut feed).0, []);
    assert_eq!(count(&feed, "filtered"), 3);
    let never = TraceConfig {
        rounds: Some(0),
        ..config(&[&path])
    };
    for (config, word) in [
        (never, "at least 1"),
        (config(&[]), "no trace"),
        (config(&[&"-".into(), &"-".into()]), "once"),
    ] {
        let error = TraceFeed::open(config).err().unwrap().to_string();
        assert!(error.contains(word), "{error}");
    }
    let (ours, mut theirs) = std::io::pipe().unwrap();
    theirs.write_all(&std::fs::read(&path).unwrap()).unwrap();
    let pipe = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&ours));
    let repeated = TraceConfig {
        rounds: None,
        ..config(&[&pipe])
    };
    let error = TraceFeed::open(repeated).err().unwrap().to_string();
    assert!(error.contains("only once"), "{error}");
    // The refusal has consumed the pipe's data.
    theirs.write_all(&std::fs::read(&path).unwrap()).unwrap();
    drop(theirs);
    let mut feed = open(config(&[&pipe]));
    assert_eq!(feed.status().fraction, None);
    assert_eq!(first_stamp(&mut feed), Some(Nanos::from_nanos(FIRST)));
    assert_eq!(drain(&mut feed).0.len(), 3);
}

#[test]
fn only_what_is_wanted_is_sent() {
    let frames: Vec<(u64, u32)> = (0..100).map(|n| (u64::from(n) * 100_000, n)).collect();
    let path = trace("window.pcap", &frames);
    let window = TraceConfig {
        from: Some(Moment::After(Nanos::from_millis(1_000))),
        until: Some(Moment::At(Nanos::from_nanos(FIRST + 1_500_000_000))),
        ..config(&[&path])
    };
    let expected: Vec<Frame> = (10..15)
        .map(|n| (u64::from(n) * 100_000 - 1_000_000, n, 0))
        .collect();
    let mut feed = open(window.clone());
    for _ in 0..2 {
        // Reading the stamp does not consume the frame.
        let first = first_stamp(&mut feed);
        assert_eq!(first, Some(Nanos::from_nanos(FIRST + 1_000_000_000)));
    }
    assert_eq!(drain(&mut feed).0, expected);
    // No round reads to the end.
    assert!(count(&feed, "outside_window") < 40);
    let rounds = frames_of(TraceConfig {
        rounds: Some(3),
        ..window.clone()
    });
    assert_eq!(rounds.len(), 15);
    // Use one output per direction, then a single direction.
    let split = TraceConfig {
        splitter: Some("client=10.0.0.1".parse::<Splitter>().unwrap()),
        filter: Some(Filter::parse("udp").unwrap()),
        limit: Some(4),
        ..window
    };
    assert_eq!(open(split.clone()).outputs(), 2);
    let sides: Vec<usize> = frames_of(split).iter().map(|frame| frame.2).collect();
    assert_eq!(sides, [0, 1, 0, 1]);
}

#[test]
fn disorder_is_kept_and_counted_and_short_records_are_left_out() {
    let records = [(0, 60), (50, 0), (100, 60), (60, 60), (80, 13), (200, 60)];
    let records = records.map(|(micros, len)| (micros, frame(7, 60)[..len].to_vec()));
    let path = trace_of("odd.pcap", records);
    let mut feed = open(config(&[&path]));
    let frames = drain_all(&mut feed);
    let dues: Vec<u64> = frames.iter().map(|frame| frame.0).collect();
    assert_eq!(dues, [0, 100, 100, 200]);
    assert_eq!(count(&feed, "set_back"), 1);
    assert_eq!(count(&feed, "too_short"), 2);
    assert_eq!(feed.status().notes.len(), 2);
}

/// Appends a pcapng block. The length of `body` must be a multiple of four bytes.
fn block(file: &mut Vec<u8>, kind: u32, body: &[&[u8]]) {
    let body = body.concat();
    let len = (body.len() as u32 + 12).to_le_bytes();
    file.extend([&kind.to_le_bytes()[..], &len, &body, &len].concat());
}

#[test]
fn interfaces_are_chosen_and_others_are_counted() {
    let path = scratch("interfaces.pcapng");
    let mut file = Vec::new();
    block(
        &mut file,
        0x0a0d_0d0a,
        &[&0x1a2b_3c4du32.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8]],
    );
    // Two Ethernet interfaces, the second named east, and an IEEE 802.15.4 interface.
    block(&mut file, 1, &[&[1, 0, 0, 0, 0, 0, 0, 0]]);
    block(
        &mut file,
        1,
        &[&[1, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 4, 0], b"east", &[0; 4]],
    );
    block(&mut file, 1, &[&[195, 0, 0, 0, 0, 0, 0, 0]]);
    for (micros, interface) in [(0u32, 0u32), (10, 2), (20, 1), (30, 2), (40, 1)] {
        let data = frame(interface, 60);
        let fields = [interface, 0, micros, 60, 60]
            .map(u32::to_le_bytes)
            .concat();
        block(&mut file, 6, &[&fields, &data]);
    }
    std::fs::write(&path, &file).unwrap();
    let mut all = open(config(&[&path]));
    assert_eq!(drain_all(&mut all), [(0, 0, 0), (20, 1, 0), (40, 1, 0)]);
    let counts = ["other_link_type", "other_interface"].map(|name| count(&all, name));
    assert_eq!(counts, [2, 0]);
    let notes = all.status().notes;
    let skipped = "skipped 2 records: link type 195";
    assert!(notes[0].starts_with(skipped), "{notes:?}");
    let of = |interface: &str| TraceConfig {
        interface: Some(interface.to_owned()),
        rounds: Some(2),
        ..config(&[&path])
    };
    for chosen in ["east", "1"] {
        let mut east = open(of(chosen));
        // Rounds are one mean gap apart.
        let expected = [(0, 1, 0), (20, 1, 0), (40, 1, 0), (60, 1, 0)];
        assert_eq!(drain_all(&mut east), expected, "{chosen}");
        assert_eq!(count(&east, "other_interface"), 6);
    }
    let (_, error) = drain(&mut open(of("north")));
    let error = error.expect("no such interface").to_string();
    assert!(error.contains("no interface 'north'"), "{error}");
}

#[test]
fn a_trace_cut_anywhere_gives_the_frames_before_the_cut() {
    // A record has 76 bytes, and the file header 24.
    let frames: Vec<(u64, u32)> = (0..200).map(|n| (u64::from(n) * 10, n)).collect();
    let path = trace("cut.pcap", &frames);
    let whole = std::fs::read(&path).unwrap();
    let good = trace("good.pcap", &frames[..5]);
    let far = [24 + 76 * 150 + 3, 24 + 76 * 30 + 20];
    for cut in (24..=24 + 8 * 76).chain(far) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let before = (cut - 24) / 76;
        for (traces, first) in [(vec![&path], 0), (vec![&good, &path], 5)] {
            let (read, error) = drain(&mut open(config(&traces)));
            assert_eq!(read.len(), first + before, "cut at {cut}");
            let is_whole = (cut - 24) % 76 == 0;
            assert_eq!(error.is_none(), is_whole, "cut at {cut}");
            if is_whole {
                continue;
            }
            let error = error.unwrap().to_string();
            let place = format!("at byte {}:", 24 + 76 * before);
            assert!(error.contains(&place), "{error}");
            // No further round begins.
            let rounds = TraceConfig {
                rounds: Some(3),
                ..config(&traces)
            };
            let (again, error) = drain(&mut open(rounds));
            assert_eq!(again, read);
            assert!(error.unwrap().to_string().contains(&place));
        }
    }
}

/// Returns alterations that fit frames to an MTU.
fn fitting(mtu: u32) -> Alterations {
    Alterations::new(AlterOptions {
        mtu: Some(mtu),
        ..AlterOptions::default()
    })
}

#[test]
fn altered_frames_keep_their_positions() {
    let long = (0..20).map(|n| (u64::from(n), frame(n, 1_414)));
    let path = trace_of("long.pcap", long);
    let mut feed = open(TraceConfig {
        alterations: fitting(600),
        pace: Pace::Packets(PacketRate::from_packets_per_sec(1_000_000).unwrap()),
        rounds: Some(2),
        ..config(&[&path])
    });
    // Fragments that exceed a call's limit follow in the next call.
    let mut dues = Vec::new();
    let mut bytes = 0;
    loop {
        let mut taken = 0;
        let received = feed.feed(2, &mut |fed| {
            taken += 1;
            assert!(fed.bytes.len() <= 614);
            bytes += fed.bytes.len() - 34;
            dues.push(fed.due.as_nanos());
        });
        assert!(taken <= 2);
        if received.unwrap().end {
            break;
        }
    }
    assert_eq!(bytes, 40 * (1_414 - 34), "all payload, once");
    let expected = (0..dues.len() as u64).map(|n| n * 1_000);
    assert_eq!(dues, expected.collect::<Vec<_>>());
    assert_eq!(count(&feed, "mtu_fragmented"), 40);
}

/// Traces from senders with segmentation offload contain TCP super-packets.
#[test]
fn super_packets_are_cut_into_segments() {
    let segment = transport(4, 6, (4_000, 80), 0x18, &[7; 5_000]);
    let mut packet = ethernet(&[], 0x0800, &PLAIN4.packet(6, &segment));
    packet[16..18].fill(0);
    let path = trace_of("super.pcap", [(0, packet)]);
    let mut feed = open(TraceConfig {
        alterations: fitting(1_500),
        ..config(&[&path])
    });
    let mut payload: Vec<u8> = Vec::new();
    while !feed
        .feed(9, &mut |fed| {
            assert!(fed.bytes.len() <= 1_514);
            assert!(!longwire_packet::repair_checksums(&mut fed.bytes.to_vec()));
            payload.extend(&fed.bytes[54..]);
        })
        .unwrap()
        .end
    {}
    assert_eq!(payload, [7; 5_000]);
    let counts = ["mtu_segmented", "mtu_dropped"].map(|name| count(&feed, name));
    assert_eq!(counts, [1, 0]);
}

/// The report has a note on frames that were not sent.
#[test]
fn frames_that_cannot_be_anonymised_are_reported() {
    let lldp = ethernet(&[], 0x88cc, &[2; 46]);
    let path = trace_of("lldp.pcap", [(0, lldp), (0, frame(1, 60))]);
    let options = AlterOptions {
        anonymize: Some("11".repeat(32).parse().unwrap()),
        ..AlterOptions::default()
    };
    let mut feed = open(TraceConfig {
        alterations: Alterations::new(options),
        ..config(&[&path])
    });
    let frames = drain_all(&mut feed);
    assert_eq!(frames.len(), 1);
    assert_eq!(count(&feed, "unaltered_not_ip"), 1);
    assert_eq!(count(&feed, "unaltered_dropped"), 1);
    let notes = feed.status().notes;
    assert!(
        notes.iter().any(|note| note.starts_with("dropped 1 frame")),
        "{notes:?}"
    );
}

/// Options, times of frames in each trace, the length of a round, and its frames as (time, output).
type Case = (
    TraceConfig,
    &'static [&'static [u64]],
    u64,
    Vec<(u64, usize)>,
);

/// Returns cases in which each trace has a separate output.
fn apart() -> [Case; 4] {
    let paced = |pace| TraceConfig {
        pace,
        ..TraceConfig::default()
    };
    let faster = TraceConfig {
        round_gap: Some(Nanos::from_micros(7)),
        ..paced(Pace::Trace("2x".parse().unwrap()))
    };
    let limited = TraceConfig {
        limit: Some(11),
        ..paced(Pace::TopSpeed)
    };
    let per_second = "1mpps".parse().unwrap();
    // Equal timestamps keep the order of the traces. A round takes 1,200 us plus the mean gap.
    let merged = [
        (0, 1),
        (100, 0),
        (110, 0),
        (110, 1),
        (120, 0),
        (500, 1),
        (1_200, 1),
    ];
    let two: &[&[u64]] = &[&[0, 100, 110], &[50]];
    [
        (
            TraceConfig::default(),
            &[&[100, 110, 120], &[0, 110, 500, 1_200]],
            1_400,
            merged.into(),
        ),
        (
            faster,
            &[&[0, 100], &[40], &[60]],
            57,
            vec![(0, 0), (20, 1), (30, 2), (50, 0)],
        ),
        (
            paced(Pace::Packets(per_second)),
            two,
            4,
            vec![(0, 0), (1, 1), (2, 0), (3, 0)],
        ),
        (limited, two, 0, vec![(0, 0), (0, 1), (0, 0), (0, 0)]),
    ]
}

#[test]
fn traces_with_their_own_outputs_have_one_order_in_every_round() {
    for (number, (config, traces, period, round)) in apart().into_iter().enumerate() {
        let path = |(at, micros): (usize, &&[u64])| {
            let frames: Vec<_> = micros.iter().copied().zip(0..).collect();
            trace(&format!("together-{number}-{at}.pcap"), &frames)
        };
        let config = TraceConfig {
            traces: traces.iter().enumerate().map(path).collect(),
            apart: true,
            rounds: Some(3),
            ..config
        };
        let limit = config.limit.unwrap_or(u64::MAX) as usize;
        let rounds =
            (0..3).flat_map(|nth| round.iter().map(move |(at, to)| (nth * period + at, *to)));
        let mut feed = open(config);
        assert_eq!(feed.outputs(), traces.len());
        let left = drain_all(&mut feed).into_iter();
        let left: Vec<_> = left.map(|(due, _, output)| (due, output)).collect();
        assert_eq!(
            left,
            rounds.take(limit).collect::<Vec<_>>(),
            "case {number}"
        );
    }
}

/// Compares merging with a stable sort. Some traces have no frames, and others end early.
#[test]
fn merging_is_sorting() {
    let mut draws = Draws(1);
    for case in 0..64 {
        let mut paths = Vec::new();
        let mut all = Vec::new();
        for at in 0..1 + draws.below(4) as u32 {
            let mut micros = 0;
            let mut frames = Vec::new();
            for n in 0..draws.below(40) as u32 {
                // Frames are often simultaneous with the previous one.
                micros += draws.below(50).saturating_sub(20);
                frames.push((micros, at * 100 + n));
            }
            paths.push(trace(&format!("merge-{case}-{at}.pcap"), &frames));
            all.extend(frames);
        }
        all.sort_by_key(|frame| frame.0);
        let first = all.first().map_or(0, |frame| frame.0);
        let named: Vec<&String> = paths.iter().collect();
        for apart in [false, true] {
            let merged = TraceConfig {
                merge: !apart,
                apart,
                ..config(&named)
            };
            let output = |n: u32| if apart { n as usize / 100 } else { 0 };
            let expected = all.iter().map(|(at, n)| (at - first, *n, output(*n)));
            let expected: Vec<Frame> = expected.collect();
            assert_eq!(frames_of(merged), expected, "case {case}, apart: {apart}");
        }
        for path in paths {
            std::fs::remove_file(path).unwrap();
        }
    }
}
