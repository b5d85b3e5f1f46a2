//! Parses positions in a trace.

use longwire_engine::Nanos;
use longwire_runtime::feed::trace::Moment;

#[test]
fn offsets_and_times_are_read() {
    assert_eq!("30s".parse(), Ok(Moment::After(Nanos::from_secs(30))));
    for (text, nanos) in [
        ("@1769860800.5", 1_769_860_800_500_000_000),
        ("2026-01-31T12:00:00.5Z", 1_769_860_800_500_000_000),
        ("2026-01-31 13:30:00+01:30", 1_769_860_800_000_000_000),
        ("2026-01-31T07:00:00-05:00", 1_769_860_800_000_000_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000_000),
        ("1970-01-01T00:00:00Z", 0),
        ("2100-03-01T00:00:00Z", 4_107_542_400_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Moment::At(Nanos::from_nanos(nanos))));
    }
}

#[test]
fn invalid_values_are_refused_with_a_remedy() {
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
