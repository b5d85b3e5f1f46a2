//! Positions in a trace, by time.

use std::fmt;
use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_units::Date;

/// A position in a trace: an offset from its first frame, or a time of its
/// stamps.
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

/// The error for a text that is no [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentError(String);

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no place in a trace; write 30s (after its first frame), \
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<u64> {
        match text.parse() {
            Ok(Moment::At(stamp)) => Some(stamp.as_nanos()),
            _ => None,
        }
    }

    #[test]
    fn offsets_and_times_are_read() {
        assert_eq!("30s".parse(), Ok(Moment::After(Nanos::from_secs(30))));
        assert_eq!(at("@1769860800.5"), Some(1_769_860_800_500_000_000));
        assert_eq!(
            at("2026-01-31T12:00:00.5Z"),
            Some(1_769_860_800_500_000_000)
        );
        assert_eq!(
            at("2026-01-31 13:30:00+01:30"),
            Some(1_769_860_800_000_000_000)
        );
        assert_eq!(
            at("2026-01-31T07:00:00-05:00"),
            Some(1_769_860_800_000_000_000)
        );
        assert_eq!(at("2000-02-29T00:00:00Z"), Some(951_782_400_000_000_000));
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2100-03-01T00:00:00Z"), Some(4_107_542_400_000_000_000));
    }

    #[test]
    fn what_is_none_is_refused_with_what_would_be() {
        let wrong = [
            "",
            "@",
            "@-1",
            "@1.1234567890",
            "soon",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2026-1-31T12:00:00Z",
            "2026-01-31Tü2:00:00Z",
            "2026-01-31T12:00:61Z",
            "2026-01-31T1200:00Z",
        ];
        for text in wrong {
            let refused = text.parse::<Moment>().expect_err(text).to_string();
            assert!(refused.contains("@1769860800.5"), "{refused}");
        }
    }
}
