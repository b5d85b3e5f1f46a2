//! Several traces side by side: one time base, in every round.
use longwire_capture::CaptureWriter;
use longwire_engine::Nanos;
use longwire_engine::replay::Pace;
use longwire_packet::filter::Filter;
use longwire_runtime::Feed;
use longwire_runtime::feed::trace::{TraceConfig, TraceFeed, in_one_time_base};

/// The stamp of the first frame of the first trace.
const FIRST: u64 = 1_700_000_000_000_000_000;

/// Returns a trace with frames of minimum size at these microseconds.
fn trace(name: &str, micros: &[u64]) -> TraceConfig {
    let dir = env!("CARGO_TARGET_TMPDIR");
    let path = format!("{dir}/{}-together-{name}.pcap", std::process::id());
    let mut writer = CaptureWriter::create(&path).unwrap();
    for at in micros {
        let stamp = Nanos::from_nanos(FIRST + at * 1_000);
        writer.write(stamp, &[2; 60], 60).unwrap();
    }
    writer.finish().unwrap();
    TraceConfig {
        traces: vec![path],
        rounds: Some(3),
        ..TraceConfig::default()
    }
}

fn together<const N: usize>(configs: [TraceConfig; N]) -> [TraceFeed; N] {
    let mut feeds = configs.map(|config| TraceFeed::open(config).unwrap());
    in_one_time_base(&mut feeds).unwrap();
    feeds
}

/// Returns the due times of the frames of each feed, in microseconds. They are
/// polled in turn, as by a reader; one that has nothing for now may have more
/// later.
fn dues<const N: usize>(feeds: &mut [TraceFeed; N], max: usize) -> [Vec<u64>; N] {
    let mut dues = [const { Vec::new() }; N];
    let mut idle = 0;
    loop {
        let mut ended = true;
        let before: usize = dues.iter().map(Vec::len).sum();
        for (feed, dues) in feeds.iter_mut().zip(&mut dues) {
            let take =
                &mut |fed: longwire_runtime::FeedFrame<'_>| dues.push(fed.due.as_nanos() / 1_000);
            ended &= feed.feed(max, take).unwrap().end;
        }
        if ended {
            return dues;
        }
        // Threads read the files; a second without a frame is a deadlock.
        let stuck = before == dues.iter().map(Vec::len).sum::<usize>();
        idle = if stuck { idle + 1 } else { 0 };
        assert!(idle < 1_000, "nobody gets on: {dues:?}");
        if stuck {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn every_round_begins_behind_the_longest_trace() {
    for max in [1, 2, 64] {
        let short = trace("short", &[100, 110, 120]);
        let long = trace("long", &[0, 500, 1_000]);
        // 1,000 us, and the longer one's mean gap.
        let bases = [0, 1_500, 3_000];
        let [one, other] = dues(&mut together([short, long]), max);
        assert_eq!(one, bases.map(|at| [at + 100, at + 110, at + 120]).concat());
        assert_eq!(other, bases.map(|at| [at, at + 500, at + 1_000]).concat());
    }
}

#[test]
fn the_gap_and_the_speed_asked_for_hold_for_all() {
    let asked = |config| TraceConfig {
        pace: Pace::Trace("2x".parse().unwrap()),
        round_gap: Some(Nanos::from_micros(7)),
        ..config
    };
    let configs = [trace("a", &[0, 100]), trace("b", &[40]), trace("c", &[60])];
    let [a, b, c] = dues(&mut together(configs.map(asked)), 5);
    assert_eq!(a, [0, 50, 57, 107, 114, 164]);
    assert_eq!(b, [20, 77, 134]);
    assert_eq!(c, [30, 87, 144]);
}

#[test]
fn who_ends_early_is_not_waited_for() {
    // One is limited to its first round, one has nothing to send.
    let limited = TraceConfig {
        limit: Some(2),
        ..trace("limited", &[0, 900])
    };
    let nothing = TraceConfig {
        filter: Some(Filter::parse("udp").unwrap()),
        ..trace("nothing", &[0, 5_000])
    };
    let goes_on = trace("goes-on", &[0, 100]);
    let [limited, nothing, goes_on] = dues(&mut together([limited, nothing, goes_on]), 1);
    assert_eq!(limited, [0, 900]);
    assert!(nothing.is_empty());
    // Its end counted in the round that it was in.
    assert_eq!(goes_on[..2], [0, 100]);
    assert_eq!(goes_on[3] - goes_on[2], 100);
    assert_eq!(goes_on[4] - goes_on[2], 200, "later rounds are its own");
    assert_eq!(goes_on.len(), 6);
}

#[test]
fn rates_just_go_on() {
    let at_a_rate = |config| TraceConfig {
        pace: Pace::Packets("1mpps".parse().unwrap()),
        ..config
    };
    let configs = [trace("x", &[0, 100]), trace("y", &[0])];
    let [x, y] = dues(&mut together(configs.map(at_a_rate)), 4);
    assert_eq!((x, y), ((0..6).collect(), (0..3).collect()));
}

/// While it waits, a feed does not wake its reader; afterwards it does.
#[test]
fn a_feed_that_waits_is_woken_by_the_round() {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let configs = [trace("early", &[0, 1]), trace("late", &[0, 1_000])];
    let [mut early, mut late] = together(configs);
    let mut count = 0;
    while count < 2 {
        let took = early.feed(9, &mut |_| count += 1).unwrap();
        assert!(!took.end);
    }
    // Until the thread that reads it has reached the file's end.
    for _ in 0..1_000 {
        let none = &mut |_: longwire_runtime::FeedFrame<'_>| panic!("the other has not ended");
        let took = early.feed(9, none).unwrap();
        assert_eq!((took.frames, took.end), (0, false));
        if early.readable().is_none() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(early.readable().is_none());
    let mut count = 0;
    while count < 4 {
        late.feed(9, &mut |_| count += 1).unwrap();
    }
    let readable = early.readable().expect("the round has begun");
    let mut polled = [PollFd::new(readable, PollFlags::POLLIN)];
    assert_eq!(poll(&mut polled, PollTimeout::ZERO), Ok(1));
}
