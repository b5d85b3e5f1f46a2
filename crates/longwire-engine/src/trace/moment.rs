//! Dates with a time of day, as measurement programs write them.

/// Returns nanoseconds since 1970 of `2016-10-01 00:13:12`, `2019.12.16_13.40.04`,
/// `2016/10/01T00:13:12.25Z` and similar: year, month, day, hour, minute and second,
/// with any marks between them. Offsets from UTC are not read, because only differences
/// matter, and a trace keeps to one clock.
///
/// `None` for text that is no such moment between 1970 and 2261.
pub fn nanos(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    // The longest has 19 characters, and a fraction of nine.
    if text.len() > 32 || !text.is_ascii() {
        return None;
    }
    let bytes = text.as_bytes();
    let mut fields = [0u64; 6];
    let mut at = 0;
    for (index, field) in fields.iter_mut().enumerate() {
        let digits = if index == 0 { 4 } else { 2 };
        *field = number(bytes.get(at..at + digits)?)?;
        at += digits;
        if index < 5 {
            let mark = bytes.get(at)?;
            at += usize::from(b"-./_:T ".contains(mark).then_some(1u8)?);
        }
    }
    let fraction = match bytes.get(at..)? {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            number(digits)? * 10u64.pow(9 - digits.len() as u32)
        }
        _ => return None,
    };
    let [year, month, day, hour, minute, second] = fields;
    let in_range = (1970..=2261).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        // A leap second.
        && second <= 60;
    if !in_range {
        return None;
    }
    let days = days_before(year, month) + day - 1;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000_000 + fraction)
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

/// Returns the days from 1970 to the first of the month (Gregorian calendar).
fn days_before(year: u64, month: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    days + (1..month).map(|month| days_in(year, month)).sum::<u64>()
}
