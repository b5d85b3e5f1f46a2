//! Dates with a time of day.

/// A date with a time of day (Gregorian calendar), from 1970 to 2261.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Nanoseconds since 1970-01-01 UTC. Text without a zone is taken as UTC.
    pub nanos: u64,
    /// Whether the text has a zone.
    pub has_zone: bool,
}

impl Date {
    /// Parses year, month, day, hour, minute and second, separated by any of `-./_:T` or a space,
    /// with an optional fraction of up to nine digits and an optional zone: `2016-10-01 00:13:12`,
    /// `2019.12.16_13.40.04`, `2016/10/01T00:13:12.25Z`, `2016-10-01T02:13:12+02:00`. A zone may
    /// also be written `+0200` or `+02`. Returns `None` for other text.
    pub fn parse(text: &str) -> Option<Date> {
        // 19 characters for date and time, ten for the fraction, seven for the zone.
        if text.len() > 36 || !text.is_ascii() {
            return None;
        }
        let (fields, rest) = fields(text.as_bytes())?;
        let (fraction, rest) = fraction(rest)?;
        let zone_secs = zone(rest)?;
        let [year, month, day, hour, minute, second] = fields;
        let in_range = (1970..=2261).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            // 60 is a leap second.
            && second <= 60;
        if !in_range {
            return None;
        }
        let days = days_before(year, month) + day - 1;
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        let seconds = seconds.checked_add_signed(-zone_secs.unwrap_or(0))?;
        Some(Date {
            nanos: seconds * 1_000_000_000 + fraction,
            has_zone: zone_secs.is_some(),
        })
    }
}

/// Parses the six fields and returns the remaining bytes.
fn fields(bytes: &[u8]) -> Option<([u64; 6], &[u8])> {
    let mut fields = [0; 6];
    let mut at = 0;
    for (index, field) in fields.iter_mut().enumerate() {
        let digits = if index == 0 { 4 } else { 2 };
        *field = number(bytes.get(at..at + digits)?)?;
        at += digits;
        if index < 5 {
            let mark = bytes.get(at)?;
            at += usize::from(b"-./_:Tt ".contains(mark).then_some(1u8)?);
        }
    }
    Some((fields, &bytes[at..]))
}

/// Parses an optional fraction, in nanoseconds, and returns the remaining bytes.
fn fraction(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let [b'.', rest @ ..] = bytes else {
        return Some((0, bytes));
    };
    let end = rest.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if !(1..=9).contains(&digits.len()) {
        return None;
    }
    let nanos = number(digits)? * 10u64.pow(9 - digits.len() as u32);
    Some((nanos, rest))
}

/// Parses a zone as seconds east of UTC; the inner `None` means no zone.
fn zone(bytes: &[u8]) -> Option<Option<i64>> {
    let (sign, digits) = match bytes.trim_ascii_start() {
        [] if bytes.is_empty() => return Some(None),
        [b'Z' | b'z'] => return Some(Some(0)),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [_, _] => (digits, &b"0"[..]),
        [_, _, b':', minutes @ ..] if minutes.len() == 2 => (&digits[..2], minutes),
        [_, _, minutes @ ..] if minutes.len() == 2 => (&digits[..2], minutes),
        _ => return None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60)?;
    Some(Some(sign * seconds as i64))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + u64::from(digit - b'0'))
    })
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns year, month, day, hour, minute and second (UTC) of a time in seconds since 1970.
pub fn calendar(seconds: u64) -> [u64; 6] {
    let days = seconds / 86_400;
    let mut year = 1970 + days / 366;
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while days_before(year, month) > days {
        month -= 1;
    }
    let day = days - days_before(year, month) + 1;
    [
        year,
        month,
        day,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ]
}

/// Returns the number of days from 1970-01-01 to the first day of the month.
fn days_before(year: u64, month: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    days + (1..month).map(|month| days_in(year, month)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        // As printed by `date -u -d … +%s`.
        for (text, seconds, has_zone) in [
            ("1970-01-01 00:00:00", 0, false),
            ("2000-02-29 23:59:59", 951_868_799, false),
            ("2000-03-01T00:00:00Z", 951_868_800, true),
            ("2000-03-01t00:00:00z", 951_868_800, true),
            ("2016-10-01 00:13:12", 1_475_280_792, false),
            ("2019.12.16_13.40.04", 1_576_503_604, false),
            ("2100/03/01 00:00:00", 4_107_542_400, false),
            ("2261-12-31 23:59:59", 9_214_646_399, false),
            ("2016-10-01T00:13:12+02:00", 1_475_273_592, true),
            ("2016-10-01T00:13:12+0200", 1_475_273_592, true),
            ("2016-10-01 00:13:12 +02", 1_475_273_592, true),
            ("2016-10-01 00:13:12-05:30", 1_475_300_592, true),
            ("1970-01-01 02:00:00+02:00", 0, true),
            ("1970-01-01 00:00:00-00:00", 0, true),
        ] {
            let nanos = seconds * 1_000_000_000;
            assert_eq!(Date::parse(text), Some(Date { nanos, has_zone }), "{text}");
        }
        let nanos = |text| Date::parse(text).map(|date| date.nanos);
        assert_eq!(nanos("1970-01-01 00:00:01.25"), Some(1_250_000_000));
        assert_eq!(nanos("1970-01-01 00:00:01.123456789Z"), Some(1_123_456_789));
        assert_eq!(nanos("1970-01-01 01:00:01.5 +01:00"), Some(1_500_000_000));
    }

    #[test]
    fn invalid_dates_are_refused() {
        let texts = "|2016-10-01|2016-13-01 00:00:00|2015-02-29 00:00:00|2016-10-01 24:00:00|\
            1969-12-31 23:59:59|1970-01-01 00:00:00+00:01|2262-01-01 00:00:00|2016-10-01x00:00:00|\
            20161001 000000";
        let endings = ".|.Z|.1234567890| |+|+2|+24:00|+02:60|+02:|+02:000|ZZ|+02:00Z";
        let ended = endings
            .split('|')
            .map(|end| format!("2016-10-01 00:00:00{end}"));
        for text in texts.split('|').map(String::from).chain(ended) {
            assert_eq!(Date::parse(&text), None, "{text}");
        }
    }
}
