//! Bandwidths, delays and losses in the notation of ns-2 and Emulab.

use longwire_engine::BitRate;

/// Converts `100Mb`, `1.5Mbps`, `56Kb` or `1Gb` to the syntax of `rate`.
pub fn rate(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is not a bandwidth such as 100Mb, 1.5Mb or 56kb");
    let bare = text.strip_suffix("bps").or_else(|| text.strip_suffix('b'));
    let bare = bare.unwrap_or(text);
    let (digits, unit) = match bare.chars().last() {
        Some('k' | 'K') => (&bare[..bare.len() - 1], "kbit"),
        Some('M' | 'm') => (&bare[..bare.len() - 1], "mbit"),
        Some('G' | 'g') => (&bare[..bare.len() - 1], "gbit"),
        _ => (bare, "bit"),
    };
    let written = format!("{digits}{unit}");
    let rate: BitRate = written.parse().map_err(|_| wrong())?;
    Ok(rate.to_string())
}

/// Converts `10ms`, `0.01s` or `50us` to nanoseconds.
pub fn delay(text: &str) -> Result<u64, String> {
    if text.parse::<f64>() == Ok(0.0) {
        return Ok(0);
    }
    let time: Result<longwire_engine::Nanos, _> = text.parse();
    time.map(longwire_engine::Nanos::as_nanos)
        .map_err(|_| format!("'{text}' is not a delay such as 10ms"))
}

/// Parses a probability, such as `0.05`.
pub fn loss(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a loss ratio from 0 to 1"))
}
