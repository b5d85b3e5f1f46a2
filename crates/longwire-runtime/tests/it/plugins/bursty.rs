//! The bursty wireless channel: one state for two hooks, and the distribution of bursts.

use longwire_engine::Verdict;

use crate::plugins::tools::{bounds, link, offer, release};

const GOOD: f64 = 20e6;
const BAD: f64 = 5e6;
/// Distance between frames, in nanoseconds.
const GAP: u64 = 100_000;
const FRAMES: u64 = 400_000;

/// Returns each frame's delay; `None` if it was lost.
fn run(seed: u64, loss: &str, delay: &str) -> Vec<Option<u64>> {
    let (mut link, faults) = link(&format!("loss={loss} delay={delay} order=reorder"), seed);
    let fate = |number| match offer(&mut link, number * GAP, &[0; 60]) {
        Verdict::Deliver(delivery) => Some(delivery.release.as_nanos() - number * GAP),
        Verdict::Drop(_) => None,
        Verdict::Queued => panic!("nothing queues"),
    };
    let fates = (0..FRAMES).map(fate).collect();
    assert_eq!(faults.first(), None);
    fates
}

fn plugin(loss: &str) -> String {
    format!("plugin:bursty_wireless,good=20ms,bad=5ms,delay=2ms,retry=7ms,loss={loss}")
}

#[test]
fn both_hooks_see_one_channel() {
    // All frames are lost in the bad state, so no delivered frame was retried.
    let fates = run(1, &plugin("100%"), &plugin("100%"));
    assert!(fates.iter().flatten().all(|delay| *delay == 2_000_000));
    assert!(fates.iter().any(Option::is_none));
    // With different parameters, the delay has a separate channel.
    let fates = run(1, &plugin("100%"), &plugin("99%"));
    assert!(fates.contains(&Some(9_000_000)));
}

#[test]
fn times_in_a_state_are_exponential_and_losses_independent_in_them() {
    let fates = run(2, &plugin("30%"), &plugin("30%"));
    let bad = |fate: &Option<u64>| fate.is_none_or(|delay| delay == 9_000_000);
    let mut delays = fates.iter().flatten();
    assert!(delays.all(|delay| [2_000_000, 9_000_000].contains(delay)));
    let in_bad = fates.iter().filter(|fate| bad(fate)).count() as u64;
    let lost = fates.iter().filter(|fate| fate.is_none()).count() as u64;
    // In the bad state, frames are lost independently.
    assert!(bounds(in_bad, 0.3).contains(&lost), "{lost} of {in_bad}");

    // Frames sample a Markov chain. Between two frames, the channel changes state with a known
    // transition probability, independent of earlier states (Cox and Miller 1965, section 4.5).
    let share_bad = BAD / (GOOD + BAD);
    let forgets = 1.0 - (-(GAP as f64) * (1.0 / GOOD + 1.0 / BAD)).exp();
    for (from, p) in [
        (false, share_bad * forgets),
        (true, (1.0 - share_bad) * forgets),
    ] {
        let steps = fates.windows(2).filter(|pair| bad(&pair[0]) == from);
        let (mut trials, mut turned) = (0, 0);
        for pair in steps {
            trials += 1;
            turned += u64::from(bad(&pair[1]) != from);
        }
        // Five binomial standard deviations: a probability of 10^-6.
        let deviation = (trials as f64 * p * (1.0 - p)).sqrt();
        let off = (turned as f64 - trials as f64 * p).abs();
        assert!(off < 5.0 * deviation, "{turned} of {trials}, for {p}");
    }
}

#[test]
fn a_seed_decides_all() {
    let text = plugin("30%");
    let first = run(3, &text, &text);
    assert_eq!(run(3, &text, &text), first);
    assert_ne!(run(4, &text, &text), first);
}

#[test]
fn a_release_is_never_before_the_least_delay() {
    let (mut link, _) = link(&format!("delay={}", plugin("30%")), 1);
    assert_eq!(link.poll_slack().as_nanos(), 2_000_000);
    assert!(release(offer(&mut link, 5, &[0; 60])) >= 2_000_005);
}
