//! The grammar of models: accepted texts, and error messages.

use longwire_engine::models;
use longwire_testbed::support::rows;
use proptest::prelude::*;

fn written<M: std::fmt::Display>(kind: &models::Kind<M>, text: &str) -> String {
    match kind.parse(text) {
        Ok(model) => model.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn refusal<M>(kind: &models::Kind<M>, text: &str) -> String {
    match kind.parse(text) {
        Ok(_) => panic!("'{text}' was read"),
        Err(error) => error.to_string(),
    }
}

/// Checks a table of texts and the models' own notation.
fn assert_written<M: std::fmt::Display>(kind: &models::Kind<M>, table: &str) {
    for [text, expected] in rows(table) {
        assert_eq!(written(kind, text), expected, "{text}");
    }
}

/// Checks a table of rejected texts and their messages.
fn assert_refused<M>(kind: &models::Kind<M>, table: &str) {
    for [text, message] in rows(table) {
        assert_eq!(refusal(kind, text), message, "{text}");
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
    for framing in ["ethernet", "bytes:overhead=18,cell=48,cell-header=5"] {
        assert_eq!(written(&models::FRAMING, framing), framing);
    }
    assert_eq!(written(&models::ORDER, "reorder"), "reorder");
}

#[test]
fn models_and_parameters_that_do_not_exist_are_refused() {
    let names = models::DELAY.entries.iter().map(|entry| entry.info.name);
    let names = names.collect::<Vec<_>>().join(", ");
    assert!(names.starts_with("constant, uniform, "), "{names}");
    let known = format!("known: {names}; or a plain value such as 20ms");
    for (text, name) in [
        ("gauss:mean=20ms", "gauss"),
        ("fast", "fast"),
        ("Constant", "Constant"),
        ("delay=20ms", "delay=20ms"),
        ("20ms:5ms", "20ms"),
        (":20ms", ""),
    ] {
        let message = format!("unknown delay model '{name}'; {known}");
        assert_eq!(refusal(&models::DELAY, text), message, "{text}");
    }
    assert_eq!(
        refusal(&models::DELAY, "uniform:mean=20ms"),
        "uniform has no parameter 'mean'; it takes min, max, correlation"
    );
    assert_eq!(
        refusal(&models::ORDER, "reorder:often"),
        "reorder has no parameter 'often'; it takes no parameters"
    );
    assert_eq!(
        refusal(&models::FRAMING, "24"),
        "unknown framing model '24'; known: none, ethernet, atm, docsis, \
         wireguard, wifi, bytes; \
         or a plain value such as ethernet"
    );
}

#[test]
fn missing_repeated_and_empty_values_are_refused() {
    assert_eq!(refusal(&models::DELAY, "  "), "nothing given; write 20ms");
    assert_refused(
        &models::DELAY,
        "
         | nothing given; write 20ms
        uniform | uniform: 'min' must be given, for example min=20ms
        uniform:10ms | uniform: 'max' must be given, for example max=20ms
        uniform:min=,max=2ms | uniform: nothing after 'min='; write for example min=20ms
        uniform:min=1ms,min=2ms | uniform: 'min' is given twice
        1ms,2ms | constant: 'delay' is given twice
        uniform:min=2ms,max=1ms | uniform: min=2ms is above max=1ms
        exponential:1ms,2ms | exponential: min=2ms is above mean=1ms
        ",
    );
}

/// The error of a plain value names only its unit, that of a named one also the parameter.
#[test]
fn values_are_refused_with_their_unit() {
    assert_refused(
        &models::DELAY,
        "
        20 | '20' has no unit: 20ms or 20s
        10minutes | '10minutes': unknown unit 'minutes'; times are in ns, us, ms, s, min or h
        -5ms | '-5ms' is negative; the minimum is 0
        uniform:min=5,max=20ms | uniform: min: '5' has no unit: 5ms or 5s
        uniform:5,20ms | '5' has no unit: 5ms or 5%
        uniform:0.5,20ms | '0.5' has no unit: 0.5ms or 50% (a share of 0.5) or 0.5%
        uniform:5ms,late | uniform: no parameter takes 'late'; \
            write for example max=20ms or correlation=25%
        ",
    );
    assert_refused(
        &models::LOSS,
        "
        1 | '1' has no unit: 1%
        0.01 | '0.01' has no unit: 1% (a share of 0.01) or 0.01%
        1%,at=exit | packet: at: 'exit' is none of medium, entry
        ",
    );
    let zero = "'0bit' is zero; write 'unlimited' for a link without a rate";
    assert_eq!(refusal(&models::RATE, "0bit"), zero);
}

/// A queue limit is in packets or bytes: the error for any other value names both, and an
/// out-of-range value has a separate error.
#[test]
fn a_queue_is_refused_in_the_unit_it_was_meant_in() {
    assert_refused(
        &models::QUEUE,
        "
        100 | '100' has no unit: 100p or 100kb
        64tb | tail-drop: no parameter takes '64tb'; write for example packets=100p or bytes=64kb
        1.5p | '1.5p' is finer than the resolution of 1p
        2000gb | '2000gb' is too large; the maximum is 1024gb
        tail-drop | tail-drop: no limit; write packets=…, bytes=… or both, for example 100p or 64kb
        0p | tail-drop: a queue of 0 passes no frame; the minimum is 1p
        ",
    );
    let cell = "bytes: cell: '0' is outside 1..65535";
    assert_eq!(refusal(&models::FRAMING, "bytes:cell=0"), cell);
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

    /// Every parsed delay, with any spaces, prints to text that parses back.
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
