//! Kills programs with links at many interfaces.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use longwire_io::Pidfd;
use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, within};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use serde_json::json;

use super::{Joined, name_of, set_up};
use crate::common::node::{RunningNode, attachment};
use crate::common::program::{RunningProgram, TIMEOUT, piped};
use crate::common::site::path_of;

/// Number of interfaces. The kernel takes 0.2 s per interface to close links and sockets.
const INTERFACES: u8 = 24;
const PORT: u16 = 9_100;
/// Time that a busy machine adds to both measured times.
const BUSY: Duration = Duration::from_millis(200);

/// Sockets at both ends of an interface.
struct Wire {
    sender: UdpSocket,
    receiver: UdpSocket,
}

fn device(number: u8) -> String {
    format!("wire{number}")
}

/// Creates more interfaces between both namespaces, with static neighbours.
fn wires(joined: &Joined) -> Vec<Wire> {
    let wire = |number: u8| {
        let name = device(number);
        joined.add_pair(&name);
        let [near, far] = [1, 2].map(|host| IpAddr::from([10, 120, number, host]));
        let bind = |namespace: &NetNamespace, address: IpAddr| {
            set_up(namespace, &name, address);
            within(namespace, || {
                UdpSocket::bind(SocketAddr::new(address, PORT))
            })
        };
        let receiver = bind(&joined.far, far);
        let sender = bind(&joined.near, near);
        sender.connect((far, PORT)).expect("an address");
        receiver.set_nonblocking(true).expect("a socket");
        Wire { sender, receiver }
    };
    let wires: Vec<Wire> = (0..INTERFACES).map(wire).collect();
    assert!(passes_by(Instant::now() + TIMEOUT, &wires, || false).is_some());
    wires
}

/// Sends until a datagram has passed each interface. Returns the longest interval between two
/// attempts, which is the resolution of the measurement; `None` if `end` or `is_over` comes first.
fn passes_by(end: Instant, wires: &[Wire], is_over: impl Fn() -> bool) -> Option<Duration> {
    let mut waiting: Vec<&Wire> = wires.iter().collect();
    let (mut last, mut unseen) = (Instant::now(), Duration::ZERO);
    while !waiting.is_empty() {
        let now = Instant::now();
        unseen = unseen.max(now - last);
        last = now;
        if now > end || is_over() {
            return None;
        }
        waiting.retain(|wire| {
            let _ = wire.sender.send(b"x");
            wire.receiver.recv(&mut [0; 8]).is_err()
        });
        std::thread::sleep(Duration::from_micros(200));
    }
    Some(unseen.max(last.elapsed()))
}

/// Kills a program whose links drop every frame. Asserts that datagrams pass long before the kernel
/// has removed the process, which takes longer with more interfaces.
#[track_caller]
fn assert_open_at_once(program: RunningProgram, wires: &[Wire]) {
    for wire in wires {
        while wire.receiver.recv(&mut [0; 8]).is_ok() {}
    }
    let moment = Instant::now() + Duration::from_millis(50);
    let passed = passes_by(moment, wires, || false);
    assert!(passed.is_none(), "everything is lost");
    let process = Pidfd::open(program.id()).expect("it runs");
    let killed = Instant::now();
    program.signal(Signal::SIGKILL);
    let is_over = || {
        let mut ended = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        poll(&mut ended, PollTimeout::ZERO).expect("a process") > 0
    };
    let unseen = passes_by(killed + TIMEOUT, wires, is_over);
    let taken = killed.elapsed();
    let _ = program.end();
    let ended = killed.elapsed();
    println!("open after {taken:?}; the process ended after {ended:?}");
    let unseen = unseen.expect("all are open before the process has ended");
    // A busy machine may also stop this thread, which then notices the change late.
    assert!(
        taken.saturating_sub(unseen) < ended.max(BUSY) / 2,
        "open after {taken:?}, {unseen:?} unseen; the end came after {ended:?}"
    );
}

#[test]
fn all_interfaces_of_a_killed_program_are_open_at_once() {
    let Some(joined) = Joined::new() else { return };
    let wires = wires(&joined);
    // The soft limit on open files is too low for all links; the program must raise it.
    let line = joined.line("all", &name_of("killed-all"), "--loss 100%");
    let program = RunningProgram::spawn(&mut piped(format!("prlimit --nofile=128:4096 {line}")));
    assert_open_at_once(program.ready("attached to"), &wires);
    joined.assert_clean();
}

#[test]
fn all_interfaces_of_a_killed_node_are_open_at_once() {
    let Some(joined) = Joined::new() else { return };
    let wires = wires(&joined);
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    // The second round changes the selected prefix, which replaces the BPF programs.
    for prefix in ["10.120.0.0/16", "10.0.0.0/8"] {
        for name in (0..INTERFACES).map(device) {
            let mut body = attachment(&path_of(&joined.near), json!({ "loss": "100%" }));
            body["interface"] = name.as_str().into();
            body["to"] = json!([prefix]);
            node.put(&name, &body);
        }
    }
    assert_open_at_once(node.program, &wires);
    joined.assert_clean();
}
