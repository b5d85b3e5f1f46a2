//! A link's options over time, according to its scenario.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

use crate::api::ScenarioSpec;

/// Minimum repetition period.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// Error in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// A duration does not have the form `1m30s`.
    #[error("'{0}' is not a duration; for example: 500ms, 90s or 1m30s")]
    Duration(String),
    /// The start is not a valid time.
    #[error("startAt '{0}' is not a time; for example: 2026-11-24T09:30:00Z")]
    Start(String),
    /// A step is after the end of the repetition period.
    #[error("step {position} at {at:?} is after the repetition period of {every:?}")]
    AfterRepeat {
        /// Index of the step.
        position: usize,
        /// Time of the step.
        at: Duration,
        /// Repetition period.
        every: Duration,
    },
    /// The repetition period is too short.
    #[error("every must be at least 100ms")]
    TooShort,
}

/// Changes of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Steps in time order.
    steps: Vec<(Duration, Map<String, Value>)>,
    /// Repetition period, and number of repetitions.
    repeat: Option<(Duration, Option<u64>)>,
    /// Start as Unix time; `None` to start when the link is attached.
    start: Option<Duration>,
}

impl Timeline {
    /// Parses a scenario; `start` is the start set by a Link (RFC 3339).
    ///
    /// # Errors
    /// See [`TimelineError`].
    pub fn read(spec: &ScenarioSpec, start: Option<&str>) -> Result<Timeline, TimelineError> {
        let start = start.map(parse_time).transpose()?;
        let steps = spec.steps.iter();
        let steps = steps.map(|step| Ok((parse_duration(&step.at)?, step.set.clone())));
        let mut steps = steps.collect::<Result<Vec<_>, TimelineError>>()?;
        let repeat = match &spec.repeat {
            None => None,
            Some(repeat) => {
                let every = parse_duration(&repeat.every)?;
                if every < EVERY_MIN {
                    return Err(TimelineError::TooShort);
                }
                let times = repeat.times.map(|times| times.max(1).unsigned_abs());
                Some((every, times))
            }
        };
        if let Some((every, _)) = repeat
            && let Some(position) = steps.iter().position(|(at, _)| *at >= every)
        {
            let at = steps[position].0;
            return Err(TimelineError::AfterRepeat {
                position,
                at,
                every,
            });
        }
        // A stable sort keeps the order of simultaneous steps.
        steps.sort_by_key(|(at, _)| *at);
        Ok(Timeline {
            steps,
            repeat,
            start,
        })
    }

    /// Returns a link's options at a time, and the time until the next change.
    ///
    /// `now` and `attached` are Unix times; `attached` is `None` before the link is attached.
    pub fn at(
        &self,
        link: &Map<String, Value>,
        now: Duration,
        attached: Option<Duration>,
    ) -> (Map<String, Value>, Option<Duration>) {
        let mut options = link.clone();
        let Some(start) = self.start.or(attached) else {
            return (options, None);
        };
        let Some(elapsed) = now.checked_sub(start) else {
            return (options, Some(start - now));
        };
        let (elapsed, until_end) = self.within(elapsed);
        let mut next = until_end;
        for (at, set) in &self.steps {
            if *at <= elapsed {
                merge(&mut options, set);
            } else {
                next = Some(*at - elapsed);
                break;
            }
        }
        (options, next)
    }

    /// Returns the time since the start of the current repetition, and the time until the next one.
    fn within(&self, elapsed: Duration) -> (Duration, Option<Duration>) {
        let Some((every, times)) = self.repeat else {
            return (elapsed, None);
        };
        let passed = elapsed.as_nanos() / every.as_nanos();
        // The last repetition has no end.
        let last = times.map(|times| u128::from(times) - 1);
        let repetition = last.map_or(passed, |last| passed.min(last));
        // Fits, because Unix times in nanoseconds do until 2554.
        let begin = Duration::from_nanos((every.as_nanos() * repetition) as u64);
        let inside = elapsed - begin;
        (inside, (last != Some(repetition)).then(|| every - inside))
    }
}

fn parse_time(text: &str) -> Result<Duration, TimelineError> {
    let wrong = || TimelineError::Start(text.to_owned());
    let time: Timestamp = text.parse().map_err(|_| wrong())?;
    Duration::try_from(time.as_duration()).map_err(|_| wrong())
}

