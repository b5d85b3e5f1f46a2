//! Frames on a link whose interface goes down or away: all are lost, and reported.

use std::net::{IpAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, link, link_delete, link_down};
use longwire_testbed::support::Folder;
use longwire_testbed::{Plan, Side};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{DEVICE, Joined, may_attach, name_of, path_of};
use crate::common::process::{RunningProgram, TIMEOUT};
use crate::common::{longwire, write};

/// Datagrams per direction.
const DATAGRAMS: u64 = 100;
/// Longer than the events at the interface take.
const DELAY: &str = "1500ms";

fn count(value: &Value, field: &str) -> u64 {
    value[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} of {value}"))
}

/// Sends datagrams from one namespace to an address.
fn send(from: &NetNamespace, to: IpAddr) {
    let socket = from.run(|| UdpSocket::bind("0.0.0.0:0"));
    let socket = socket.expect("entered").expect("a socket");
    for _ in 0..DATAGRAMS {
        let sent = socket.send_to(&[7; 200], (to, 9_000));
        sent.expect("a datagram");
        // A burst may overflow a receive ring.
        thread::sleep(Duration::from_micros(500));
    }
}

/// Returns the number of datagrams that a run received.
fn taken(report: &Value) -> u64 {
    let ports = report["ports"].as_array().expect("ports").iter();
    ports.map(|port| count(port, "packets_in")).sum()
}

/// Waits until the report of a run meets a condition.
fn wait_until(control: &str, is_met: impl Fn(&Value) -> bool) {
    let begin = Instant::now();
    loop {
        let report = longwire(&["ctl", "report", "--control", control, "--json"]);
        if report.code == 0 && is_met(&report.json()) {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "{report:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that a port lost all datagrams, and that the totals agree.
#[track_caller]
fn assert_lost(report: &Value, port: &str, how: &str) {
    let ports = report["ports"].as_array().expect("ports");
    let port = ports.iter().find(|row| row["name"] == port).expect(port);
    let artifacts = &port["artifacts"];
    let lost = count(artifacts, "no_carrier") + count(artifacts, "refused");
    assert_eq!(lost, DATAGRAMS, "{how}: {port}");
    let sent = count(port, "packets_out");
    assert_eq!(sent, count(artifacts, "no_carrier"), "{how}: {port}");
}

#[track_caller]
fn assert_not_calm(report: &Value, how: &str) {
    assert_eq!(
        report["verdict"]["grade"], "not-faithful",
        "{how}: {report}"
    );
    assert_eq!(count(report, "in_flight"), 0, "{how}: {report}");
    let line = report["verdict"]["line"].as_str().expect("a line");
    assert!(line.starts_with("not faithful"), "{how}: {line}");
}

#[test]
fn frames_for_an_interface_that_is_down_or_gone_are_lost_and_counted() {
    if !may_attach() {
        return;
    }
    let third = NetNamespace::new().expect("a namespace");
    type Event<'a> = &'a dyn Fn(NetNamespace) -> Option<NetNamespace>;
    let there = |near: NetNamespace, event: &(dyn Fn() + Sync)| {
        near.run(event).expect("entered");
        Some(near)
    };
    let events: [(&str, Event<'_>); 4] = [
        ("down", &|near| {
            there(near, &|| link_down(DEVICE).expect("down"))
        }),
        ("moved", &|near| {
            there(near, &|| link::move_to(DEVICE, &third).expect("moved"))
        }),
        ("deleted", &|near| {
            there(near, &|| link_delete(DEVICE).expect("deleted"))
        }),
        ("namespace", &|near| {
            drop(near);
            None
        }),
    ];
    for (how, event) in events {
        let Some(joined) = Joined::new() else { return };
        joined.assert_round_trip(0.0);
        let name = name_of(&format!("gone-{how}"));
        let dir = Folder::new();
        let control = dir.file("control.sock");
        let options = [
            "--delay",
            DELAY,
            "--filter",
            "udp port 9000",
            "--control",
            &control,
        ];
        let attached = joined.attach(&name, &options);
        let near_address = IpAddr::V4(Plan::USUAL.v4_of(Side::Near));
        send(&joined.near, joined.far_address);
        send(&joined.far, near_address);
        wait_until(&control, |report| taken(report) >= 2 * DATAGRAMS);
        let Joined {
            near, far: _far, ..
        } = joined;
        let near = event(near);
        let report = match how {
            "down" => {
                wait_until(&control, |report| count(report, "in_flight") == 0);
                attached.detach()
            }
            _ => attached.program.end().json(),
        };
        assert_lost(&report, "eth0.inner", how);
        assert_lost(&report, "eth0.outer", how);
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
    let text = format!(
        "[ports]\n{}{}[[link]]\nname = 'wire'\ndelay = '{DELAY}'\n",
        port("west", &joined.near, joined.far_address),
        port("east", &joined.far, near_address)
    );
    write(&file, text.as_bytes());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["run", &file, "--control", &control, "--json"]);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = RunningProgram::of(command.spawn().expect("it starts"));
    wait_until(&control, |_| true);
    send(&joined.near, joined.far_address);
    wait_until(&control, |report| taken(report) >= DATAGRAMS);
    let down = joined.far.run(|| link_down(DEVICE));
    down.expect("entered").expect("down");
    wait_until(&control, |report| count(report, "in_flight") == 0);
    running.signal(Signal::SIGINT);
    let report = running.end().json();
    assert_lost(&report, "east", "down");
    assert_not_calm(&report, "down");
}
