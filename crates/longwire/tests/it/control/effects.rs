//! Every kind of network change, once each. longwire-network and longwire-runtime test changes in
//! virtual time; these tests show that `ctl` applies changes to the packets of real stations.

use std::time::Duration;

use longwire_io::net::addr_add;
use longwire_testbed::support::within;
use serde_json::json;

use crate::common::program::{start_in, wait_for};
use crate::common::site::assert_nothing_lost;
use crate::common::{count, list, named, write};
use crate::control::ControlledRun;

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[templates.slow]
delay = "25ms"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"
delay = "10ms"

[[link]]
name = "other"
match = "src=10.9.0.1,dst=10.9.0.99"
delay = "40ms"
"#;

/// Second address of station 1, which no rule in the file matches.
const SECOND: &str = "10.9.0.12";

fn started() -> Option<ControlledRun> {
    let controlled = ControlledRun::new(2, NETWORK)?;
    let second = SECOND.parse().expect("an address");
    within(&controlled.site.stations[1], || {
        addr_add("eth0", second, 24)
    });
    // Stations reply once all their devices are up.
    controlled.site.wait_for_answer(0, 1);
    Some(controlled)
}

#[test]
fn links_are_set_turned_off_paused_and_moved() {
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
    // Every second echo request is lost, and the report counts the losses.
    controlled.well("set ab.up loss=nth:2");
    controlled.site.at(0, "ping -c 20 -i 0.05 -W 1 -q 10.9.0.2");
    controlled.well("set ab loss=0%");
    controlled.well("off ab");
    controlled.is_cut();
    assert_eq!(controlled.json("get ab")["up"]["state"], "off");
    controlled.well("on ab");
    controlled.takes(35.0);
    frames_held_by_a_pause_arrive_after_it(&controlled);
    controlled.takes(35.0);
    controlled.well("move ab other");
    controlled.takes(80.0);
    assert_eq!(controlled.json("get ab")["moved_to"], "other");
    controlled.well("move ab ab --outage 1h");
    controlled.is_cut();
    let from = controlled.elapsed();
    controlled.well("move ab ab --outage 1s");
    controlled.site.wait_for_answer(0, 1);
    assert!(controlled.elapsed() >= from + 1.0, "the outage ended early");
    controlled.takes(35.0);
    let (report, _) = controlled.stop();
    let drops = &named(&report["links"], "ab.up")["drops"];
    assert!(count(&drops["outage"]) >= 4, "{drops}");
    assert_eq!(drops["loss"], 10);
    assert_nothing_lost(&report);
}

fn frames_held_by_a_pause_arrive_after_it(controlled: &ControlledRun) {
    controlled.well("pause ab.up");
    let ping = "ping -c 3 -i 0.2 -W 60 -q 10.9.0.2";
    let ping = start_in(&controlled.site.stations[0], ping);
    wait_for("three frames", || {
        let held = controlled.json("get ab.up");
        assert_eq!(held["state"], "paused");
        let all = held["queue"]["packets"] == 3;
        if all { Ok(()) } else { Err(held) }
    });
    let from = controlled.elapsed();
    std::thread::sleep(Duration::from_secs(1));
    let paused_s = controlled.elapsed() - from;
    controlled.well("on ab.up");
    let said = ping.end().prints("3 received").stdout;
    let times = said.split_once("min/avg/max/mdev = ").expect("times").1;
    let longest = times
        .split('/')
        .nth(2)
        .and_then(|time| time.parse::<f64>().ok());
    assert!(longest > Some(1_000.0 * paused_s), "{paused_s} s: {said}");
}

