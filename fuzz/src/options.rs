//! The option grammar: any text is either parsed or refused with a message. The text form of a
//! parsed value has the same meaning, and the value builds a link with consistent times.
//!
//! The input is text. Each line is the name of a model kind or of a unit, a space, and an argument
//! in user syntax: `delay uniform:min=1ms,max=2ms`. The text after a line `---` is the content of
//! every file that a model reads.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use longwire_engine::models::{self, Kind};
use longwire_engine::{
    BitRate, Bytes, Correlation, FrameMeta, Link, LinkConfig, LinkId, Loader, Nanos, Packets,
    Probability, TakePiece, Verdict,
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
        check_line(&mut config, name, value, &OptionLoader(file));
    }
    check_link(config);
}

fn check_line(config: &mut LinkConfig, name: &str, value: &str, file: &OptionLoader<'_>) {
    match name {
        "rate" => set(&mut config.rate, model(&models::RATE, value, file)),
        "framing" => set(&mut config.framing, model(&models::FRAMING, value, file)),
        "queue" => set(
            &mut config.queue,
            model(&models::QUEUE, value, file).map(Some),
        ),
        "loss" => config.loss.extend(model(&models::LOSS, value, file)),
        "corrupt" => set(
            &mut config.corruption,
            model(&models::CORRUPTION, value, file).map(Some),
        ),
        "duplicate" => {
            set(
                &mut config.duplication,
                model(&models::DUPLICATION, value, file).map(Some),
            );
        }
        "delay" => set(&mut config.delay, model(&models::DELAY, value, file)),
        "reorder" => set(
            &mut config.reordering,
            model(&models::REORDERING, value, file).map(Some),
        ),
        "order" => set(&mut config.order, model(&models::ORDER, value, file)),
        "mtu" => set(&mut config.mtu, model(&models::MTU, value, file)),
        "router" => set(
            &mut config.router,
            model(&models::ROUTER, value, file).map(Some),
        ),
        "rewrite" => config.rewrite.extend(model(&models::REWRITE, value, file)),
        _ => check_unit(name, value),
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A loader whose files all have the same contents.
struct OptionLoader<'a>(&'a str);

impl Loader for OptionLoader<'_> {
    fn read(&self, _path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.0.as_bytes().chunks(11).try_for_each(take)
    }
}

/// Parses a model, formats it, and parses the result.
fn model<M: Display>(kind: &Kind<M>, text: &str, file: &OptionLoader<'_>) -> Option<M> {
    match kind.parse_with(text, file) {
        Ok(model) => {
            let written = model.to_string();
            let again = kind.parse_with(&written, file);
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
            // Formatting rounds, so compare the formatted values.
            if let Ok(value) = text.parse::<Probability>() {
                let shown = value.to_string();
                let again = shown.parse::<Probability>().map(|value| value.to_string());
                assert_eq!(again, Ok(shown), "{text}");
            }
        }
        "correlation" => {
            if let Ok(value) = text.parse::<Correlation>() {
                let shown = value.to_string();
                let again = shown.parse::<Correlation>().map(|value| value.to_string());
                assert_eq!(again, Ok(shown), "{text}");
                assert!((-1.0..=1.0).contains(&value.as_f64()), "{text}");
            }
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
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse::<T>(), Ok(value), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
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
        // Bounded, because a link might return verdicts forever.
        for _ in 0..100_000 {
            let Some((_, verdict)) = link.poll(..=arrival, &()) else {
                break;
            };
            check_verdict(&mut link, verdict, arrival, &mut last, &mut bytes.clone());
        }
        let len = (n * n * 70) as usize;
        let frame = FrameMeta::new(arrival, len as u32);
        let verdict = link.offer(frame, &bytes[..len]);
        if let Verdict::Deliver(delivery) = verdict {
            assert!(arrival <= delivery.departure);
        }
        check_verdict(
            &mut link,
            verdict,
            arrival,
            &mut last,
            &mut bytes[..len].to_vec(),
        );
        while let Some(copy) = link.next_copy() {
            let mut bytes = bytes[..len].to_vec();
            check_verdict(
                &mut link,
                Verdict::Deliver(copy),
                arrival,
                &mut last,
                &mut bytes,
            );
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
    assert!(
        delivery.departure <= delivery.release,
        "{arrival}: {delivery:?}"
    );
    assert!(last.0 <= delivery.departure);
    assert!(last.1 <= delivery.release || !link.in_order());
    *last = (delivery.departure, delivery.release);
    if delivery.edits.any() {
        link.edit(&delivery, bytes);
    }
}
