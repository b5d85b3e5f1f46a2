//! Plugins and parameters rejected before the first frame, and the messages.

use longwire_engine::{Hook, LinkSpec};
use longwire_runtime::{CPlugin, Faults, FileLoader};

use crate::plugins::tools::{parse, probe, probe_with, refusal};

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

#[test]
fn non_plugins_are_refused_with_a_reason() {
    let missing = refusal("loss", "plugin:file=./no-such-plugin.so");
    assert_says(&missing, &["loss: ", "./no-such-plugin.so", "no such file"]);
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert_says(
        &refusal("loss", &format!("plugin:{text}")),
        &["cannot be loaded"],
    );
    let hidden = refusal("loss", &format!("plugin:{}", probe_with("HIDDEN")));
    assert_says(&hidden, &["longwire_plugin", "LONGWIRE_EXPORT"]);
}

#[test]
fn another_version_is_refused_with_what_to_do() {
    let message = refusal("delay", &format!("plugin:{}", probe_with("VERSION=2")));
    assert_says(&message, &["plugin interface 2", "has 1", "rebuild it"]);
    let message = refusal("delay", &format!("plugin:{}", probe_with("SIZE=40")));
    assert_says(
        &message,
        &["struct_size is 40", "sizeof(struct longwire_plugin)"],
    );
}

#[test]
fn a_missing_hook_is_reported_with_the_existing_ones() {
    let tdm = crate::plugins::tools::example("tdm.c");
    let message = refusal(
        "loss",
        &format!("plugin:{tdm},rate=1mbit,period=2ms,slot=1ms"),
    );
    assert_says(&message, &["no hook 'lose'", "--loss", "it has depart"]);
}

#[test]
fn parameters_are_read_in_units_and_misspelt_ones_refused() {
    let tdm = crate::plugins::tools::example("tdm.c");
    let refused = |rest: &str| refusal("rate", &format!("plugin:{tdm},{rest}"));
    let message = refused("rate=1mbit,period=10ms");
    assert_says(&message, &["missing parameter slot="]);
    let message = refused("rate=1mbit,period=10,slot=1ms");
    assert_says(&message, &["period: '10' has no unit", "10ms"]);
    let message = refused("rate=1mbit,period=10ms,slot=1ms,slots=3");
    let known = "rate, period, slot, offset";
    assert_says(&message, &["unknown parameter 'slots'", known]);
    let message = refused("rate=1mbit,period=10ms,slot=11ms");
    assert_says(&message, &["slot: longer than 0, and at most a period"]);
    let probe = probe();
    let message = refusal("loss", &format!("plugin:{probe},real=many"));
    assert_says(&message, &["real: 'many' is not a number"]);
    let message = refusal("loss", &format!("plugin:{probe},size=-4kb"));
    assert_says(&message, &["size: '-4kb' is negative"]);
}

#[test]
fn create_fails_with_the_plugins_message() {
    let refused = |fault: &str| refusal("loss", &format!("plugin:{},fault={fault}", probe()));
    assert_says(&refused("create"), &["create: this one is made to fail"]);
    assert_says(&refused("silent"), &["failed without a message"]);
    assert_says(&refused("forgotten"), &["said, but not returned"]);
    assert_says(&refused("hint"), &["hints", "delay_mean_ns is -1"]);
}

#[test]
fn hints_reach_the_defaults() {
    let tdm = crate::plugins::tools::example("tdm.c");
    let text = format!("plugin:{tdm},rate=10mbit,period=10ms,slot=2ms");
    let config = parse(&format!("rate={text}"), &Faults::new()).unwrap();
    let mean = config.rate.bit_rate().map(|rate| rate.bits_per_sec());
    assert_eq!(mean, Some(2_000_000));
    // The limit is two delays, or 100 ms at the mean rate.
    assert_eq!(
        config.queue_limit().bytes.map(|bytes| bytes.0),
        Some(25_000)
    );
    // The description equals the parsed text.
    assert_eq!(
        config.rate.to_string(),
        text.replace("plugin:", "plugin:file=")
    );
}

#[test]
fn each_link_has_one_state_for_its_hooks() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("trace-{}", std::process::id()));
    // Returns the calls since the last query.
    let traced = || {
        let traced = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        traced
    };
    let text = format!("plugin:{},trace={}", probe(), file.display());
    let faults = Faults::new();
    let loader = FileLoader::reporting_to(&faults);
    let line = format!("loss={text} delay={text} rate={text},after=1");
    let spec = LinkSpec::parse(&line, &loader).unwrap();
    // There is one state for loss and delay, and one for the rate, which has other parameters.
    assert_eq!(traced(), "create create ");
    // The first link takes the states; the second shares none with it.
    let first = spec.build(&loader).unwrap();
    let second = spec.build(&loader).unwrap();
    assert_eq!(traced(), "create create ");
    drop(first);
    assert_eq!(traced(), "destroy destroy ");
    drop((second, loader));
    assert_eq!(traced(), "destroy destroy ");
    // Another loader shares no states.
    drop(spec.build(&FileLoader::reporting_to(&faults)).unwrap());
    assert_eq!(traced(), "create create destroy destroy ");

    // Two losses decide separately, with separate states.
    drop(parse(&format!("loss={text} loss={text}"), &faults).unwrap());
    assert_eq!(traced(), "create create destroy destroy ");
    assert!(!faults.any());
}

#[test]
fn a_zero_byte_is_refused_rather_than_cut() {
    let pairs = [("trace".to_owned(), "a\0b".to_owned())];
    let refused = CPlugin::load(&probe(), Hook::Loss, &pairs, &Faults::new());
    assert_says(&refused.unwrap_err().to_string(), &["zero byte"]);
}
