//! Scheduled and listed delays: times are relative to the epoch, and the end behaves as specified.

use crate::common::files::{self, frame_context, stream};
use longwire_engine::Nanos;
use longwire_engine::models::delay::DelayModel;
use longwire_engine::models::{DELAY, Described};
use longwire_testbed::support::rows;

const MS: u64 = 1_000_000;

/// An odd number, to detect wrong origins.
const EPOCH: u64 = 12_345_678_901;

fn parse(model: &str, contents: &str) -> Described<dyn DelayModel> {
    let mut model = files::parse(&DELAY, model, contents);
    model.start(Nanos::from_nanos(EPOCH));
    model
}

fn refusal(model: &str, contents: &str) -> String {
    files::parse_error(&DELAY, model, contents)
}

/// Returns the delay for a frame at this time after the epoch.
fn at(model: &mut Described<dyn DelayModel>, since: u64) -> u64 {
    let frame = frame_context(EPOCH + since, 1000);
    model.draw(&frame, &mut stream()).as_nanos()
}

fn mean(model: &dyn DelayModel) -> u64 {
    model.mean().as_nanos()
}

/// Checks rows of model, trace file (`/` for newline), mean, and `time=delay` pairs, with times
/// relative to the epoch.
fn assert_delays(table: &str) {
    let time = |text: &str| text.parse::<Nanos>().expect(text).as_nanos();
    for [text, contents, mean, delays] in rows(table) {
        let mut model = parse(text, &contents.replace('/', "\n"));
        assert_eq!(model.mean().as_nanos(), time(mean), "{text}");
        for pair in delays.split(' ') {
            let (since, delay) = pair.split_once('=').expect(pair);
            assert_eq!(at(&mut model, time(since)), time(delay), "{text}: {pair}");
        }
    }
}

/// The last step holds as long as the one before, so a period is 20 s. Queries may be in any time
/// order. A linear delay changes by 3 ps per nanosecond, rounded to nearest; the last step
/// interpolates to the first step of the next period.
#[test]
fn steps_hold_loop_or_stop() {
    assert_delays(
        "
        steps:at=0s/20ms;10s/50ms;15s/30ms          | | 30ms | 0=20ms 9999999999ns=20ms 10s=50ms 14s=50ms 15s=30ms 1000s=30ms 1ns=20ms
        steps:at=0s/20ms;10s/50ms;15s/30ms,end=loop | | 30ms | 0=20ms 10s=50ms 15s=30ms 19s=30ms 20s=20ms 30s=50ms 35s=30ms 39s=30ms 140s=20ms 150s=50ms 155s=30ms 159s=30ms
        steps:at=0s/20ms;10s/50ms;15s/30ms,end=stop | | 30ms | 19999999999ns=30ms 20s=0
        steps:at=0s/20ms;10s/50ms;20s/50ms;30s/10ms,change=linear          | | 10ms   | 0=20ms 5s=35ms 10s=50ms 17s=50ms 25s=30ms 30s=10ms 35s=10ms 99s=10ms 333333333ns=21ms 333332333ns=20999997ns
        steps:at=0s/20ms;10s/50ms;20s/50ms;30s/10ms,change=linear,end=loop | | 32500us | 35s=15ms 40s=20ms 45s=35ms
        steps:at=0s/20ms;10s/50ms;20s/50ms;30s/10ms,change=linear,end=stop | | 31250us | 39s=10ms 40s=0
        ",
    );
    let bounds = |text| parse(text, "").least();
    let steps = "steps:at=0s/20ms;10s/50ms;15s/30ms";
    assert_eq!(bounds(steps), Nanos::from_millis(20));
    assert_eq!(bounds(&format!("{steps},end=stop")), Nanos::ZERO);
    // Before the epoch, the first delay applies.
    let frame = frame_context(EPOCH - 1, 1000);
    let first = parse(steps, "").draw(&frame, &mut stream());
    assert_eq!(first, Nanos::from_millis(20));
}

