//! Queue disciplines: comparison with independent event-driven implementations of their papers,
//! late polling, conservation and order, and behaviour under TCP.

mod behaviour;
mod conservation;
mod equality;
mod idle;
mod link;
mod oracle;
mod simultaneous;
mod tcp;
mod traffic;

use longwire_engine::models;
use longwire_engine::spec::{ModelInfo, Param, Unit};

use traffic::{Draws, Pattern, pattern_at};

/// Returns the queue's texts: with each value of each choice, and with examples for parameters
/// without a default.
fn texts(info: &ModelInfo) -> Vec<String> {
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
fn for_every_queue(patterns: u64, mut take: impl FnMut(&str, &Pattern, u64)) {
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
