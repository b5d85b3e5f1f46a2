//! Interfaces that stay closed when the emulator is killed.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, link_stats};
use longwire_testbed::support::Folder;
use longwire_testbed::{Plan, Side};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};

use super::node::{RunningNode, attachment};
use super::{DEVICE, Joined, name_of};
use crate::common::longwire;
use crate::common::process::TIMEOUT;
use serde_json::json;

const BPF: &str = "/sys/fs/bpf";
const NONE: Option<&str> = None;
/// Maximum time from a signal until no thread of the process runs, on a busy machine.
const KILL_MAX: Duration = Duration::from_millis(20);

/// Gives the calling thread and its children a mount namespace with a BPF file system,
/// or without one.
pub(super) fn mounts(bpf: bool) {
    unshare(CloneFlags::CLONE_NEWNS).expect("root has mount namespaces");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, private, NONE).expect("private mounts");
    let kind = if bpf { "bpf" } else { "tmpfs" };
    mount(Some(kind), BPF, Some(kind), MsFlags::empty(), NONE).expect("a mount");
}

pub(super) fn pins() -> usize {
    let entries = Path::new(BPF).read_dir().expect("it is mounted");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("longwire"))
        .count()
}

/// Numbered datagrams of one direction: send time of each, and arrivals.
pub(super) struct Numbered {
    pub sent: Vec<Instant>,
    pub arrived: Vec<(usize, Instant)>,
}

/// Sends datagrams between namespaces until `over`, and waits for late ones.
pub(super) fn number(
    from: &NetNamespace,
    to: &NetNamespace,
    side: Side,
    over: &AtomicBool,
) -> Numbered {
    let address = SocketAddr::new(Plan::USUAL.v4_of(side).into(), 9_000);
    let receiver = to.run(|| UdpSocket::bind(address)).expect("entered");
    let receiver = receiver.expect("a socket");
    // Avoids losses at the receiver while its thread waits for a core.
    setsockopt(&receiver, RcvBufForce, &(16 << 20)).expect("root may");
    let sender = from.run(|| UdpSocket::bind("0.0.0.0:0")).expect("entered");
    let sender = sender.expect("a socket");
    let timeout = Some(Duration::from_millis(300));
    receiver.set_read_timeout(timeout).expect("a timeout");
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut arrived, mut bytes) = (Vec::new(), [0; 8]);
            loop {
                match receiver.recv(&mut bytes) {
                    Ok(_) => arrived.push((usize::from_be_bytes(bytes), Instant::now())),
                    Err(_) if over.load(Ordering::Relaxed) => return arrived,
                    Err(_) => {}
                }
            }
        });
        let mut sent = Vec::new();
        while !over.load(Ordering::Relaxed) {
            sent.push(Instant::now());
            // Refused while the interface is closed, or when the queue is full.
            let _ = sender.send_to(&(sent.len() - 1).to_be_bytes(), address);
            thread::sleep(Duration::from_micros(50));
        }
        let arrived = receiving.join().expect("it received");
        Numbered { sent, arrived }
    })
}

