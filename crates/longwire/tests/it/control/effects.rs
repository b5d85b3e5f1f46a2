//! Changes of a network by `ctl`, measured by pings.

use serde_json::json;

use crate::common::site::{assert_nothing_lost, link};
use crate::common::write;
use crate::control::ControlledRun;

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"
delay = "10ms"

[[link]]
name = "other"
match = "src=10.9.0.1,dst=10.9.0.99"
delay = "40ms"
"#;

fn started() -> Option<ControlledRun> {
    let controlled = ControlledRun::new(2, NETWORK)?;
    controlled.site.wait_for_answer(0, 1);
    Some(controlled)
}

#[test]
fn links_are_set_taken_down_and_up() {
    let Some(controlled) = started() else { return };
    controlled.takes(20.0);
    controlled.well("set ab delay=30ms");
    controlled.takes(60.0);
    controlled.well("set ab.down delay=5ms rate=10mbit");
    controlled.takes(35.0);
    let response = controlled.json("get ab");
    assert_eq!(
        response["down"]["options"],
        json!({ "delay": "5ms", "rate": "10mbit" })
    );
    // Every second echo request is lost.
    controlled.well("set ab.up loss=nth:2");
    let ping = [
        "ping", "-c", "20", "-i", "0.05", "-W", "1", "-q", "10.9.0.2",
    ];
    let said = controlled.site.at(0, &ping).stdout;
    assert!(said.contains("10 received"), "{said}");
    controlled.well("set ab loss=0%");
    controlled.well("down ab");
    controlled.is_cut();
    assert_eq!(controlled.json("get ab")["up"]["state"], "down");
    controlled.well("up ab");
    controlled.takes(35.0);
    let report = controlled.network.stop();
    assert!(link(&report, "ab.up")["drops"]["outage"].as_u64() >= Some(4));
    assert_eq!(link(&report, "ab.up")["drops"]["loss"], 10);
    assert_nothing_lost(&report);
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let Some(controlled) = started() else { return };
    let file = controlled.dir.file("change.toml");
    write(
        &file,
        b"down = [\"ab\"]\n[set.other]\ndelay = \"1ms\"\n[set.\"a*\"]\nrate = \"fast\"\n\
          [add]\nlink = [{ name = \"x\", match = \"src=10.9.0.1\" }]\n",
    );
    for words in [format!("apply {file}"), format!("apply {file} --check")] {
        let refused = controlled.ctl(&words);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("set.a*.rate"), "{refused:?}");
        assert!(
            refused.stderr.contains("nothing was changed"),
            "{refused:?}"
        );
    }
    let refused = controlled.ctl(&format!("apply {file} --json"));
    assert_eq!(refused.code, 2);
    assert_eq!(refused.json()["problems"][0]["field"], "set.a*.rate");
    let good = r#"{"set": {"a*": {"delay": "15ms"}, "other": {"delay": "1ms"}}}"#;
    write(&file, good.as_bytes());
    let delay = || controlled.json("get ab")["up"]["options"]["delay"].clone();
    controlled.well(&format!("apply {file} --check"));
    assert_eq!(delay(), "10ms");
    let said = controlled.well(&format!("apply {file}"));
    assert!(said.starts_with("2 links changed at "), "{said}");
    assert_eq!(delay(), "15ms");
    controlled.network.stop();
}
