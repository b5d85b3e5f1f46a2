//! Positions in a trace, by time.

use std::fmt;
use std::str::FromStr;

use longwire_engine::Nanos;

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

    /// Parses `30s`, `@1769860800.5` (seconds since 1970) or a time of RFC
    /// 3339, section 5.6: `2026-01-31T12:00:00.5+01:00`.
    fn from_str(text: &str) -> Result<Moment, MomentError> {
        let moment = match text.strip_prefix('@') {
            Some(seconds) => seconds_and_nanos(seconds).map(Moment::At),
            None => match text.parse() {
                Ok(offset) => Some(Moment::After(offset)),
                Err(_) => date_and_time(text).map(Moment::At),
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

fn date_and_time(text: &str) -> Option<Nanos> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let mut part = |len: usize| parts.next().filter(|p| p.len() == len).and_then(number);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let days = days_since_1970(year, month, day)?;
    let (time, east) = zone(rest)?;
    let (hours_minutes, seconds) = (time.get(..5)?, time.get(5..)?.strip_prefix(':')?);
    let of_day = clock(hours_minutes)? * 60;
    let seconds = seconds_and_nanos(seconds).filter(|s| *s < Nanos::from_secs(61))?;
    let whole = Nanos::from_secs(days * 86_400 + of_day).saturating_add(seconds);
    let shift = Nanos::from_secs(east.unsigned_abs() * 60);
    if east < 0 {
        Some(whole.saturating_add(shift))
    } else {
        (whole >= shift).then(|| whole.saturating_sub(shift))
    }
}

/// Returns the time without its zone, and the zone in minutes east of UTC.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (time, offset) = text.split_at(at);
    let minutes = clock(&offset[1..])? as i64;
    Some((
        time,
        if offset.starts_with('-') {
            -minutes
        } else {
            minutes
        },
    ))
}

/// Returns the minutes of `hh:mm`.
fn clock(text: &str) -> Option<u64> {
    let (hours, minutes) = text.split_once(':')?;
    let part = |part: &str, below| number(part).filter(|n| part.len() == 2 && *n < below);
    Some(part(hours, 24)? * 60 + part(minutes, 60)?)
}

fn number(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| only_digits)
}

/// Returns the days from 1970 to a day of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if year < 1970 || day == 0 || day > *length {
        return None;
    }
    let before = |years: u64| years * 365 + years / 4 - years / 100 + years / 400;
    let months: u64 = lengths[..month as usize - 1].iter().sum();
    Some(before(year - 1) - before(1969) + months + day - 1)
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
