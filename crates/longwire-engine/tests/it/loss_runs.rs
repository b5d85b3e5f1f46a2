//! Independent loss with a limit on consecutive losses.

use longwire_engine::{DropReason, Verdict};

use crate::common::{config, link, verdicts};

/// Returns whether each of `count` frames was lost.
fn lost(loss: &str, count: u64) -> Vec<bool> {
    let mut link = link(&format!("loss=packet:{loss}"), 4);
    let verdicts = verdicts(&mut link, count, 1_000);
    let lost = verdicts.iter().map(|verdict| match verdict {
        Verdict::Deliver(_) => false,
        Verdict::Drop(DropReason::Loss) => true,
        other => panic!("{other:?}"),
    });
    lost.collect()
}

/// Draws are the same as without a limit, but a loss that would follow `max` losses passes.
#[test]
fn a_limit_lets_the_frame_after_the_longest_run_pass() {
    for rate in ["1%", "30%", "50%", "97%", "100%"] {
        let unlimited = lost(rate, 20_000);
        for max in [1, 2, 3, 7, 1_000_000] {
            let mut run = 0;
            let limited = unlimited.iter().map(|lost| {
                let lost = *lost && run < max;
                run = if lost { run + 1 } else { 0 };
                lost
            });
            let found = lost(&format!("rate={rate},run-max={max}"), 20_000);
            assert!(limited.eq(found), "{rate} {max}");
        }
    }
    let every = lost("rate=100%,run-max=3", 9);
    let expected = [true, true, true, false, true, true, true, false, true];
    assert_eq!(every, expected);
}

/// Compares the loss in the warning with a step-by-step iteration of the chain.
#[test]
fn a_limit_that_lowers_the_loss_is_doubted() {
    for (p, text, max) in [(1.0, "100%", 3), (0.5, "50%", 1), (0.8, "80%", 2)] {
        let mut states = vec![0.0; max + 1];
        states[0] = 1.0;
        let mut of_all = 0.0;
        // Averaged over steps, because a deterministic chain does not converge.
        for _ in 0..100_000 {
            let lost: Vec<f64> = states[..max].iter().map(|state| state * p).collect();
            let passed = 1.0 - lost.iter().sum::<f64>();
            of_all += (1.0 - passed) / 100_000.0;
            states = std::iter::once(passed).chain(lost).collect();
        }
        let doubts = config(&format!("loss=packet:{text},run-max={max}")).doubts;
        assert_eq!(doubts.len(), 1);
        let said = &doubts[0].message;
        let number = said.split([' ', '%']).nth(9).expect("a number");
        let number: f64 = number.parse().expect("a number");
        assert!((number - of_all * 100.0).abs() < 0.01, "{said} {of_all}");
        assert!(said.contains(&format!(" from {text} to ")), "{said}");
    }
    for loss in ["30%,run-max=3", "0%,run-max=1", "1%", "100%"] {
        let doubts = config(&format!("loss=packet:{loss}")).doubts;
        assert_eq!(doubts, [], "{loss}");
    }
}
