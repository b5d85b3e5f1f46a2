//! Rates that vary over time, against the integral of the rate: what a link
//! that is never idle has sent by an instant, in exact fractions.

use longwire_engine::models::rate::Rate;
use longwire_engine::random::Stream;
use longwire_engine::{Bytes, Nanos, Packets, Passing, models};
use proptest::prelude::*;

use crate::common::frame;
use crate::links::{any_frames, both_ways};

/// From `time` on, the rate is `rate`.
#[derive(Clone, Copy, Debug)]
struct Step {
    time: u64,
    rate: u64,
}

/// What follows the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum After {
    /// The last rate.
    Hold,
    /// Nothing, from this time on.
    Stop(u64),
    /// All again, from this time on.
    Again(u64),
}

/// A rate over time.
#[derive(Clone, Debug)]
struct Program {
    steps: Vec<Step>,
    after: After,
    linear: bool,
}

/// Halves of a billionth of a bit.
const HALVES: u128 = 2_000_000_000;

/// A number of halves: whole ones, and a fraction of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Halves {
    whole: u128,
    part: u128,
    of: u128,
}

impl Halves {
    fn whole(whole: u128) -> Halves {
        Halves {
            whole,
            part: 0,
            of: 1,
        }
    }

    /// Whether it is at least `other`.
    fn reaches(&self, other: &Halves) -> bool {
        let (mine, others) = (self.part * other.of, other.part * self.of);
        (self.whole, mine) >= (other.whole, others)
    }
}

impl Program {
    /// What is sent by `time`.
    fn sent(&self, time: u64) -> Halves {
        let (laps, inside) = match self.after {
            After::Again(period) => (time / period, time % period),
            After::Hold => (0, time),
            After::Stop(end) => (0, time.min(end)),
        };
        let lap = match self.after {
            After::Again(period) => self.within(period).whole,
            _ => 0,
        };
        let part = self.within(inside);
        Halves {
            whole: u128::from(laps) * lap + part.whole,
            ..part
        }
    }

    fn within(&self, time: u64) -> Halves {
        let mut sum = 0;
        for (index, step) in self.steps.iter().enumerate() {
            if step.time >= time {
                break;
            }
            let next = self.next(index);
            let passed = u128::from(time.min(next.map_or(time, |next| next.time)) - step.time);
            let from = u128::from(step.rate);
            let Some(next) = next.filter(|_| self.linear) else {
                sum += 2 * from * passed;
                continue;
            };
            // 2 from t + (to - from) t² / span
            let span = u128::from(next.time - step.time);
            let scaled = 2 * from * passed * span + u128::from(next.rate) * passed * passed;
            let scaled = scaled - from * passed * passed;
            if passed < span {
                return Halves {
                    whole: sum + scaled / span,
                    part: scaled % span,
                    of: span,
                };
            }
            sum += scaled / span;
        }
        Halves::whole(sum)
    }

    /// The step after this one.
    fn next(&self, index: usize) -> Option<Step> {
        let back = match self.after {
            After::Again(period) => Some(Step {
                time: period,
                rate: self.steps[0].rate,
            }),
            _ => None,
        };
        self.steps.get(index + 1).copied().or(back)
    }

    /// When the line ends that is in force just before `time`.
    fn line_end(&self, time: u64) -> u64 {
        let (lap, inside) = match self.after {
            After::Again(period) => (time / period * period, time % period),
            _ => (0, time),
        };
        let ends = (0..self.steps.len()).filter_map(|index| self.next(index));
        let end = ends.map(|next| next.time).find(|end| *end > inside);
        end.map_or(u64::MAX, |end| lap + end)
    }

    /// The instant, rounded down, at which `wanted` has been sent, of which
    /// a fraction is lost at the end of the line in force at `at`; `None` if
    /// that never is.
    fn instant(&self, wanted: &mut Halves, at: u64) -> Option<u64> {
        let end = self.line_end(at);
        if wanted.part > 0 && !self.sent(end).reaches(wanted) {
            *wanted = Halves::whole(wanted.whole);
        }
        let mut high = 1u64;
        while !self.sent(high).reaches(&Halves::whole(wanted.whole + 1)) {
            match high.checked_mul(2).filter(|high| *high < 1 << 60) {
                Some(higher) => high = higher,
                // Where it ends, just that much may have been sent.
                None if self.sent(high).reaches(wanted) => break,
                None => return None,
            }
        }
        // The first whole nanosecond by which it has.
        let mut low = at;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.sent(middle).reaches(wanted) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let on_the_dot = wanted.reaches(&self.sent(low));
        Some(if on_the_dot { low } else { low - 1 })
    }

