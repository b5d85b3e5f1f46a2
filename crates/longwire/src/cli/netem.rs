//! Translates netem's two-value options.

use longwire_engine::{Correlation, Nanos, Probability};

/// Option whose second value in netem is a jitter.
pub(super) const DELAY: &str = "delay";

/// Option whose second value in netem is a correlation.
pub(super) const LOSS: &str = "loss";

/// Returns the Longwire equivalent of an option with netem's two values.
pub(super) fn two_values(option: &str, first: &str, second: &str) -> Option<String> {
    match option {
        DELAY => jitter(first, second),
        LOSS => correlated_loss(first, second),
        _ => None,
    }
}

/// Returns the equivalent of netem's `20ms 5ms`: a delay and its jitter. If the second time is
/// longer, the values may instead be bounds.
pub(super) fn jitter(delay: &str, jitter: &str) -> Option<String> {
    let [mean, by]: [Nanos; 2] = [delay.parse().ok()?, jitter.parse().ok()?];
    let (min, max) = (mean.saturating_sub(by), mean.saturating_add(by));
    if by > mean {
        return Some(format!(
            "for delays from {mean} to {by}, write uniform:min={mean},max={by}; for netem's delay \
             of {mean} with jitter {by}, write uniform:min={min},max={max}, whose mean is {} \
             because delays cannot be negative",
            Nanos::from_nanos((min.as_nanos() + max.as_nanos()) / 2)
        ));
    }
    Some(format!(
        "a delay with jitter is a model: uniform:min={min},max={max} as in netem, or \
         normal:mean={mean},stddev={by}"
    ))
}

/// Returns the equivalent of netem's `1% 25%`: a loss probability and its correlation.
fn correlated_loss(loss: &str, correlation: &str) -> Option<String> {
    let _: Probability = loss.parse().ok()?;
    let _: Correlation = correlation.parse().ok()?;
    Some(format!(
        "a loss with correlation is a model: correlated:rate={loss},correlation={correlation}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_time_is_a_jitter_or_a_bound() {
        let model = "a delay with jitter is a model: uniform:min=15ms,max=25ms as in netem, or \
                     normal:mean=20ms,stddev=5ms";
        assert_eq!(jitter("20ms", "5ms").as_deref(), Some(model));
        let bounds = "for delays from 20ms to 30ms, write uniform:min=20ms,max=30ms; for netem's \
                      delay of 20ms with jitter 30ms, write uniform:min=0ns,max=50ms, whose mean \
                      is 25ms because delays cannot be negative";
        assert_eq!(jitter("20ms", "30ms").as_deref(), Some(bounds));
        assert_eq!(jitter("20ms", "far"), None);
    }
}
