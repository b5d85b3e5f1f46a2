//! Varying rates, compared with their integral: the data that a saturated link has sent by an
//! instant, in exact fractions.

use longwire_engine::models::rate::Rate;
use longwire_engine::{FrameContext, Nanos, models};
use longwire_units::random::Stream;
use proptest::prelude::*;

use crate::common::files::frame_context;
use crate::rates::links::{any_frames, both_ways};
use crate::rates::program::{After, HALVES, Halves, Program, Step};

fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        Just(1_000_000_000),
        1_000u64..10_000_000_000,
        // Rates at which few frame times are integers.
        (0u32..33).prop_flat_map(|power| (1u64 << power)..(2u64 << power)),
    ]
}

fn any_steps(gap_max: u64) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![1..gap_max, 1..gap_max / 50 + 2];
    let steps = proptest::collection::vec((gap, any_rate()), 1..12);
    steps.prop_map(|steps| {
        let mut clock = 0;
        let step = |(gap, rate)| {
            let time = clock;
            clock += gap;
            Step { time, rate }
        };
        let mut steps: Vec<Step> = steps.into_iter().map(step).collect();
        // Ensures that frames depart within a reasonable time.
        if steps.iter().all(|step| step.rate < 1_000_000) {
            steps[0].rate = 5_000_000;
        }
        steps
    })
}

const MILLI: u64 = 1_000_000;

/// An epoch, and frames after it.
fn any_traffic() -> impl Strategy<Value = (u64, Vec<(u64, u32)>)> {
    let epoch = prop_oneof![Just(0u64), 0u64..1 << 50];
    (epoch, any_frames(20 * MILLI)).prop_map(|(epoch, mut frames)| {
        frames.iter_mut().for_each(|(at, _)| *at += epoch);
        (epoch, frames)
    })
}

/// A program that holds its last rate or repeats, with traffic.
fn any_program(linear: bool) -> impl Strategy<Value = (Program, u64, Vec<(u64, u32)>)> {
    let gap = proptest::option::of(1..10 * MILLI);
    let parts = (any_steps(50 * MILLI), gap, any_traffic());
    parts.prop_map(move |(steps, gap, (epoch, frames))| {
        let last = steps[steps.len() - 1].time;
        let after = gap.map_or(After::Hold, |gap| After::Again(last + gap));
        let program = Program {
            steps,
            after,
            linear,
        };
        (program, epoch, frames)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn stepwise_rates_send_their_integral((program, epoch, frames) in any_program(false)) {
        let expected = program.departures(epoch, &frames);
        prop_assert_eq!(both_ways(&program.written(), "", epoch, &frames), expected);
    }

    #[test]
    fn straight_lines_send_their_integral((program, epoch, frames) in any_program(true)) {
        let expected = program.departures(epoch, &frames);
        prop_assert_eq!(both_ways(&program.written(), "", epoch, &frames), expected);
    }

    #[test]
    fn traces_send_their_integral_to_the_end_and_on(
        steps in any_steps(50 * MILLI),
        end in proptest::sample::select(vec!["loop", "hold", "stop"]),
        (epoch, frames) in any_traffic(),
    ) {
        prop_assume!(steps.len() > 1);
        // The last row holds as long as the one before.
        let [.., before, last] = steps.as_slice() else { unreachable!() };
        let length = 2 * last.time - before.time;
        let after = match end {
            "loop" => After::Again(length),
            "hold" => After::Hold,
            _ => After::Stop(length),
        };
        let program = Program { steps, after, linear: false };
        let expected = program.departures(epoch, &frames);
        let rate = format!("trace:file=trace.csv,end={end}");
        let departures = both_ways(&rate, &program.table(), epoch, &frames);
        prop_assert_eq!(departures, expected);
    }
}

/// A million back-to-back frames across steps, with fractional frame times: accumulated rounding
/// would show.
#[test]
fn no_rounding_is_carried_across_steps() {
    let rate = "steps:at=0s/3gbit;7us/1.7gbit;13us/0;14us/700000001bit,period=19us";
    let frames = vec![(0u64, 1000u32); 1_000_000];
    let departures = both_ways(rate, "", 0, &frames);
    let step = |time, rate| Step { time, rate };
    let program = Program {
        steps: vec![
            step(0, 3_000_000_000),
            step(7_000, 1_700_000_000),
            step(13_000, 0),
            step(14_000, 700_000_001),
        ],
        after: After::Again(19_000),
        linear: false,
    };
    for nth in [1, 2, 3, 1_000, 999_999, 1_000_000] {
        let sent = nth as u128 * 8_000 * HALVES;
        let instant = program.instant(&mut Halves::whole(sent), 0);
        assert_eq!(Some(departures[nth - 1]), instant, "{nth}");
    }
}

/// After the link requests a frame, the queue may drop that frame and receive another; the link
/// must not exceed its rate.
#[test]
fn asking_again_earlier_changes_nothing() {
    for rate in [
        "steps:at=0s/8mbit;10ms/0;20ms/8mbit",
        "steps:at=0s/8mbit;10ms/0;20ms/0;30ms/16mbit,change=linear",
    ] {
        let Ok(Rate::Model(mut model)) = models::RATE.parse(rate) else {
            panic!("{rate} is not a model");
        };
        let mut stream = Stream::of_seed(1);
        let mut ready = |millis| model.ready(Nanos::from_millis(millis), &mut stream);
        assert_eq!(ready(12), Nanos::from_millis(20), "{rate}");
        assert_eq!(ready(13), Nanos::from_millis(20), "{rate}");
        let frame_context = FrameContext {
            at: Nanos::from_millis(20),
            ..frame_context(13_000_000, 1_000)
        };
        let departure = model.serve(&frame_context, 8_000, &mut stream);
        // 8000 bits: at 8 Mbit/s; or t² · 16 Mbit/s / 10 ms / 2.
        let expected = if rate.contains("linear") {
            23_162_277
        } else {
            21_000_000
        };
        assert_eq!(departure.as_nanos(), expected, "{rate}");
    }
}

/// A 4 GB frame takes 34,359,738 periods of 1000 bits plus 360 bits, computed without iterating
/// over periods. With linear changes, 360 bits are sent when 2·10^6 t - 2·10^9 t² is 360.
#[test]
fn a_frame_of_very_many_laps_is_served_at_once() {
    const LAPS: u64 = 34_359_738;
    for (rate, expected) in [
        (
            "steps:at=0ns/2mbit;500us/0,period=1ms",
            LAPS * 1_000_000 + 180_000,
        ),
        (
            "steps:at=0ns/2mbit;500us/0;1ms/0,period=1500us,change=linear",
            LAPS * 1_500_000 + 235_424,
        ),
    ] {
        assert_eq!(
            both_ways(rate, "", 0, &[(0, u32::MAX)]),
            [expected],
            "{rate}"
        );
    }
}
