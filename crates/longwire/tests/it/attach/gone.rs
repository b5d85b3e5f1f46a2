//! Frames on a link whose interface goes down or is removed: all are lost and reported.

use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, link, link_delete, link_down};
use longwire_testbed::support::{Folder, within};
use longwire_testbed::{Plan, Side};
use serde_json::Value;

use super::{DEVICE, Joined, may_attach, name_of, path_of};
use crate::common::program::{longwire, start, wait_for};
use crate::common::{count, list, named, write};

/// Datagrams per direction.
const DATAGRAMS: u64 = 100;
/// Link delay, longer than interface events take.
const DELAY: Duration = Duration::from_millis(1_500);

/// Sends datagrams from a namespace to an address; returns their send times.
fn send(from: &NetNamespace, to: IpAddr) -> Vec<Instant> {
    let socket = within(from, || UdpSocket::bind("0.0.0.0:0"));
    let send = |_| {
        let now = Instant::now();
        let sent = socket.send_to(&[7; 200], (to, 9_000));
        sent.expect("a datagram");
        // A burst could overflow a receive ring.
        thread::sleep(Duration::from_micros(500));
        now
    };
    (0..DATAGRAMS).map(send).collect()
}

/// Returns the number of datagrams that a run received.
fn taken(report: &Value) -> u64 {
    let ports = list(&report["ports"]).iter();
    ports.map(|port| count(&port["packets_in"])).sum()
}

/// Waits until a run's report meets a condition.
#[track_caller]
fn wait_until(control: &str, is_met: impl Fn(&Value) -> bool) {
    wait_for("a report", || {
        let report = longwire(format!("ctl report --control {control} --json"));
        let met = report.code == 0 && is_met(&report.json());
        if met { Ok(()) } else { Err(report) }
    });
}

/// Asserts that a port lost all datagrams on the link at the time of an event, and that the totals
/// agree.
#[track_caller]
fn assert_lost(report: &Value, port: &str, how: &str, sent: &[Instant], event: Instant) {
    let port = named(&report["ports"], port);
    let of = |kind: &str| count(&port["artifacts"][kind]);
    let out = count(&port["packets_out"]);
    assert_eq!(out + of("refused"), DATAGRAMS, "{how}: {port}");
    // A busy machine may send so slowly that some datagrams are delivered before the event.
    let early = sent.iter().filter(|at| **at + DELAY <= event).count() as u64;
    assert!(
        out - of("no_carrier") <= early,
        "{how}: {early} were due: {port}"
    );
}

#[track_caller]
fn assert_not_calm(report: &Value, how: &str) {
    let verdict = &report["verdict"];
    assert_eq!(verdict["grade"], "not-faithful", "{how}: {report}");
    assert_eq!(report["in_flight"], 0, "{how}: {report}");
    let line = verdict["line"].as_str().expect("a line");
    assert!(line.starts_with("not faithful"), "{how}: {line}");
}

#[test]
fn frames_for_an_interface_that_is_down_or_gone_are_lost_and_counted() {
    if !may_attach() {
        return;
    }
    let third = NetNamespace::new().expect("a namespace");
    let near_address = IpAddr::V4(Plan::USUAL.v4_of(Side::Near));
    for how in ["down", "moved", "deleted", "namespace"] {
        let Some(joined) = Joined::new() else { return };
        joined.assert_round_trip(0.0);
        let dir = Folder::new();
        let control = dir.file("control.sock");
        let options = format!("--delay 1500ms --filter 'udp port 9000' --control {control}");
        let attached = joined.attach(&name_of(&format!("gone-{how}")), &options);
        let from_near = send(&joined.near, joined.far_address);
        let from_far = send(&joined.far, near_address);
        wait_until(&control, |report| taken(report) >= 2 * DATAGRAMS);
        let Joined {
            near, far: _far, ..
        } = joined;
        match how {
            "down" => within(&near, || link_down(DEVICE)),
            "moved" => within(&near, || link::move_to(DEVICE, &third)),
            "deleted" => within(&near, || link_delete(DEVICE)),
            _ => {}
        }
        let near = (how != "namespace").then_some(near);
        let event = Instant::now();
        let report = if how == "down" {
            wait_until(&control, |report| count(&report["in_flight"]) == 0);
            attached.detach()
        } else {
            attached.program.end().json()
        };
        assert_lost(&report, "eth0.inner", how, &from_far, event);
        assert_lost(&report, "eth0.outer", how, &from_near, event);
        assert_not_calm(&report, how);
        drop(near);
    }
}

#[test]
fn a_port_at_an_interface_that_is_down_loses_its_frames_and_counts_them() {
    let Some(joined) = Joined::new() else { return };
    joined.assert_round_trip(0.0);
    let dir = Folder::new();
    let (control, file) = (dir.file("control.sock"), dir.file("net.toml"));
    let port = |name: &str, namespace, to: IpAddr| {
        let place = path_of(namespace);
        format!("{name}.attach = {{ netns = '{place}', interface = 'eth0', to = ['{to}/32'] }}\n")
    };
    let near_address = IpAddr::V4(Plan::USUAL.v4_of(Side::Near));
    let west = port("west", &joined.near, joined.far_address);
    let east = port("east", &joined.far, near_address);
    let link = "[[link]]\nname = 'wire'\ndelay = '1500ms'\n";
    write(&file, format!("[ports]\n{west}{east}{link}"));
    let running = start(format!("longwire run {file} --control {control} --json"));
    wait_until(&control, |_| true);
    let sent = send(&joined.near, joined.far_address);
    wait_until(&control, |report| taken(report) >= DATAGRAMS);
    within(&joined.far, || link_down(DEVICE));
    let event = Instant::now();
    wait_until(&control, |report| count(&report["in_flight"]) == 0);
    let report = running.stop().json();
    assert_lost(&report, "east", "down", &sent, event);
    assert_not_calm(&report, "down");
}
