//! For every registered queue, verdicts do not depend on polling times.

use longwire_engine::models;
use longwire_engine::spec::{ModelInfo, Param, Unit};

use crate::queues::link::{Fate, Run, link};
use crate::queues::traffic::{Draws, Pattern, pattern_at};

/// Returns the queue's texts: with each value of each choice, and with examples for parameters
/// without a default.
pub fn texts(info: &ModelInfo) -> Vec<String> {
    let pair = |param: &Param, value: &str| format!("{}={value}", param.name);
    let with = |pairs: &[String]| format!("{}:{}", info.name, pairs.join(","));
    let optional = info.params.iter().filter(|param| param.default.is_none());
    let optional: Vec<String> = optional
        .map(|param| pair(param, param.unit.example()))
        .collect();
    let mut texts = vec![with(&optional)];
    for param in info.params {
        if let Unit::Choice(words) = param.unit {
            let chosen = |word: &&str| [&optional[..], &[pair(param, word)]].concat();
            texts.extend(words.iter().map(|word| with(&chosen(word))));
        }
    }
    if info.params.iter().any(|param| param.name == "classes") {
        texts.push(with(&["classes=pcp".to_owned()]));
    }
    texts
}

/// Runs patterns for every text of every queue, at rates low enough for milliseconds to matter.
/// `take` receives text, pattern and seed.
pub fn for_every_queue(patterns: u64, mut take: impl FnMut(&str, &Pattern, u64)) {
    for entry in models::QUEUE.entries {
        for text in texts(&entry.info) {
            for seed in 0..patterns {
                let mut draws = Draws::new(seed);
                let frames = draws.scale(10, 1_500) as usize;
                let rate = draws.scale(500_000, 20_000_000);
                take(&text, &pattern_at(&mut draws, frames, rate), seed);
            }
        }
    }
}

/// Fates, and frames in verdict order.
type Outcome = (Vec<Fate>, Vec<usize>);

/// Runs a pattern. `before` may poll before each offer, up to the given time.
fn outcome(
    text: &str,
    pattern: &Pattern,
    seed: u64,
    mut before: impl FnMut(&mut Run, u64),
) -> Outcome {
    let link = link(pattern.rate, text, seed);
    let mut run = Run::new(link, pattern.packets.len());
    for packet in &pattern.packets {
        before(&mut run, packet.arrival);
        run.poll(packet.arrival);
        run.offer(packet);
    }
    run.finish()
}

fn polled_at_arrivals(text: &str, pattern: &Pattern, seed: u64) -> Outcome {
    outcome(text, pattern, seed, |_, _| {})
}

/// Polls at every time returned by the link.
fn polled_eagerly(text: &str, pattern: &Pattern, seed: u64) -> Outcome {
    outcome(text, pattern, seed, |run, until| {
        while let Some(at) = run.link.next_at().map(|at| at.as_nanos())
            && at <= until
        {
            run.poll(at);
        }
    })
}

fn polled_at_random(text: &str, pattern: &Pattern, seed: u64) -> Outcome {
    let mut draws = Draws::new(!seed);
    let mut now = 0;
    outcome(text, pattern, seed, |run, until| {
        while draws.once_in(2) && now < until {
            now = draws.between(now, until);
            run.poll(now);
        }
        now = now.max(until);
    })
}

#[test]
fn polling_late_or_early_changes_no_decision() {
    for_every_queue(60, |text, pattern, seed| {
        let expected = polled_at_arrivals(text, pattern, seed);
        let eager = polled_eagerly(text, pattern, seed);
        assert_eq!(eager, expected, "{text}, pattern {seed}, eagerly");
        let random = polled_at_random(text, pattern, seed);
        assert_eq!(random, expected, "{text}, pattern {seed}, at random times");
    });
}
