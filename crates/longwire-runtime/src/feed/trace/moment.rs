//! Positions in a trace, by time.

use std::fmt;
use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_units::Date;

/// A position in a trace: an offset from its first frame, or an absolute time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Offset from the first frame.
    After(Nanos),
    /// Time since 1970, UTC.
    At(Nanos),
}

impl Moment {
    /// Returns the stamp of this position in a trace that begins at `first`.
    pub fn stamp(self, first: Nanos) -> Nanos {
        match self {
            Moment::After(offset) => first.saturating_add(offset),
            Moment::At(stamp) => stamp,
        }
    }
}

/// The error for a text that is not a [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentError(String);

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a position in a trace; write 30s (after its first frame), \
             2026-01-31T12:00:00.5Z, or @1769860800.5 (seconds since 1970)",
            self.0
        )
    }
}

impl std::error::Error for MomentError {}

impl FromStr for Moment {
    type Err = MomentError;

    /// Parses `30s`, `@1769860800.5` (seconds since 1970) or a [`Date`] with a zone:
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
