//! Configuration of a trace feed, and positions in a trace.

use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_engine::replay::Pace;
use longwire_packet::alter::Alterations;
use longwire_packet::filter::Filter;
use longwire_packet::split::Splitter;
use longwire_units::Date;

/// Configuration of a trace feed.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// Trace files; `-` is standard input.
    pub traces: Vec<String>,
    /// Whether to merge all traces by timestamp instead of sending them one after another.
    pub merge: bool,
    /// Whether to send each trace to a separate output, in one order by timestamp.
    pub apart: bool,
    /// The only pcapng interface to send, by name or by number from 0.
    pub interface: Option<String>,
    /// How frames are paced.
    pub pace: Pace,
    /// Maximum gap between frames. Longer gaps are shortened to it.
    pub gap_cap: Option<Nanos>,
    /// Number of rounds, at least one; `None` repeats forever.
    pub rounds: Option<u64>,
    /// Gap between rounds; by default, the mean gap.
    pub round_gap: Option<Nanos>,
    /// Maximum number of frames over all rounds.
    pub limit: Option<u64>,
    /// Skip frames before this position. An offset counts from each trace's first frame or, with
    /// `merge`, from the first frame of all traces.
    pub from: Option<Moment>,
    /// Skip frames from this position on.
    pub until: Option<Moment>,
    /// Send only matching frames.
    pub filter: Option<Filter>,
    /// Alterations to frames before they are sent.
    pub alterations: Alterations,
    /// Splits the two directions over two outputs.
    pub splitter: Option<Splitter>,
}

impl Default for TraceConfig {
    /// Returns a configuration without traces: one round at the capture's pace.
    fn default() -> TraceConfig {
        TraceConfig {
            traces: Vec::new(),
            merge: false,
            apart: false,
            interface: None,
            pace: Pace::default(),
            gap_cap: None,
            rounds: Some(1),
            round_gap: None,
            limit: None,
            from: None,
            until: None,
            filter: None,
            alterations: Alterations::default(),
            splitter: None,
        }
    }
}

/// A position in a trace: an offset from its first frame, or an absolute time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Offset from the first frame.
    After(Nanos),
    /// Unix time (UTC).
    At(Nanos),
}

impl Moment {
    /// Returns this position's timestamp in a trace that begins at `first`.
    pub fn stamp(self, first: Nanos) -> Nanos {
        match self {
            Moment::After(offset) => first.saturating_add(offset),
            Moment::At(stamp) => stamp,
        }
    }
}

/// The error for text that is not a [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a position in a trace; write 30s (after the first frame), \
     2026-01-31T12:00:00.5Z, or @1769860800.5 (Unix seconds)"
)]
pub struct MomentError(String);

impl FromStr for Moment {
    type Err = MomentError;

    /// Parses `30s`, `@1769860800.5` (Unix time in seconds) or a [`Date`] with a zone:
    /// `2026-01-31T12:00:00.5+01:00`.
    fn from_str(text: &str) -> Result<Moment, MomentError> {
        let moment = match text.strip_prefix('@') {
            Some(seconds) => seconds_and_nanos(seconds).map(Moment::At),
            None => match text.parse() {
                Ok(offset) => Some(Moment::After(offset)),
                Err(_) => Date::parse(text)
                    .filter(|date| date.has_zone)
                    .map(|date| Moment::At(Nanos::from_nanos(date.nanos))),
            },
        };
        moment.ok_or_else(|| MomentError(text.into()))
    }
}

/// Parses seconds with at most nine digits after the point.
fn seconds_and_nanos(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = Nanos::from_secs(number(whole).filter(|s| *s < 1 << 34)?);
    let nanos = number(part).filter(|_| part.len() <= 9)?;
    let nanos = nanos * 10u64.pow(9 - part.len() as u32);
    Some(seconds.saturating_add(Nanos::from_nanos(nanos)))
}

fn number(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| only_digits)
}
