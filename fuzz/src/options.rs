//! The option grammar: any text is either parsed or refused with a message. The text form of a
//! parsed value has the same meaning, and the value builds a link with consistent times.
//!
//! The input is text. Each line is the name of a model kind or of a unit, a space, and an argument
//! in user syntax: `delay uniform:min=1ms,max=2ms`. The text after a line `---` is the content of
//! every file that a model reads.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::{OneFile, accepted};
use longwire_engine::models::{self, Kind};
use longwire_engine::{
    BitRate, Bytes, Correlation, FrameMeta, Link, LinkConfig, LinkId, Nanos, Packets, Probability,
    Verdict,
};
use longwire_units::{UnitError, parse_count, parse_ratio, parse_real, parse_signed};

/// Checks every line, then a link with all models together.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, file) = text.split_once("\n---\n").unwrap_or((text, ""));
    let mut config = LinkConfig::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        check_line(&mut config, name, value, &OneFile(file.as_bytes()));
    }
    check_link(config);
}

fn check_line(config: &mut LinkConfig, name: &str, value: &str, file: &OneFile<'_>) {
    match name {
        "rate" => set(&mut config.rate, &models::RATE, value, file),
        "framing" => set(&mut config.framing, &models::FRAMING, value, file),
        "queue" => set(&mut config.queue, &models::QUEUE, value, file),
        "loss" => config.loss.extend(model(&models::LOSS, value, file)),
        "corrupt" => set(&mut config.corruption, &models::CORRUPTION, value, file),
        "duplicate" => set(&mut config.duplication, &models::DUPLICATION, value, file),
        "delay" => set(&mut config.delay, &models::DELAY, value, file),
        "reorder" => set(&mut config.reordering, &models::REORDERING, value, file),
        "order" => set(&mut config.order, &models::ORDER, value, file),
        "mtu" => set(&mut config.mtu, &models::MTU, value, file),
        "router" => set(&mut config.router, &models::ROUTER, value, file),
        "rewrite" => config.rewrite.extend(model(&models::REWRITE, value, file)),
        _ => check_unit(name, value),
    }
}

fn set<M: Display, T: From<M>>(place: &mut T, kind: &Kind<M>, text: &str, file: &OneFile<'_>) {
    if let Some(model) = model(kind, text, file) {
        *place = model.into();
    }
}

/// Parses a model, formats it, and parses the result.
fn model<M: Display>(kind: &Kind<M>, text: &str, file: &OneFile<'_>) -> Option<M> {
    let model = accepted(kind.parse_with(text, file))?;
    let written = model.to_string();
    let again = kind.parse_with(&written, file);
    let again = again.unwrap_or_else(|error| panic!("'{text}' as '{written}': {error}"));
    assert_eq!(again.to_string(), written, "{} {text}", kind.name);
    Some(model)
}

fn check_unit(name: &str, text: &str) {
    match name {
        "time" => unit::<Nanos>(text),
        "bitrate" => unit::<BitRate>(text),
        "size" => unit::<Bytes>(text),
        "packets" => unit::<Packets>(text),
        "probability" => _ = shown_again::<Probability>(text),
        "correlation" => {
            let value = shown_again::<Correlation>(text).map_or(0.0, Correlation::as_f64);
            assert!((-1.0..=1.0).contains(&value), "{text}");
        }
        "real" => assert!(parse_real(text).map_or(true, f64::is_finite)),
        "signed" => assert!(
            parse_signed(text).map_or(true, |value| parse_signed(&value.to_string()) == Ok(value))
        ),
        "ratio" => {
            let ratio = parse_ratio(text);
            assert!(ratio.is_err() || ratio.is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)));
        }
        _ => assert!(
            parse_count(text).map_or(true, |count| parse_count(&count.to_string()) == Ok(count))
        ),
    }
}

/// Parses a value, formats it, and parses the result.
fn unit<T: FromStr<Err = UnitError> + Display + Debug + PartialEq>(text: &str) {
    if let Some(value) = accepted(text.parse::<T>()) {
        assert_eq!(value.to_string().parse::<T>(), Ok(value), "{text}");
    }
}

/// Parses a value, formats it, and parses the result. Compares formatted values, because formatting
/// rounds.
fn shown_again<T: FromStr<Err = UnitError> + Display>(text: &str) -> Option<T> {
    let value = accepted(text.parse::<T>())?;
    let shown = value.to_string();
    let again = shown.parse::<T>().map(|value| value.to_string());
    assert_eq!(again, Ok(shown), "{text}");
    Some(value)
}

/// Sends frames of all lengths through the link. Checks that departures never decrease, that
/// releases never decrease unless reordering is configured, and that neither precedes the arrival.
/// Verdicts may come later.
fn check_link(config: LinkConfig) {
    const SEED: u64 = 1;
    let mut link = Link::new(config, SEED, LinkId(0));
    let mut last = (Nanos::ZERO, Nanos::ZERO);
    let mut bytes: Vec<u8> = (0..70_000u32).map(|n| (n % 251) as u8).collect();
    // UDP over IPv4, as far as models parse it.
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x02]);
    bytes[23] = 17;
    for n in 0..32u64 {
        let arrival = Nanos::from_nanos(n * n * n * 1_000);
        // Limit the loop, because a link might return verdicts forever.
        for _ in 0..100_000 {
            let Some((_, verdict)) = link.poll(..=arrival, &()) else {
                break;
            };
            check_verdict(&mut link, verdict, arrival, &mut last, &mut bytes.clone());
        }
        let len = (n * n * 70) as usize;
        let frame = FrameMeta::new(arrival, len as u32);
        let mut next = Some(link.offer(frame, &bytes[..len]));
        if let Some(Verdict::Deliver(delivery)) = next {
            assert!(arrival <= delivery.departure);
        }
        while let Some(verdict) = next {
            let mut bytes = bytes[..len].to_vec();
            check_verdict(&mut link, verdict, arrival, &mut last, &mut bytes);
            next = link.next_copy().map(Verdict::Deliver);
        }
    }
}

fn check_verdict(
    link: &mut Link,
    verdict: Verdict,
    arrival: Nanos,
    last: &mut (Nanos, Nanos),
    bytes: &mut [u8],
) {
    let Verdict::Deliver(delivery) = verdict else {
        return;
    };
    let in_order = delivery.departure <= delivery.release;
    assert!(in_order, "{arrival}: {delivery:?}");
    assert!(last.0 <= delivery.departure);
    assert!(last.1 <= delivery.release || !link.in_order());
    *last = (delivery.departure, delivery.release);
    if delivery.edits.any() {
        link.edit(&delivery, bytes);
    }
}