/// Times are relative to the first row. A delay repeated in several rows holds, then changes.
#[test]
fn traces_are_tables_of_times_and_delays() {
    assert_delays(
        "
        trace:file=x,end=hold      | time_s,delay_ms,note/100,20,a/101.5,50.25,b/102,30,c/ | 30ms    | 0=20ms 1500ms=50250us 2s=30ms 9s=30ms
        trace:file=x               | time_s,delay_ms,note/100,20,a/101.5,50.25,b/102,30,c/ | 28050us | 2500ms=20ms 4s=50250us
        trace:file=x,change=linear | time_s,delay_ms,note/100,20,a/101.5,50.25,b/102,30,c/ | 34100us | 750ms=35125us 2250ms=25ms
        trace:file=x,end=stop      | time_s,delay_ms,note/100,20,a/101.5,50.25,b/102,30,c/ | 28050us | 2499ms=30ms 2500ms=0
        trace:file=x,delay-column=2,time-column=1,delay-unit=us,time-unit=ms | 0,7/5,9/ | 8us | 0=7us 5ms=9us
        trace:file=x,change=linear,end=hold | time_s,delay_ms/0,10/1,10/2,10/3,20/ | 20ms | 500ms=10ms 1999ms=10ms 2500ms=15ms 3s=20ms
        ",
    );
    let text = "trace:file=x,delay-column=2,time-column=1,delay-unit=us,time-unit=ms";
    let written = parse(text, "0,7\n5,9\n").to_string();
    assert!(
        written.contains("delay-unit=us") && written.contains("time-column=1"),
        "{written}"
    );
}

#[test]
fn a_sinusoid_oscillates() {
    assert_delays(
        "
        sinusoid:mean=100ms,amplitude=40ms,period=90s,phase=90 | | 100ms | 0=140ms 15s=120ms 30s=80ms 45s=60ms 75s=120ms 90s=140ms 105s=120ms 120s=80ms 135s=60ms 165s=120ms
        sinusoid:mean=40ms,amplitude=40ms,period=1s,phase=-90  | | 40ms  | 0=0 500ms=80ms
        ",
    );
    let text = "sinusoid:mean=100ms,amplitude=40ms,period=90s,phase=90";
    let mut sinusoid = parse(text, "");
    assert_eq!(sinusoid.least(), Nanos::from_millis(60));
    // After a million periods, later than the longest specifiable time.
    for (since, delay) in [(0, 140), (15, 120), (30, 80), (45, 60), (75, 120)] {
        let since = (1_000_000 * 90 + since) * 1_000_000_000;
        assert_eq!(at(&mut sinusoid, since), delay * MS);
    }
}

#[test]
fn a_list_has_a_delay_for_each_frame() {
    let contents = "20.5 30\n# then\n10ms\n5000,7\n";
    let next = |model: &mut Described<dyn DelayModel>| at(model, 0) / 1_000;
    let mut looped = parse("per-packet:file=x", contents);
    for _ in 0..3 {
        for delay in [20_500, 30_000, 10_000, 5_000_000, 7_000] {
            assert_eq!(next(&mut looped), delay);
            // A copy shares the original's delay and consumes none from the list.
            let frame = frame_context(0, 100);
            let copy = looped.draw_copy(&frame, &mut stream());
            assert_eq!(copy.as_nanos() / 1_000, delay);
        }
    }
    assert_eq!(mean(&*looped), 5_067_500_000 / 5);
    assert_eq!(looped.least().as_nanos(), 7 * MS);
    let mut held = parse("per-packet:file=x,end=hold", contents);
    let mut stopped = parse("per-packet:file=x,end=stop", contents);
    for _ in 0..5 {
        assert_eq!(next(&mut held), next(&mut stopped));
    }
    assert_eq!((next(&mut held), next(&mut stopped)), (7_000, 0));
    assert_eq!(stopped.least(), Nanos::ZERO);
    // Delays above 4.29 s do not fit in the 32-bit list.
    let mut wide = parse(
        "per-packet:file=x,unit=s",
        "1 4.294967295 4.294967296 24h 2",
    );
    for delay in [1_000_000, 4_294_967, 4_294_967, 86_400_000_000, 2_000_000] {
        assert_eq!(next(&mut wide), delay);
    }
}

#[test]
fn invalid_schedules_are_refused() {
    let list = |contents| refusal("per-packet:file=l.txt", contents);
    assert_eq!(
        list("1 2\n3 -4\n"),
        "per-packet: file: l.txt: line 2: delay: '-4' is negative"
    );
    assert!(list("\n# none\n").ends_with("no delays"));
    let trace = |contents| refusal("trace:file=t.csv", contents);
    assert!(trace("time_s,delay_ms\n1,2\n0,3\n").contains("t.csv: line 3: "));
    assert!(trace("time_s,delay_ms\n1,nan\n").contains("t.csv: line 2: "));
}
