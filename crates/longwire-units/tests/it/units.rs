//! Parsing, rejections with their messages, and round trips.

use std::str::FromStr;

use longwire_units::{BitRate, Bytes, Correlation, Nanos, Packets, Probability};
use longwire_units::{UnitError, parse_count, parse_ratio};
use proptest::prelude::*;

#[test]
fn the_notation_of_tc_is_parsed() {
    let time = |text: &str| Nanos::from_str(text).unwrap().as_nanos();
    for (text, nanos) in [
        ("0", 0),
        ("0ms", 0),
        ("10ns", 10),
        ("250us", 250_000),
        ("20ms", 20_000_000),
        ("20MS", 20_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("0.000001ms", 1),
        ("3usecs", 3_000),
        ("1min", 60_000_000_000),
        ("24h", 86_400_000_000_000),
        ("00000000000000000000001s", 1_000_000_000),
        ("1.00000000000000000000000000000s", 1_000_000_000),
    ] {
        assert_eq!(time(text), nanos, "{text}");
    }
    let rate = |text: &str| BitRate::from_str(text).unwrap().bits_per_sec();
    for (text, bits) in [
        ("1bit", 1),
        ("64kbit", 64_000),
        ("10mbit", 10_000_000),
        ("1.5gbit", 1_500_000_000),
        ("10tbit", 10_000_000_000_000),
        ("1kibit", 1_024),
        ("1mbps", 8_000_000),
        ("0.000000000001tbit", 1),
    ] {
        assert_eq!(rate(text), bits, "{text}");
    }
    let size = |text: &str| Bytes::from_str(text).unwrap().0;
    for (text, bytes) in [
        ("0b", 0),
        ("1500b", 1_500),
        ("64kb", 65_536),
        ("1.5k", 1_536),
        ("1m", 1 << 20),
        ("0.0001220703125gb", 131_072),
        ("1024gb", 1 << 40),
    ] {
        assert_eq!(size(text), bytes, "{text}");
    }
    assert_eq!(Packets::from_str("100p"), Ok(Packets(100)));
    assert_eq!(Probability::from_str("25%").unwrap().as_f64(), 0.25);
    assert_eq!(Probability::from_str("100%"), Ok(Probability::ONE));
    assert_eq!(Probability::from_str("0"), Ok(Probability::ZERO));
    for (text, count) in [
        ("18", 18),
        ("1e3", 1_000),
        ("1.5E3", 1_500),
        ("25e00", 25),
        ("0e99999999999", 0),
        ("1.8446744073709551615e19", u64::MAX),
        ("1.000000000000000000e19", 10_000_000_000_000_000_000),
    ] {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
    assert_eq!(parse_ratio("1e-6"), Ok(1e-6));
    assert_eq!(parse_ratio(".5"), Ok(0.5));
}

fn refusal<T: FromStr<Err = UnitError>>(text: &str) -> String {
    T::from_str(text).err().expect(text).to_string()
}

/// Checks error messages, one per line, without their leading quotation mark.
fn assert_refused<T: FromStr<Err = UnitError>>(messages: &str) {
    let lines = messages.lines().map(str::trim);
    for message in lines.filter(|line| !line.is_empty()) {
        let (text, _) = message.split_once('\'').unwrap();
        assert_eq!(refusal::<T>(text), format!("'{message}"));
    }
}

#[test]
fn refused_times_name_the_reason() {
    assert_refused::<Nanos>(
        "
        20' has no unit: 20ms or 20s
        10minutes': unknown unit 'minutes'; times are in ns, us, ms, s, min or h
        20 ms': unknown unit ' ms'; times are in ns, us, ms, s, min or h
        1e3ms': unknown unit 'e3ms'; times are in ns, us, ms, s, min or h
        20µs': unknown unit 'µs'; times are in ns, us, ms, s, min or h
        -5ms' is negative; the minimum is 0
        -.5ms' is negative; the minimum is 0
        0.3ns' is finer than the resolution of 1ns
        0.0000000001s' is finer than the resolution of 1ns
        25h' is too large; the maximum is 24h
        ",
    );
    for text in ["", "ms", "-", "+5ms", "nan", "inf", ".ms", "1.2.3ms"] {
        let message = format!("'{text}' is not a number with a unit; for example: 20ms");
        assert_eq!(refusal::<Nanos>(text), message);
    }
    // Very long numbers, too large or too fine.
    let nines = format!("{}s", "9".repeat(500));
    assert!(refusal::<Nanos>(&nines).ends_with("is too large; the maximum is 24h"));
    let fine = format!("0.{}1s", "0".repeat(500));
    assert!(refusal::<Nanos>(&fine).ends_with("is finer than the resolution of 1ns"));
}

#[test]
fn refused_values_name_the_reason() {
    assert_refused::<BitRate>(
        "
        10' has no unit: 10mbit or 10kbit
        0bit' is zero; write 'unlimited' for a link without a rate
        0.5bit' is finer than the resolution of 1bit
        11tbit' is too large; the maximum is 10tbit
        -1mbit' is negative; the minimum is 0
        10mb': unknown unit 'mb'; rates are in bit, kbit, mbit, gbit or tbit per second \
            (kbps and mbps are bytes per second, as in tc)
        ",
    );
    assert_refused::<Bytes>(
        "
        5tb': unknown unit 'tb'; sizes are in b, kb, mb or gb (bytes; kb is 1024, as in tc)
        0.1kb' is finer than the resolution of 1b
        1025gb' is too large; the maximum is 1024gb
        ",
    );
    assert_refused::<Packets>(
        "
        100' has no unit: 100p
        1.5p' is finer than the resolution of 1p
        ",
    );
    assert_refused::<Probability>(
        "
        1' has no unit: 1%
        0.01' has no unit: 1% (a share of 0.01) or 0.01%
        0.5' has no unit: 50% (a share of 0.5) or 0.5%
        .0015' has no unit: 0.15% (a share of .0015) or .0015%
        1.5' has no unit: 1.5%
        101%' is too large; the maximum is 100%
        0.0000000000001%' is finer than the resolution of 0.000000000001%
        1permille': unknown unit 'permille'; probabilities are in %
        ",
    );
}

#[test]
fn correlations_are_signed_percentages() {
    for (text, value, written) in [
        ("25%", 0.25, "25%"),
        ("-12.5%", -0.125, "-12.5%"),
        ("100%", 1.0, "100%"),
        ("-100%", -1.0, "-100%"),
        ("0", 0.0, "0%"),
        // Zero has no sign.
        ("-0%", 0.0, "0%"),
    ] {
        let correlation: Correlation = text.parse().unwrap();
        assert!((correlation.as_f64() - value).abs() < 1e-15, "{text}");
        assert_eq!(correlation.to_string(), written);
        assert_eq!(written.parse(), Ok(correlation));
    }
    for text in ["0.25", "101%", "-101%", "--5%", "%", "-", ""] {
        assert!(text.parse::<Correlation>().is_err(), "{text}");
    }
}

#[test]
fn probabilities_of_disjoint_events_add_up() {
    let percent = |percent| Probability::from_ratio(percent, 100).unwrap();
    let sum = percent(25).checked_add(percent(50)).unwrap();
    assert!((sum.as_f64() - 0.75).abs() < 1e-15);
    for (first, second, sum) in [
        (50, 50, Some(100)),
        (100, 0, Some(100)),
        (0, 100, Some(100)),
        (60, 50, None),
        (1, 100, None),
        (100, 100, None),
    ] {
        let found = percent(first).checked_add(percent(second));
        assert_eq!(found, sum.map(percent), "{first} and {second}");
    }
}

#[test]
fn refused_numbers_name_the_reason() {
    let count = |text| parse_count(text).unwrap_err().to_string();
    for text in [
        "18b", "+18", "", "1.5", "1.0", "1.55e1", "1e-3", "1e+3", "e3", "1e", "1e3e3", "1_000",
    ] {
        let message = format!("'{text}' is not a number; for example: 1000");
        assert_eq!(count(text), message);
    }
    for text in "18446744073709551616 1e20 2e19 1e99999999999999999999".split(' ') {
        let message = format!("'{text}' is too large; the maximum is 18446744073709551615");
        assert_eq!(count(text), message);
    }
    assert_eq!(count("-1"), "'-1' is negative; the minimum is 0");
    let ratio = |text| parse_ratio(text).unwrap_err().to_string();
    for text in ["nan", "inf", "+1", "1%", ""] {
        let message = format!("'{text}' is not a number; for example: 1e-6");
        assert_eq!(ratio(text), message);
    }
    assert_eq!(ratio("-0.0"), "'-0.0' is negative; the minimum is 0");
    for text in ["1.01", "1e999"] {
        let message = format!("'{text}' is too large; the maximum is 1");
        assert_eq!(ratio(text), message);
    }
}

#[test]
fn times_saturate() {
    assert_eq!(Nanos::from_secs(u64::MAX), Nanos::MAX);
    assert_eq!(Nanos::MAX.saturating_add(Nanos::from_nanos(1)), Nanos::MAX);
    assert_eq!(Nanos::ZERO.saturating_sub(Nanos::MAX), Nanos::ZERO);
    assert_eq!(BitRate::MAX.bytes_in(Nanos::MAX), Bytes(u64::MAX));
    assert_eq!(BitRate::from_bits_per_sec(0), None);
    let above = BitRate::MAX.bits_per_sec() + 1;
    assert_eq!(BitRate::from_bits_per_sec(above), None);
    assert_eq!(Nanos::MAX.to_string(), "never");
}

#[test]
fn probabilities_are_clamped_and_exact() {
    for (value, clamped) in [(f64::NAN, 0), (-1.0, 0), (2.0, 1)] {
        let clamped = Probability::from_ratio(clamped, 1);
        assert_eq!(Some(Probability::from_f64(value)), clamped, "{value}");
    }
    assert_eq!(Probability::from_ratio(1, 0), None);
    assert_eq!(Probability::from_ratio(2, 1), None);
    let quarter = Probability::from_ratio(1, 4).unwrap();
    assert!(quarter.accepts((1 << 62) - 1) && !quarter.accepts(1 << 62));
    assert!(Probability::ONE.accepts(u64::MAX) && !Probability::ZERO.accepts(0));
    assert_eq!(Probability::from_f64(0.01).to_string(), "1%");
    assert_eq!(Probability::from_f64(0.000_5).to_string(), "0.05%");
}

/// Values in every order of magnitude up to `most`.
fn up_to(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=most,
        (0u32..64).prop_map(move |shift| most >> shift),
        0..=most.min(5_000)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn text_round_trips(
        nanos in up_to(86_400_000_000_000),
        bits in up_to(BitRate::MAX.bits_per_sec()),
        bytes in up_to(Bytes::SETTING_MAX.0),
        packets in up_to(1_000_000_000),
        steps in up_to(100_000_000_000_000),
        ratio in 0.0f64..=1.0,
    ) {
        let nanos = Nanos::from_nanos(nanos);
        prop_assert_eq!(nanos.to_string().parse(), Ok(nanos));
        if let Some(rate) = BitRate::from_bits_per_sec(bits) {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        prop_assert_eq!(Packets(packets).to_string().parse(), Ok(Packets(packets)));
        let probability = Probability::from_ratio(steps, 100_000_000_000_000).unwrap();
        prop_assert_eq!(probability.to_string().parse(), Ok(probability));
        prop_assert_eq!(parse_ratio(&format!("{ratio:e}")), Ok(ratio));
    }

    #[test]
    fn no_text_makes_a_unit_panic(text in "(?s:.{0,40})", near in "[-+0-9.e%a-z]{0,30}") {
        for text in [&text, &near] {
            let _ = (Nanos::from_str(text), BitRate::from_str(text), Bytes::from_str(text));
            let _ = (Packets::from_str(text), Probability::from_str(text));
            let _ = Correlation::from_str(text);
            let _ = (parse_count(text), parse_ratio(text));
        }
    }
}