/// Parses a duration with the units `ms`, `s`, `m` and `h`, such as `1m30s`.
///
/// # Errors
/// If the text has a different form, or the duration overflows.
pub fn parse_duration(text: &str) -> Result<Duration, TimelineError> {
    let wrong = || TimelineError::Duration(text.to_owned());
    let mut total = Duration::ZERO;
    let mut rest = text;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(digits.ok_or_else(wrong)?);
        let letters = after.find(|c: char| c.is_ascii_digit());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

/// Option tables for one direction.
const DIRECTIONS: [&str; 2] = ["up", "down"];

/// Applies the options of a step to a link. An option for both directions also replaces those in
/// `up` and `down`; null removes an option.
pub fn merge(link: &mut Map<String, Value>, set: &Map<String, Value>) {
    for (name, value) in set {
        if DIRECTIONS.contains(&name.as_str())
            && let Value::Object(set) = value
        {
            let direction = link.entry(name.as_str()).or_insert_with(empty);
            if let Value::Object(direction) = direction {
                set.iter()
                    .for_each(|(name, value)| put(direction, name, value));
            }
            continue;
        }
        for direction in DIRECTIONS {
            if let Some(Value::Object(direction)) = link.get_mut(direction) {
                direction.remove(name);
            }
        }
        put(link, name, value);
    }
    link.retain(|name, options| !DIRECTIONS.contains(&name.as_str()) || *options != empty());
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn put(options: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        options.remove(name);
    } else {
        options.insert(name.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn timeline(spec: Value, start: Option<&str>) -> Result<Timeline, TimelineError> {
        Timeline::read(&serde_json::from_value(spec).expect("a scenario"), start)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn delay_at(timeline: &Timeline, now: u64) -> (Value, Option<Duration>) {
        let link = Map::from_iter([("delay".to_owned(), json!("5ms"))]);
        let (options, next) = timeline.at(&link, seconds(1000 + now), Some(seconds(1000)));
        (options["delay"].clone(), next)
    }

    fn two_steps(repeat: Value) -> Value {
        json!({
            "steps": [
                { "at": "20s", "set": { "delay": "40ms" } },
                { "at": "10s", "set": { "delay": "20ms" } },
            ],
            "repeat": repeat,
        })
    }

    #[test]
    fn steps_are_applied_in_order_of_time() {
        let twice = json!({ "every": "30s", "times": 2 });
        let always = json!({ "every": "30s" });
        let later = Some("1970-01-01T00:20:00Z");
        let late = 30 * 1_000_000;
        for (repeat, start, now, delay, next) in [
            (&Value::Null, None, 0, "5ms", Some(10)),
            (&Value::Null, None, 9, "5ms", Some(1)),
            (&Value::Null, None, 10, "20ms", Some(10)),
            (&Value::Null, None, 99, "40ms", None),
            // A repetition begins with the options of the link.
            (&twice, None, 25, "40ms", Some(5)),
            (&twice, None, 30, "5ms", Some(10)),
            (&twice, None, 50, "40ms", None),
            // The last step of the last repetition holds.
            (&twice, None, 1000, "40ms", None),
            (&always, None, late, "5ms", Some(10)),
            (&always, None, late + 12, "20ms", Some(8)),
            (&Value::Null, later, 0, "5ms", Some(200)),
            (&Value::Null, later, 211, "20ms", Some(9)),
        ] {
            let timeline = timeline(two_steps(repeat.clone()), start).expect("it is right");
            let expected = (json!(delay), next.map(seconds));
            assert_eq!(
                delay_at(&timeline, now),
                expected,
                "{repeat} {start:?} {now}"
            );
        }
    }

    #[test]
    fn invalid_scenarios_are_refused() {
        let one = |at: &str| json!({ "steps": [{ "at": at, "set": { "delay": "1ms" } }] });
        for wrong in ["", "10", "s", "1 s", "-1s", "1d", "1..2s", "9e9h"] {
            let result = timeline(one(wrong), None);
            assert_eq!(result, Err(TimelineError::Duration(wrong.to_owned())));
        }
        let after = timeline(two_steps(json!({ "every": "15s" })), None);
        assert!(matches!(after, Err(TimelineError::AfterRepeat { .. })));
        let start = timeline(one("1s"), Some("tomorrow"));
        assert_eq!(start, Err(TimelineError::Start("tomorrow".to_owned())));
    }

    #[test]
    fn durations_add_up() {
        let read = |text| parse_duration(text).expect("it is right");
        assert_eq!(read("1m30s"), seconds(90));
        assert_eq!(read("0.5s500ms"), seconds(1));
        assert_eq!(read("2h"), seconds(7200));
    }

    #[test]
    fn a_step_replaces_options_of_both_directions_and_null_removes_them() {
        for (link, set, expected) in [
            (
                json!({ "delay": "20ms", "up": { "delay": "5ms", "rate": "1mbit" } }),
                json!({ "delay": "40ms", "down": { "loss": "1%" } }),
                json!({ "delay": "40ms", "up": { "rate": "1mbit" }, "down": { "loss": "1%" } }),
            ),
            (
                json!({ "delay": "20ms", "down": { "loss": "1%" } }),
                json!({ "delay": null, "down": { "loss": null } }),
                json!({}),
            ),
        ] {
            let mut merged = link.as_object().expect("an object").clone();
            merge(&mut merged, set.as_object().expect("an object"));
            assert_eq!(Value::Object(merged), expected, "{link} {set}");
        }
    }
}