#[test]
fn links_are_added_and_removed() {
    let Some(controlled) = started() else { return };
    controlled.takes_to(SECOND, 0.0);
    let add = format!("add new --match src=10.9.0.1,dst={SECOND}");
    controlled.well(&format!("{add} --template slow --up-rate 50mbit"));
    controlled.takes_to(SECOND, 50.0);
    let response = controlled.json("get new");
    assert_eq!(
        response["up"]["options"],
        json!({ "delay": "25ms", "rate": "50mbit" })
    );
    assert!(count(&response["down"]["packets_in"]) >= 4, "{response}");
    // The name is in use.
    controlled.ctl(&add).exits(2).says("link.name");
    let passed = || count(&controlled.json("report")["passed"]);
    let before = passed();
    controlled.well("remove new");
    controlled.takes_to(SECOND, 0.0);
    assert!(passed() >= before + 8, "frames still cross a link");
    controlled.ctl("get new").exits(2);
    assert_nothing_lost(&controlled.stop().0);
}

#[test]
fn changes_are_made_at_their_time_and_not_before() {
    let Some(controlled) = started() else { return };
    let ping_until = |time: f64| {
        while controlled.elapsed() < time {
            controlled.site.round_trip(0, 1);
        }
    };
    controlled.takes(20.0);
    let from = controlled.elapsed();
    controlled.well("set ab delay=50ms --in 1s");
    let until = controlled.elapsed();
    let changes = controlled.json("changes");
    let change = &changes["changes"][0];
    assert_eq!(change["by"], "control", "{changes}");
    assert_eq!(change["change"]["in"], "1s", "{changes}");
    ping_until(until + 1.0);
    controlled.takes(100.0);
    let at = controlled.elapsed().ceil() + 5.0;
    controlled.well(&format!("set ab delay=1ms --at {at}s"));
    ping_until(at);
    controlled.takes(2.0);
    let (report, mut frames) = controlled.stop();
    assert_nothing_lost(&report);
    let made = list(&report["changes"]["made"]).iter();
    let made: Vec<i64> = made.filter_map(|change| change["at_ns"].as_i64()).collect();
    let due = from + 1.0..=until + 1.0;
    assert!(due.contains(&(made[0] as f64 / 1e9)), "{made:?}: {due:?}");
    assert_eq!(made[1], (at * 1e9) as i64);
    frames.retain(|frame| frame.link == "ab.up");
    for frame in frames {
        let delay_ms = match frame.arrival {
            arrival if arrival < made[0] => 10,
            arrival if arrival < made[1] => 50,
            _ => 1,
        };
        assert_eq!(frame.delay, delay_ms * 1_000_000, "{frame:?}");
    }
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let Some(controlled) = started() else { return };
    let before = controlled.json("get");
    let file = controlled.dir.file("change.toml");
    write(
        &file,
        "off = [\"ab\"]\n[set.other]\ndelay = \"1ms\"\n[set.\"a*\"]\nrate = \"fast\"\n\
         [add]\nlink = [{ name = \"x\", match = \"src=10.9.0.1\" }]\n",
    );
    for more in ["", "--check"] {
        let refused = controlled.ctl(&format!("apply {file} {more}")).exits(2);
        refused.says("set.a*.rate").says("nothing was changed");
    }
    let refused = controlled.ctl(&format!("apply {file} --json")).exits(2);
    assert_eq!(refused.json()["problems"][0]["field"], "set.a*.rate");
    let options = |response: &serde_json::Value| {
        let facts = list(response).iter().map(|link| {
            let way = |way: &str| json!([link[way]["state"], link[way]["options"]]);
            json!([link["name"], way("up"), way("down")])
        });
        facts.collect::<Vec<_>>()
    };
    assert_eq!(options(&controlled.json("get")), options(&before));
    controlled.takes(20.0);
    // Without the error, all changes apply; with `check`, none does.
    let good = r#"{"set": {"a*": {"delay": "15ms"}, "other": {"delay": "1ms"}}}"#;
    write(&file, good);
    controlled.well(&format!("apply {file} --check"));
    controlled.takes(20.0);
    let said = controlled.well(&format!("apply {file}"));
    assert!(said.starts_with("2 links changed at "), "{said}");
    controlled.takes(30.0);
    assert_nothing_lost(&controlled.stop().0);
}