    fn departures(&self, epoch: u64, frames: &[(u64, u32)]) -> Vec<u64> {
        let (mut sent, mut free) = (Halves::whole(0), 0);
        let mut departures = Vec::new();
        for (arrival, len) in frames {
            let at = arrival.saturating_sub(epoch).max(free);
            // The link is idle only after the true instant.
            if at > free || departures.is_empty() {
                sent = self.sent(at);
            }
            sent.whole += u128::from(*len) * 8 * HALVES;
            let Some(instant) = self.instant(&mut sent, at) else {
                break;
            };
            free = instant;
            departures.push(epoch + instant);
        }
        departures
    }

    fn written(&self) -> String {
        let steps = self.steps.iter();
        let steps = steps.map(|step| match step.rate {
            0 => format!("{}ns/0", step.time),
            rate => format!("{}ns/{rate}bit", step.time),
        });
        let steps: Vec<String> = steps.collect();
        let change = if self.linear { "linear" } else { "stepwise" };
        let period = match self.after {
            After::Again(period) => format!(",period={period}ns"),
            _ => String::new(),
        };
        format!("steps:at={},change={change}{period}", steps.join(";"))
    }

    /// The same as a table.
    fn table(&self) -> String {
        let rows = self.steps.iter();
        let rows = rows.map(|step| format!("{},{}\n", step.time, step.rate));
        format!("time_ns,rate_bps\n{}", rows.collect::<String>())
    }
}

fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        Just(1_000_000_000),
        1_000u64..10_000_000_000,
        // A rate of whose times few are whole.
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
        // Something must pass in good time.
        if steps.iter().all(|step| step.rate < 1_000_000) {
            steps[0].rate = 5_000_000;
        }
        steps
    })
}

const MILLI: u64 = 1_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn stepwise_rates_send_their_integral(
        steps in any_steps(50 * MILLI),
        gap in 1..10 * MILLI,
        again in any::<bool>(),
        epoch in prop_oneof![Just(0u64), 0u64..1 << 50],
        frames in any_frames(20 * MILLI),
    ) {
        let last = steps[steps.len() - 1].time;
        let after = if again { After::Again(last + gap) } else { After::Hold };
        let program = Program { steps, after, linear: false };
        let frames: Vec<_> = frames.iter().map(|(at, len)| (epoch + at, *len)).collect();
        let expected = program.departures(epoch, &frames);
        prop_assert_eq!(both_ways(&program.written(), "", epoch, &frames), expected);
    }

    #[test]
    fn straight_lines_send_their_integral(
        steps in any_steps(50 * MILLI),
        gap in 1..10 * MILLI,
        again in any::<bool>(),
        epoch in prop_oneof![Just(0u64), 0u64..1 << 50],
        frames in any_frames(20 * MILLI),
    ) {
        let last = steps[steps.len() - 1].time;
        let after = if again { After::Again(last + gap) } else { After::Hold };
        let program = Program { steps, after, linear: true };
        let frames: Vec<_> = frames.iter().map(|(at, len)| (epoch + at, *len)).collect();
        let expected = program.departures(epoch, &frames);
        prop_assert_eq!(both_ways(&program.written(), "", epoch, &frames), expected);
    }

    #[test]
    fn traces_send_their_integral_to_the_end_and_on(
        steps in any_steps(50 * MILLI),
        end in proptest::sample::select(vec!["loop", "hold", "stop"]),
        epoch in prop_oneof![Just(0u64), 0u64..1 << 50],
        frames in any_frames(20 * MILLI),
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
        let frames: Vec<_> = frames.iter().map(|(at, len)| (epoch + at, *len)).collect();
        let expected = program.departures(epoch, &frames);
        let rate = format!("trace:file=trace.csv,end={end}");
        let departures = both_ways(&rate, &program.table(), epoch, &frames);
        prop_assert_eq!(departures, expected);
    }
}

