//! The option grammar: whatever is written is read or refused with a
//! message, what is read is written so that it reads the same again, and
//! makes a link that keeps time.
//!
//! The input is text. Each line is the name of a kind of model or of a unit,
//! a space, and what a user might write there: `delay uniform:min=1ms,max=2ms`.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use longwire_engine::models::{DELAY, FRAMING, Kind, LOSS, ORDER, QUEUE, RATE};
use longwire_engine::units::{UnitError, parse_count, parse_ratio};
use longwire_engine::{
    BitRate, Bytes, FrameMeta, Link, LinkConfig, LinkId, Nanos, Packets, Probability, Verdict,
};

/// Checks every line, and then the link that all of them together make.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut config = LinkConfig::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "rate" => config.rate = model(&RATE, value).unwrap_or(config.rate.into()).bit_rate(),
            "delay" => config.delay = model(&DELAY, value).unwrap_or(config.delay),
            "loss" => config.loss.extend(model(&LOSS, value)),
            "queue" => config.queue = model(&QUEUE, value).or(config.queue),
            "framing" => config.framing = model(&FRAMING, value).unwrap_or(config.framing),
            "order" => config.order = model(&ORDER, value).unwrap_or(config.order),
            _ => check_unit(name, value),
        }
    }
    check_link(config);
}

/// Reads a model, writes it, and reads that.
fn model<M: Display>(kind: &Kind<M>, text: &str) -> Option<M> {
    match kind.parse(text) {
        Ok(model) => {
            let written = model.to_string();
            let again = kind.parse(&written);
            let again = again.unwrap_or_else(|error| panic!("'{text}' as '{written}': {error}"));
            assert_eq!(again.to_string(), written, "{} {text}", kind.name);
            Some(model)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn check_unit(name: &str, text: &str) {
    match name {
        "time" => unit::<Nanos>(text),
        "bitrate" => unit::<BitRate>(text),
        "size" => unit::<Bytes>(text),
        "packets" => unit::<Packets>(text),
        "probability" => {
            // Shown rounded: what is shown is what must stay the same.
            if let Ok(value) = text.parse::<Probability>() {
                let shown = value.to_string();
                let again = shown.parse::<Probability>().map(|value| value.to_string());
                assert_eq!(again, Ok(shown), "{text}");
            }
        }
        "ratio" => {
            let ratio = parse_ratio(text);
            assert!(ratio.is_err() || ratio.is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)));
        }
        _ => assert!(
            parse_count(text).map_or(true, |count| parse_count(&count.to_string()) == Ok(count))
        ),
    }
}

/// Reads a value, writes it, and reads that.
fn unit<T: FromStr<Err = UnitError> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse::<T>(), Ok(value), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Offers frames of all lengths to the link: departures and releases never
/// go back, and never come before the arrival.
fn check_link(config: LinkConfig) {
    const SEED: u64 = 1;
    let mut link = Link::new(config, SEED, LinkId(0));
    let mut last = (Nanos::ZERO, Nanos::ZERO);
    for n in 0..32u64 {
        let frame = FrameMeta {
            arrival: Nanos::from_nanos(n * n * n * 1_000),
            len: (n * n * 70) as u32,
        };
        let Verdict::Deliver(delivery) = link.offer(frame, &[]) else {
            continue;
        };
        assert!(frame.arrival <= delivery.departure && delivery.departure <= delivery.release);
        assert!(last.0 <= delivery.departure);
        assert!(last.1 <= delivery.release || !link.in_order());
        last = (delivery.departure, delivery.release);
    }
}
