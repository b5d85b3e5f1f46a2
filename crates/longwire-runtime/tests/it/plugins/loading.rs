//! Plugins and parameters rejected before the first frame, and the messages.

use longwire_engine::{Hook, LinkSpec};
use longwire_runtime::{CPlugin, Faults, FileLoader};
use longwire_testbed::support::rows;

use crate::plugins::tools::{named, parse, probe, probe_with, refusal};

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

/// Refused options, with parts of the message.
const REFUSED: &str = r#"
    loss | plugin:file=./no-such-plugin.so | loss: ; ./no-such-plugin.so; no such file
    loss | plugin:CARGO | cannot be loaded
    loss | plugin:HIDDEN | longwire_plugin; LONGWIRE_EXPORT
    delay | plugin:VERSION=2 | plugin interface 2; has 1; rebuild it
    delay | plugin:SIZE=40 | struct_size is 40; sizeof(struct longwire_plugin)
    loss | plugin:tdm,rate=1mbit,period=2ms,slot=1ms | no hook 'lose'; --loss; it has depart
    rate | plugin:tdm,rate=1mbit,period=10ms | missing parameter slot=
    rate | plugin:tdm,rate=1mbit,period=10,slot=1ms | period: '10' has no unit; 10ms
    rate | plugin:tdm,rate=1mbit,period=10ms,slot=1ms,slots=3 | unknown parameter 'slots'; rate, period, slot, offset
    rate | plugin:tdm,rate=1mbit,period=10ms,slot=11ms | slot: must be longer than 0 and at most the period
    loss | plugin:probe,real=many | real: 'many' is not a number
    loss | plugin:probe,size=-4kb | size: '-4kb' is negative
    loss | plugin:probe,fault=create | create: this one is made to fail
    loss | plugin:probe,fault=silent | failed without a message
    loss | plugin:probe,fault=forgotten | said, but not returned
    loss | plugin:probe,fault=hint | hints; delay_mean_ns is -1
"#;

#[test]
fn plugins_and_parameters_are_refused_with_what_to_do() {
    for [option, text, parts] in rows(REFUSED) {
        let mut text = text.replace("CARGO", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        for variant in ["HIDDEN", "VERSION=2", "SIZE=40"] {
            if text.ends_with(variant) {
                text = text.replace(variant, &probe_with(variant));
            }
        }
        let parts: Vec<&str> = parts.split("; ").collect();
        assert_says(&refusal(option, &text), &parts);
    }
}

#[test]
fn hints_reach_the_defaults() {
    let text = named("plugin:tdm,rate=10mbit,period=10ms,slot=2ms");
    let config = parse(&format!("rate={text}"), &Faults::new()).unwrap();
    let mean = config.rate.bit_rate().map(|rate| rate.bits_per_sec());
    assert_eq!(mean, Some(2_000_000));
    // Without a delay, the derived queue limit is 100 ms at the mean rate.
    let limit = config.queue_limit().bytes.map(|bytes| bytes.0);
    assert_eq!(limit, Some(25_000));
    // The description equals the parsed text.
    let described = text.replace("plugin:", "plugin:file=");
    assert_eq!(config.rate.to_string(), described);
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

    // Two loss models decide separately, with separate states.
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
