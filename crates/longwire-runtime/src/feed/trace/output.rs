//! Pending frames and the status of a trace feed.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use longwire_units::count_of;

use super::TraceFeed;
use crate::feed::{FeedFrame, FeedStatus};

/// Pieces of one record that exceeded a call's limit: bytes, wire length, due time and output.
#[derive(Debug, Default)]
pub(super) struct Pieces(VecDeque<(Vec<u8>, u32, Nanos, usize)>);

impl Pieces {
    pub(super) fn keep(&mut self, fed: FeedFrame<'_>) {
        let bytes = fed.bytes.to_vec();
        self.0.push_back((bytes, fed.wire_len, fed.due, fed.output));
    }

    /// Passes up to `max` frames to `take` and returns their number.
    #[inline]
    pub(super) fn hand_out(&mut self, max: usize, take: &mut dyn FnMut(FeedFrame<'_>)) -> usize {
        let count = max.min(self.0.len());
        for (bytes, wire_len, due, output) in self.0.drain(..count) {
            take(FeedFrame {
                bytes: &bytes,
                wire_len,
                due,
                output,
            });
        }
        count
    }
}

/// Returns a feed's status.
pub(super) fn status(feed: &TraceFeed) -> FeedStatus {
    let counts = &feed.counts;
    let mut listed = vec![
        ("set_back", feed.schedule.set_back()),
        ("filtered", counts.filtered),
        ("outside_window", counts.outside),
        ("too_short", counts.too_short),
        ("truncated", counts.truncated),
        ("rounds", feed.round + u64::from(!feed.over)),
    ];
    listed.extend(feed.inputs.record_counts().named());
    listed.extend(feed.config.alterations.counts());
    FeedStatus {
        name: name(&feed.config.traces),
        fraction: fraction(feed),
        counts: listed,
        notes: notes(feed),
    }
}

fn name(traces: &[String]) -> String {
    let names = traces.iter().map(|name| match name.as_str() {
        "-" => "standard input",
        name => name,
    });
    let names: Vec<&str> = names.collect();
    match names[..] {
        [first, _, _, _, ..] => format!("{first} and {} more", names.len() - 1),
        _ => names.join(", "),
    }
}

/// Returns the feed's progress from 0 to 1: the share of all rounds read or of the frame limit
/// sent, whichever is greater.
fn fraction(feed: &TraceFeed) -> Option<f64> {
    if feed.over {
        // The remaining length of a faulty trace is unknown.
        return (!feed.counts.failed).then_some(1.0);
    }
    let counts = &feed.counts;
    let of_limit = feed
        .config
        .limit
        .map(|limit| counts.sent as f64 / limit.max(1) as f64);
    let of_rounds = feed.config.rounds.and_then(|rounds| {
        let round = feed.inputs.fraction()?;
        Some((feed.round as f64 + round) / rounds.max(1) as f64)
    });
    match (of_limit, of_rounds) {
        (Some(limit), Some(rounds)) => Some(limit.max(rounds).min(1.0)),
        (one, other) => one.or(other).map(|fraction| fraction.min(1.0)),
    }
}

fn notes(feed: &TraceFeed) -> Vec<String> {
    let mut notes = feed.inputs.record_counts().notes();
    let counts = &feed.counts;
    if counts.too_short > 0 {
        notes.push(format!(
            "skipped {} without a complete Ethernet header",
            count_of(counts.too_short, "record")
        ));
    }
    notes.extend(feed.config.alterations.note());
    if feed.schedule.set_back() > 0 {
        notes.push(format!(
            "{} stamped before the preceding frame, sent right after it; sort the trace with: \
             reordercap",
            count_of(feed.schedule.set_back(), "frame")
        ));
    }
    notes
}
