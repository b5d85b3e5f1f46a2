//! Every change of a network, once each.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::addr_add;
use serde_json::json;

use crate::common::process::TIMEOUT;
use crate::common::site::{assert_nothing_lost, link};
use crate::common::{ran, write};
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

/// The second station's other address, which no rule of the file matches.
const SECOND: &str = "10.9.0.12";

fn started() -> Option<ControlledRun> {
    let controlled = ControlledRun::new(2, NETWORK)?;
    let second = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 12));
    let given = controlled.site.stations[1].run(|| addr_add("eth0", second, 24));
    given.expect("it is entered").expect("an address");
    // Replies begin once all devices of the stations are up.
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
    // Every second echo request is lost, as the report counts.
    controlled.well("set ab.up loss=nth:2");
    let ping = [
        "ping", "-c", "20", "-i", "0.05", "-W", "1", "-q", "10.9.0.2",
    ];
    controlled.site.at(0, &ping);
    controlled.well("set ab loss=0%");
    controlled.well("off ab");
    controlled.is_cut();
    assert_eq!(controlled.json("get ab")["up"]["state"], "off");
    controlled.well("on ab");
    controlled.takes(35.0);
    let report = controlled.stop();
    assert!(link(&report, "ab.up")["drops"]["outage"].as_u64() >= Some(4));
    assert_eq!(link(&report, "ab.up")["drops"]["loss"], 10);
    assert_nothing_lost(&report);
}

#[test]
fn frames_held_by_a_pause_arrive_after_it() {
    let Some(controlled) = started() else { return };
    controlled.well("pause ab.up");
    let child = controlled.site.stations[0].run(|| {
        let mut ping = Command::new("ping");
        ping.args(["-c", "3", "-i", "0.2", "-W", "60", "-q", "10.9.0.2"]);
        ping.stdout(Stdio::piped()).spawn()
    });
    let child = child.expect("it is entered").expect("ping is installed");
    let began = Instant::now();
    loop {
        let held = controlled.json("get ab.up");
        assert_eq!(held["state"], "paused");
        if held["queue"]["packets"] == 3 {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{held}");
    }
    let from = controlled.elapsed();
    std::thread::sleep(Duration::from_secs(1));
    let paused_s = controlled.elapsed() - from;
    controlled.well("on ab.up");
    let said = ran(child.wait_with_output().expect("it ends")).stdout;
    assert!(said.contains("3 received"), "{said}");
    let times = said.split_once("min/avg/max/mdev = ").expect("times").1;
    let longest: f64 = times
        .split('/')
        .nth(2)
        .expect("the longest")
        .parse()
        .expect("a number");
    assert!(longest > 1_000.0 * paused_s, "{paused_s} s: {said}");
    controlled.takes(20.0);
    assert_nothing_lost(&controlled.stop());
}

#[test]
fn links_are_added_and_removed() {
    let Some(controlled) = started() else { return };
    controlled.takes_to(SECOND, 0.0);
    let matcher = format!("src=10.9.0.1,dst={SECOND}");
    controlled.well(&format!(
        "add new --match {matcher} --template slow --up-rate 50mbit"
    ));
    controlled.takes_to(SECOND, 50.0);
    let response = controlled.json("get new");
    assert_eq!(
        response["up"]["options"],
        json!({ "delay": "25ms", "rate": "50mbit" })
    );
    assert!(
        response["down"]["packets_in"].as_u64() >= Some(4),
        "{response}"
    );
    // A name that is in use.
    let again = controlled.ctl(&format!("add new --match {matcher}"));
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("link.name"), "{again:?}");
    let passed = || {
        controlled.json("report")["passed"]
            .as_u64()
            .expect("a count")
    };
    let before = passed();
    controlled.well("remove new");
    controlled.takes_to(SECOND, 0.0);
    assert!(passed() >= before + 8, "they fall to unmatched");
    let gone = controlled.ctl("get new");
    assert_eq!(gone.code, 2, "{gone:?}");
    controlled.takes(20.0);
    assert_nothing_lost(&controlled.stop());
}

#[test]
fn frames_are_led_over_another_link() {
    let Some(controlled) = started() else { return };
    controlled.well("move ab other");
    controlled.takes(80.0);
    assert_eq!(controlled.json("get ab")["moved_to"], "other");
    controlled.well("move ab ab --outage 1h");
    controlled.is_cut();
    let from = controlled.elapsed();
    controlled.well("move ab ab --outage 1s");
    controlled.site.wait_for_answer(0, 1);
    assert!(controlled.elapsed() >= from + 1.0, "the outage ended early");
    controlled.takes(20.0);
    assert_nothing_lost(&controlled.stop());
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
    let (report, frames) = controlled.stop_with_frames("ab.up");
    assert_nothing_lost(&report);
    let made = |index: usize| {
        let change = &report["changes"]["made"][index];
        change["at_ns"].as_i64().expect("a time")
    };
    let (first, second) = (made(0), made(1));
    let due = from + 1.0..=until + 1.0;
    assert!(due.contains(&(first as f64 / 1e9)), "{first}: {due:?}");
    assert_eq!(second, (at * 1e9) as i64);
    for frame in frames {
        let delay_ms = match frame.arrival {
            arrival if arrival < first => 10,
            arrival if arrival < second => 50,
            _ => 1,
        };
        assert_eq!(frame.time, delay_ms * 1_000_000, "{frame:?}");
    }
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let Some(controlled) = started() else { return };
    let before = controlled.json("get");
    let file = controlled.dir.file("change.toml");
    write(
        &file,
        b"off = [\"ab\"]\n[set.other]\ndelay = \"1ms\"\n[set.\"a*\"]\nrate = \"fast\"\n\
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
    let options = |response: &serde_json::Value| {
        let links = response.as_array().expect("links").iter();
        let facts = links.map(|link| {
            let way = |way: &str| json!([link[way]["state"], link[way]["options"]]);
            json!([link["name"], way("up"), way("down")])
        });
        facts.collect::<Vec<_>>()
    };
    assert_eq!(options(&controlled.json("get")), options(&before));
    controlled.takes(20.0);
    // Without the error, all changes apply; with `check`, none does.
    let good = r#"{"set": {"a*": {"delay": "15ms"}, "other": {"delay": "1ms"}}}"#;
    write(&file, good.as_bytes());
    controlled.well(&format!("apply {file} --check"));
    controlled.takes(20.0);
    let said = controlled.well(&format!("apply {file}"));
    assert!(said.starts_with("2 links changed at "), "{said}");
    controlled.takes(30.0);
    assert_nothing_lost(&controlled.stop());
}
