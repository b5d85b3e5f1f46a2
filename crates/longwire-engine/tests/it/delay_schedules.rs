//! Scheduled and listed delays: times count from the epoch, and ends follow the model.

use crate::common::files::{self, frame_context, stream};
use longwire_engine::Nanos;
use longwire_engine::models::DELAY;
use longwire_engine::models::delay::DelayModel;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Not a round time, to detect other origins.
const EPOCH: u64 = 12_345_678_901;

fn parse(model: &str, contents: &str) -> Box<dyn DelayModel> {
    let mut model = files::parse(&DELAY, model, contents);
    model.start(Nanos::from_nanos(EPOCH));
    model
}

fn refusal(model: &str, contents: &str) -> String {
    files::parse_error(&DELAY, model, contents)
}

/// Returns the delay of a frame at this time after the epoch.
fn at(model: &mut Box<dyn DelayModel>, since: u64) -> u64 {
    let frame = frame_context(EPOCH + since, 1000);
    model.draw(&frame, &mut stream()).as_nanos()
}

fn mean(model: &dyn DelayModel) -> u64 {
    model.mean().as_nanos()
}

#[test]
fn steps_hold_from_their_time_on() {
    let mut steps = parse("steps:at=0s/20ms;10s/50ms;15s/30ms", "");
    for (since, delay) in [
        (0, 20),
        (10 * SECOND - 1, 20),
        (10 * SECOND, 50),
        (14 * SECOND, 50),
        (15 * SECOND, 30),
        (1_000 * SECOND, 30),
        // Queries may be in any time order.
        (1, 20),
    ] {
        assert_eq!(at(&mut steps, since), delay * MS, "{since}");
    }
    assert_eq!(mean(steps.as_ref()), 30 * MS);
    assert_eq!(steps.least().as_nanos(), 20 * MS);
    // Before the epoch, the first delay applies.
    let frame = frame_context(EPOCH - 1, 1000);
    assert_eq!(steps.draw(&frame, &mut stream()).as_nanos(), 20 * MS);
}

/// The last step holds as long as the one before: a lap is 20 s.
#[test]
fn steps_loop_or_stop() {
    let mut looped = parse("steps:at=0s/20ms;10s/50ms;15s/30ms,end=loop", "");
    for lap in [0, 1, 7] {
        for (since, delay) in [(0, 20), (10, 50), (15, 30), (19, 30)] {
            assert_eq!(at(&mut looped, (lap * 20 + since) * SECOND), delay * MS);
        }
    }
    assert_eq!(mean(looped.as_ref()), 30 * MS);
    let mut stopped = parse("steps:at=0s/20ms;10s/50ms;15s/30ms,end=stop", "");
    assert_eq!(at(&mut stopped, 20 * SECOND - 1), 30 * MS);
    assert_eq!(at(&mut stopped, 20 * SECOND), 0);
    assert_eq!(stopped.least(), Nanos::ZERO);
}

#[test]
fn ramps_go_evenly_from_one_delay_to_the_next() {
    let text = "steps:at=0s/20ms;10s/50ms;20s/50ms;30s/10ms,change=linear";
    let mut held = parse(text, "");
    for (since, delay) in [
        (0, 20 * MS),
        (5 * SECOND, 35 * MS),
        (10 * SECOND, 50 * MS),
        (17 * SECOND, 50 * MS),
        (25 * SECOND, 30 * MS),
        (30 * SECOND, 10 * MS),
        (35 * SECOND, 10 * MS),
        (99 * SECOND, 10 * MS),
        // A nanosecond changes the delay by 3 picoseconds; rounded to nearest.
        (SECOND / 3, 21 * MS),
        (SECOND / 3 - 1_000, 21 * MS - 3),
    ] {
        assert_eq!(at(&mut held, since), delay, "{since}");
    }
    let mut looped = parse(&format!("{text},end=loop"), "");
    // From the last delay to the first of the next lap.
    assert_eq!(at(&mut looped, 35 * SECOND), 15 * MS);
    assert_eq!(at(&mut looped, 40 * SECOND), 20 * MS);
    assert_eq!(at(&mut looped, 45 * SECOND), 35 * MS);
    let area = 10 * (35 + 50 + 30 + 15);
    assert_eq!(mean(looped.as_ref()), area * MS / 40);
    let mut stopped = parse(&format!("{text},end=stop"), "");
    assert_eq!(at(&mut stopped, 39 * SECOND), 10 * MS);
    assert_eq!(at(&mut stopped, 40 * SECOND), 0);
    assert_eq!(mean(stopped.as_ref()), 10 * (35 + 50 + 30 + 10) * MS / 40);
}