/// Waits until more datagrams have arrived at far.
pub(super) fn wait_for_arrivals(joined: &Joined, datagrams: u64) {
    let begin = Instant::now();
    let arrived = || joined.far.run(|| link_stats(DEVICE)).expect("entered");
    let arrived = || arrived().expect("statistics").rx_packets;
    let enough = arrived() + datagrams;
    while arrived() < enough {
        assert!(begin.elapsed() < TIMEOUT, "nothing arrives");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_node_that_is_killed_leaves_interfaces_closed_until_it_is_back() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    let folder = Folder::new();
    let mut body = attachment(&joined, json!({ "delay": "15ms" }));
    body["fail"] = "closed".into();
    let node = RunningNode::start(&folder);
    node.put("closed", &body);
    assert_eq!(pins(), 2);
    let over = AtomicBool::new(false);
    let stream = thread::scope(|scope| {
        let stream = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
        let mut node = node;
        for _ in 0..3 {
            wait_for_arrivals(&joined, 400);
            node.kill();
            assert_eq!(pins(), 2);
            thread::sleep(Duration::from_millis(100));
            node = RunningNode::start(&folder);
            assert_eq!(node.get("closed")["state"], "attached");
            assert_eq!(pins(), 2);
        }
        wait_for_arrivals(&joined, 400);
        over.store(true, Ordering::Relaxed);
        let stream = stream.join().expect("a stream");
        joined.assert_round_trip(30.0);
        let removed = node.client().delete("/v1/attachments/closed");
        removed.expect("removed");
        stream
    });
    assert_eq!(pins(), 0);
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    let Numbered { sent, arrived } = stream;
    assert!(arrived.len() > 1_000, "{} of {}", arrived.len(), sent.len());
    for (number, at) in arrived {
        let delay = at.duration_since(sent[number]);
        let by_link = delay + Duration::from_millis(1) > Duration::from_millis(15);
        assert!(by_link, "{number} passed by the link, in {delay:?}");
    }
}

#[test]
fn nothing_passes_once_the_program_is_killed() {
    const DELAY: Duration = Duration::from_millis(30);
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    // Neighbours are resolved before the interface is closed.
    joined.assert_round_trip(0.0);
    for round in 0..5 {
        let name = name_of("closed");
        let options = ["--fail", "closed", "--delay", "30ms"];
        let attached = joined.attach(&name, &options);
        assert_eq!(pins(), 2);
        let over = AtomicBool::new(false);
        let (streams, killed) = thread::scope(|scope| {
            let up = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
            let down = scope.spawn(|| number(&joined.far, &joined.near, Side::Near, &over));
            thread::sleep(Duration::from_millis(250 + 7 * round));
            // The process ends some time later.
            attached.program.signal(Signal::SIGKILL);
            let killed = Instant::now() + KILL_MAX;
            let _ = attached.program.end();
            thread::sleep(Duration::from_millis(200));
            over.store(true, Ordering::Relaxed);
            let streams = [up, down].map(|stream| stream.join().expect("a stream"));
            (streams, killed)
        });
        for Numbered { sent, arrived } in &streams {
            assert!(!arrived.is_empty(), "nothing arrived before the kill");
            for (number, at) in arrived {
                assert!(sent[*number] < killed, "{number} passed after the kill");
                let delay = at.duration_since(sent[*number]);
                // Timestamps of two clocks differ by microseconds.
                assert!(
                    delay + Duration::from_millis(1) > DELAY,
                    "{number} passed by the link, in {delay:?}"
                );
            }
            assert!(sent.last().is_some_and(|last| *last > killed));
        }
        assert_eq!(joined.round_trip(), None, "closed");
        let listed = longwire(&["attach", "list"]).stdout;
        assert!(listed.contains("its emulator has ended"), "{listed}");
        let refused = longwire(&["attach", "set", &name, "delay=1ms"]);
        assert!(refused.stderr.contains("attach detach"), "{refused:?}");
        let refused = joined.refused(&name_of("other"), &[]);
        assert!(refused.stderr.contains("attach list"), "{refused:?}");
        let detached = longwire(&["attach", "detach", &name]);
        assert_eq!(detached.code, 0, "{detached:?}");
        joined.assert_round_trip(0.0);
        joined.assert_clean();
        assert_eq!(pins(), 0);
    }
    let listed = longwire(&["attach", "list"]).stdout;
    assert!(!listed.contains(&name_of("closed")), "{listed}");
}

#[test]
fn nothing_stays_after_a_usual_end_or_without_the_interface() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    let name = name_of("usual");
    let options = ["--fail", "closed", "--delay", "5ms"];
    let attached = joined.attach(&name, &options);
    joined.assert_round_trip(10.0);
    let _ = attached.detach();
    joined.assert_round_trip(0.0);
    assert_eq!(pins(), 0);
    joined.assert_clean();

    // Traffic that bypasses the link is not blocked.
    let attached = joined.attach(&name, &["--fail", "closed", "--to", "192.0.2.0/24"]);
    attached.kill();
    joined.assert_round_trip(0.0);
    let detached = longwire(&["attach", "detach", &name]);
    assert_eq!(detached.code, 0, "{detached:?}");

    let attached = joined.attach(&name, &options);
    attached.kill();
    let deleted = joined.near.run(|| longwire_io::net::link_delete(DEVICE));
    deleted.expect("entered").expect("deleted");
    let listed = longwire(&["attach", "list"]).stdout;
    assert!(!listed.contains(&name), "{listed}");
    assert_eq!(pins(), 0);
}

#[test]
fn closed_needs_a_bpf_file_system() {
    let Some(joined) = Joined::new() else { return };
    mounts(false);
    let refused = joined.refused(&name_of("no-bpf"), &["--fail", "closed"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("mount -t bpf"), "{refused:?}");
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}
