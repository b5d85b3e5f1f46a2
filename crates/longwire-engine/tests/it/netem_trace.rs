//! Models serialised by the netem-trace crate 0.4.6, in all forms, compared with netem-trace's own
//! values for them (`data/netem-trace`).

use longwire_testbed::support::rows;
use std::collections::HashMap;

use longwire_engine::trace::{Contents, Quantity};
use longwire_engine::{Nanos, models};

use crate::common::files::{file, frame_context, stream};
use crate::common::traces::read_usual;

/// Returns the named parts of a model file.
fn parts(text: &str) -> HashMap<&str, &str> {
    let parts = text.split("== ").filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('\n').unwrap()).collect()
}

/// Merges adjacent rows of equal value, as series do.
fn joined(rows: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut joined: Vec<(String, u64)> = Vec::new();
    for (value, time) in rows {
        match joined.last_mut() {
            Some(last) if last.0 == value => last.1 += time,
            _ => joined.push((value, time)),
        }
    }
    joined
}

/// Returns the part `values`; an empty pattern selects no frame.
fn values(part: &str) -> Vec<(String, u64)> {
    joined(part.lines().map(|row| {
        let (time, value) = row.split_once(' ').unwrap();
        (value.replace("[]", "[0.0]"), time.parse().unwrap())
    }))
}

/// Returns one repetition of a parsed document.
fn contents(quantity: Quantity, text: &str) -> Vec<(String, u64)> {
    match read_usual(quantity, text) {
        Ok(Contents::Series(series, false)) => joined(
            series
                .stretches()
                .map(|(value, time)| (value.to_string(), time)),
        ),
        Ok(Contents::Patterns(patterns, false)) => {
            let shown = |steps: &u64| match *steps as f64 / Quantity::LOSS_STEPS as f64 {
                whole if whole.fract() == 0.0 => format!("{whole:.1}"),
                part => part.to_string(),
            };
            let rows = patterns.series.stretches().map(|(index, time)| {
                let pattern: Vec<String> =
                    patterns.sets[index as usize].iter().map(shown).collect();
                (format!("[{}]", pattern.join(" ")), time)
            });
            joined(rows)
        }
        other => panic!("{text}: {other:?}"),
    }
}

fn check(quantity: Quantity, name: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/data/netem-trace");
    let text = std::fs::read_to_string(format!("{folder}/{name}.txt")).expect(name);
    let parts = parts(&text);
    let values = values(parts["values"]);
    assert!(!values.is_empty());
    for form in ["human.json", "human.toml", "plain.json", "plain.toml"] {
        let found = contents(quantity, parts[form]);
        assert_eq!(found, values, "{name} in the form {form}");
    }
}

#[test]
fn models_are_read_in_every_form() {
    for (quantity, names) in [
        (
            Quantity::Rate,
            "bw-trace bw-trace-in-pattern bw-static bw-static-default bw-normalized bw-sawtooth \
             bw-sawtooth-only-rising bw-repeated",
        ),
        (
            Quantity::Delay,
            "delay-static delay-static-default delay-repeated",
        ),
        (
            Quantity::Loss,
            "loss-static loss-static-default loss-repeated",
        ),
        (Quantity::Duplication, "duplicate-static duplicate-repeated"),
    ] {
        for name in names.split(' ') {
            check(quantity, name);
        }
    }
}

/// Certain and impossible losses after runs of 0, 1 and 2 losses; the last entry applies to longer
/// runs.
#[test]
fn patterns_count_the_frames_chosen_in_a_row() {
    let text = "{\"RepeatedLossPatternConfig\":{\"pattern\":[\
                {\"StaticLossConfig\":{\"loss\":[1,1,0],\"duration\":\"6ns\"}},\
                {\"StaticLossConfig\":{\"loss\":[0],\"duration\":\"2ns\"}},\
                {\"StaticLossConfig\":{\"loss\":[1.0,0.0],\"duration\":\"4ns\"}},\
                {\"StaticLossConfig\":{\"loss\":[],\"duration\":\"2ns\"}}],\"count\":0}}";
    let expected = "110110001010001101100010";
    let mut loss = models::LOSS
        .parse_with("trace:file=x", &file(text))
        .unwrap();
    loss.model.start(Nanos::from_nanos(100));
    let lost = |at| match loss
        .model
        .judge(&frame_context(100 + at, 64), &mut stream())
    {
        Some(_) => '1',
        None => '0',
    };
    assert_eq!((0..24u64).map(lost).collect::<String>(), expected);

    let text = text
        .replace("Loss", "Duplicate")
        .replace("loss", "duplicate");
    let spec = "trace:file=x,copies=3";
    let mut model = models::DUPLICATION.parse_with(spec, &file(&text)).unwrap();
    model.start(Nanos::from_nanos(100));
    let doubled = |at| match model.judge(&frame_context(100 + at, 64), &mut stream()) {
        Some(copies) if copies.count == 3 => '1',
        _ => '0',
    };
    assert_eq!((0..24u64).map(doubled).collect::<String>(), expected);
}

#[test]
fn wrong_patterns_are_refused() {
    for [text, message] in rows(
        "
        {\"StaticLossConfig\":{\"loss\":[1.5]}} | loss: 1.5 is above 1
        {\"StaticLossConfig\":{\"loss\":0.5}} | not a list of probabilities
        {\"StaticLossConfig\":{\"loss\":[-0.5]}} | negative
        {\"StaticBwConfig\":{}} | unknown loss model
    ",
    ) {
        let refused = models::LOSS.parse_with("trace:file=x", &file(text));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
}
