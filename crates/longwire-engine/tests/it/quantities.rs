//! Measurement units, and numbers with and without them.

use longwire_engine::trace::Quantity;

#[test]
fn units_of_measurements_are_known() {
    for (unit, scale) in [
        ("bps", Some(1)),
        ("bit/s", Some(1)),
        ("kbps", Some(1_000)),
        ("Kbps", Some(1_000)),
        ("Mbps", Some(1_000_000)),
        ("mbit", Some(1_000_000)),
        ("Mbit/s", Some(1_000_000)),
        ("mbits", Some(1_000_000)),
        ("Mb/s", Some(1_000_000)),
        ("MB/s", Some(8_000_000)),
        ("MBps", Some(8_000_000)),
        ("kBps", Some(8_000)),
        ("bytes/s", Some(8)),
        ("bytes_per_s", Some(8)),
        ("Gbit/sec", Some(1_000_000_000)),
        ("MiB/s", Some(8 << 20)),
        ("MBPS", None),
        ("ms", None),
        ("ps", None),
        ("", None),
        ("ßb", None),
    ] {
        assert_eq!(Quantity::Rate.scale(unit), scale, "{unit}");
    }
    assert_eq!(Quantity::Delay.scale("MS"), Some(1_000_000));
    assert_eq!(Quantity::Loss.scale("%"), Some(1_000_000_000_000));
    assert_eq!(Quantity::Time.scale("mbit"), None);
}

#[test]
fn values_have_a_unit_of_their_own_or_their_columns() {
    let rate = |text, scale| Quantity::Rate.read(text, scale);
    assert_eq!(rate("12 Mbps", None), Ok(12_000_000));
    assert_eq!(rate("12kbit", Some(1_000_000)), Ok(12_000));
    assert_eq!(rate("1e-3", Some(1_000_000)), Ok(1_000));
    assert!(rate("12", None).unwrap_err().contains("has no unit"));
    assert!(rate("-1", Some(1)).unwrap_err().contains("negative"));
    assert!(rate("NaN", Some(1)).unwrap_err().contains("not a number"));
    assert!(rate("11tbit", None).unwrap_err().contains("too large"));
    assert_eq!(Quantity::Loss.read("1%", Some(1)), Ok(1_000_000_000_000));
    let loss = Quantity::Loss.read("1.5", Quantity::Loss.scale("ratio"));
    assert!(loss.unwrap_err().contains("too large"));
    let time = Quantity::Time.read("2019.12.16_13.40.04", Some(1_000_000_000));
    assert_eq!(time, Ok(1_576_503_604_000_000_000));
}