/// A million frames back to back across steps whose frame times are no whole
/// nanoseconds: any rounding carried on would show.
#[test]
fn no_rounding_is_carried_across_steps() {
    let rate = "steps:at=0s/3gbit;7us/1.7gbit;13us/0;14us/700000001bit,period=19us";
    let frames = vec![(0u64, 1000u32); 1_000_000];
    let departures = both_ways(rate, "", 0, &frames);
    let program = Program {
        steps: vec![
            Step {
                time: 0,
                rate: 3_000_000_000,
            },
            Step {
                time: 7_000,
                rate: 1_700_000_000,
            },
            Step {
                time: 13_000,
                rate: 0,
            },
            Step {
                time: 14_000,
                rate: 700_000_001,
            },
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

/// From 0 to 1 Gbit/s in a second: half a gigabit by its end, and a frame of
/// 1250 bytes takes until sqrt(2 · 10^4 bit / 10^9 bit/s²) = 4.472 ms.
#[test]
fn a_ramp_from_zero_is_a_square_root() {
    let rate = "steps:at=0s/0;1s/1gbit,change=linear";
    let frames = vec![(0u64, 1250u32); 50_000];
    let departures = both_ways(rate, "", 0, &frames);
    assert_eq!(departures[0], 4_472_135);
    assert_eq!(departures[49_999], 1_000_000_000);
    // Afterwards, 10 us a frame.
    assert_eq!(
        both_ways(rate, "", 0, &[(2_000_000_000, 1250)]),
        [2_000_010_000]
    );
}

#[test]
fn a_link_that_stands_still_waits_and_one_that_ends_never_sends() {
    let steps = "steps:at=0s/8mbit;10ms/0;20ms/8mbit;30ms/0";
    let frames = [
        (0, 1_000),
        (9_500_000, 1_000),
        (15_000_000, 1_000),
        (29_500_000, 1_000),
    ];
    // The second has half its bits sent when the link stops, and the last
    // never gets its other half.
    assert_eq!(
        both_ways(steps, "", 0, &frames),
        [1_000_000, 20_500_000, 21_500_000]
    );
    let table = "time_ms,rate_mbps\n0,8\n10,0\n20,8\n30,0\n";
    let trace = "trace:file=t,end=hold";
    assert_eq!(
        both_ways(trace, table, 0, &frames),
        [1_000_000, 20_500_000, 21_500_000]
    );
}

/// A queue may drop the frame that the link was asked about and get another
/// one: the link still does not move before its rate does.
#[test]
fn asking_again_earlier_changes_nothing() {
    for rate in [
        "steps:at=0s/8mbit;10ms/0;20ms/8mbit",
        "steps:at=0s/8mbit;10ms/0;20ms/0;30ms/16mbit,change=linear",
    ] {
        let Ok(Rate::Model(mut model)) = models::RATE.parse(rate) else {
            panic!("{rate} is no model");
        };
        let mut stream = Stream::of_seed(1);
        let mut ready = |millis| model.ready(Nanos::from_millis(millis), &mut stream);
        assert_eq!(ready(12), Nanos::from_millis(20), "{rate}");
        assert_eq!(ready(13), Nanos::from_millis(20), "{rate}");
        let passing = Passing {
            frame: frame(13_000_000, 1_000),
            at: Nanos::from_millis(20),
            bytes: &[],
            waiting: (Packets(0), Bytes(0)),
        };
        let departure = model.serve(&passing, 8_000, &mut stream);
        // 8000 bits: at 8 Mbit/s; or t² · 16 Mbit/s / 10 ms / 2.
        let expected = if rate.contains("linear") {
            23_162_277
        } else {
            21_000_000
        };
        assert_eq!(departure.as_nanos(), expected, "{rate}");
    }
}

/// A frame of 4 GB that takes 34,359,738 laps of 1000 bits each, and 360 bits
/// more, does not go through them one by one. The straight line sends 360
/// bits when 2·10^6 t - 2·10^9 t² is 360.
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