#[test]
fn traces_are_tables_of_times_and_delays() {
    let contents = "time_s,delay_ms,note\n100,20,a\n101.5,50.25,b\n102,30,c\n";
    let mut held = parse("trace:file=x,end=hold", contents);
    // Counted from the first row.
    for (since, delay) in [
        (0, 20_000),
        (1_500, 50_250),
        (2_000, 30_000),
        (9_000, 30_000),
    ] {
        assert_eq!(at(&mut held, since * MS), delay * 1_000, "{since}");
    }
    let mut looped = parse("trace:file=x", contents);
    assert_eq!(at(&mut looped, 2_500 * MS), 20 * MS);
    assert_eq!(at(&mut looped, 4_000 * MS), 50_250_000);
    let mut linear = parse("trace:file=x,change=linear", contents);
    assert_eq!(at(&mut linear, 750 * MS), 35_125_000);
    assert_eq!(at(&mut linear, 2_250 * MS), 25 * MS);
    let mut stopped = parse("trace:file=x,end=stop", contents);
    assert_eq!(at(&mut stopped, 2_499 * MS), 30 * MS);
    assert_eq!(at(&mut stopped, 2_500 * MS), 0);
    let text = "trace:file=x,delay-column=2,time-column=1,delay-unit=us,time-unit=ms";
    let mut mapped = parse(text, "0,7\n5,9\n");
    assert_eq!(
        (at(&mut mapped, 0), at(&mut mapped, 5 * MS)),
        (7_000, 9_000)
    );
    let written = mapped.to_string();
    assert!(
        written.contains("delay-unit=us") && written.contains("time-column=1"),
        "{written}"
    );
}

/// A delay that is equal in several rows holds, and then changes.
#[test]
fn equal_rows_are_no_ramp() {
    let contents = "time_s,delay_ms\n0,10\n1,10\n2,10\n3,20\n";
    let mut linear = parse("trace:file=x,change=linear,end=hold", contents);
    for (since, delay) in [
        (500, 10_000),
        (1_999, 10_000),
        (2_500, 15_000),
        (3_000, 20_000),
    ] {
        assert_eq!(at(&mut linear, since * MS), delay * 1_000, "{since}");
    }
}

#[test]
fn a_list_has_a_delay_for_each_frame() {
    let contents = "20.5 30\n# then\n10ms\n5000,7\n";
    let next = |model: &mut Box<dyn DelayModel>| at(model, 0) / 1_000;
    let mut looped = parse("per-packet:file=x", contents);
    for _ in 0..3 {
        for delay in [20_500, 30_000, 10_000, 5_000_000, 7_000] {
            assert_eq!(next(&mut looped), delay);
            // A copy has the frame's own delay, and takes none from the list.
            let frame = frame_context(0, 100);
            let copy = looped.draw_copy(&frame, &mut stream());
            assert_eq!(copy.as_nanos() / 1_000, delay);
        }
    }
    assert_eq!(mean(looped.as_ref()), 5_067_500_000 / 5);
    assert_eq!(looped.least().as_nanos(), 7 * MS);
    let mut held = parse("per-packet:file=x,end=hold", contents);
    let mut stopped = parse("per-packet:file=x,end=stop", contents);
    for _ in 0..5 {
        assert_eq!(next(&mut held), next(&mut stopped));
    }
    assert_eq!((next(&mut held), next(&mut stopped)), (7_000, 0));
    assert_eq!(stopped.least(), Nanos::ZERO);
    // Above 4.29 s a delay exceeds the 32-bit list.
    let mut wide = parse(
        "per-packet:file=x,unit=s",
        "1 4.294967295 4.294967296 24h 2",
    );
    for delay in [1_000_000, 4_294_967, 4_294_967, 86_400_000_000, 2_000_000] {
        assert_eq!(next(&mut wide), delay);
    }
}

#[test]
fn a_sinusoid_oscillates() {
    let text = "sinusoid:mean=100ms,amplitude=40ms,period=90s,phase=90";
    let mut sinusoid = parse(text, "");
    for lap in [0, 1, 1_000_000] {
        let start = lap * 90 * SECOND;
        for (since, delay) in [(0, 140), (15, 120), (30, 80), (45, 60), (75, 120)] {
            assert_eq!(
                at(&mut sinusoid, start + since * SECOND),
                delay * MS,
                "{lap}, {since}"
            );
        }
    }
    assert_eq!(mean(sinusoid.as_ref()), 100 * MS);
    assert_eq!(sinusoid.least().as_nanos(), 60 * MS);
    let mut whole = parse("sinusoid:mean=40ms,amplitude=40ms,period=1s,phase=-90", "");
    assert_eq!(at(&mut whole, 0), 0);
    assert_eq!(at(&mut whole, SECOND / 2), 80 * MS);
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
