//! Model syntax: accepted texts.

use longwire_engine::models;
use longwire_testbed::support::rows;
use proptest::prelude::*;

fn written<M: std::fmt::Display>(kind: &models::Kind<M>, text: &str) -> String {
    match kind.parse(text) {
        Ok(model) => model.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Checks a table of texts and the models' specification texts.
fn assert_written<M: std::fmt::Display>(kind: &models::Kind<M>, table: &str) {
    for [text, expected] in rows(table) {
        assert_eq!(written(kind, text), expected, "{text}");
    }
}

#[test]
fn names_keys_and_bare_values_are_read() {
    assert_written(
        &models::DELAY,
        "
        uniform:min=10ms,max=20ms | uniform:min=10ms,max=20ms
        uniform:max=20ms,min=10ms | uniform:min=10ms,max=20ms
        uniform:10ms,20ms | uniform:min=10ms,max=20ms
        uniform:max=20ms,10ms | uniform:min=10ms,max=20ms
        20ms | 20ms
        0 | 0ns
        constant:20ms | 20ms
        exponential:20ms | exponential:mean=20ms,min=0ns
        ",
    );
    let spaced = " uniform : min = 10ms , max = 20ms ";
    assert_eq!(written(&models::DELAY, spaced), "uniform:min=10ms,max=20ms");
    assert_written(
        &models::RATE,
        "
        10mbit | 10mbit
        fixed:rate=10mbit | 10mbit
        unlimited | unlimited
        ",
    );
    assert_written(
        &models::QUEUE,
        "
        100p | 100p
        64kb | 64kb
        64kb,100p | tail-drop:packets=100p,bytes=64kb
        unlimited | unlimited
        ",
    );
    assert_written(
        &models::LOSS,
        "
        1% | packet:rate=1%
        1%,entry | packet:rate=1%,at=entry
        ber:1e-6 | ber:rate=1e-6
        ",
    );
    assert_written(
        &models::ROUTER,
        "
        10.0.0.9 | hop:address=10.0.0.9,address6=auto,limit=1000,burst=50
        10.0.0.9,address6=fd00::9 | hop:address=10.0.0.9,address6=fd00::9,limit=1000,burst=50
        ",
    );
    for framing in [
        "ethernet",
        "bytes:overhead=18,cell=48,cell-header=5",
        "wireguard:over=ipv6,mtu=1380",
    ] {
        assert_eq!(written(&models::FRAMING, framing), framing);
    }
    let copies = "nth:every=3,offset=2,copies=2,delay=own";
    assert_eq!(written(&models::DUPLICATION, copies), copies);
    let gap = "gap:gap=5,rate=30%,correlation=-10%";
    assert_eq!(written(&models::REORDERING, gap), gap);
    assert_eq!(written(&models::ORDER, "reorder"), "reorder");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_a_model_panic(
        text in "(?s:.{0,60})",
        near in "(constant|uniform|exponential|ber|packet|tail-drop|bytes|fixed|reorder|)[:=,a-z0-9.%-]{0,40}",
    ) {
        for text in [&text, &near] {
            let _ = models::RATE.parse(text);
            let _ = models::FRAMING.parse(text);
            let _ = models::QUEUE.parse(text);
            let _ = models::LOSS.parse(text);
            let _ = models::DELAY.parse(text);
            let _ = models::ORDER.parse(text);
        }
    }

    /// Every parsed delay, with any spaces, prints as text that parses back.
    #[test]
    fn delays_read_back(a in 0u64..90_000_000_000, b in 0u64..90_000_000_000, space in " ?") {
        let (low, high) = (a.min(b), a.max(b));
        for text in [
            format!("{a}ns{space}"),
            format!("uniform:{space}min={low}ns,max={high}ns"),
            format!("exponential:{low}ns,{space}mean={high}ns"),
        ] {
            let first = models::DELAY.parse(&text);
            prop_assert!(first.is_ok(), "{:?}", first);
            let first = first.unwrap();
            let again = models::DELAY.parse(&first.to_string()).unwrap();
            prop_assert_eq!(again.to_string(), first.to_string());
            prop_assert_eq!(again.mean(), first.mean());
            prop_assert_eq!(again.fixed(), first.fixed());
        }
    }
}
