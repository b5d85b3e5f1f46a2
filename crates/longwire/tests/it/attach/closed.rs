//! Interfaces that stay closed after the emulator is killed, including next to other links and
//! after changes while no process owned them.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::{NetNamespace, link_delete, link_stats};
use longwire_testbed::support::{Folder, within};
use longwire_testbed::{Plan, Side};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use serde_json::{Value, json};

use super::several::{joined, prefix};
use super::{DEVICE, Joined, detach, name_of};
use crate::common::node::{RunningNode, attachment, path};
use crate::common::program::{background, eventually, longwire, start};
use crate::common::site::path_of;

const BPF: &str = "/sys/fs/bpf";
const NONE: Option<&str> = None;
/// Maximum time on a busy machine from SIGKILL until all threads of the process have stopped.
const KILL_MAX: Duration = Duration::from_millis(20);

/// Gives the calling thread and its children a mount namespace with or without a BPF file system.
fn mounts(bpf: bool) {
    unshare(CloneFlags::CLONE_NEWNS).expect("root has mount namespaces");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, private, NONE).expect("private mounts");
    let kind = if bpf { "bpf" } else { "tmpfs" };
    mount(Some(kind), BPF, Some(kind), MsFlags::empty(), NONE).expect("a mount");
}

fn pins() -> usize {
    let entries = Path::new(BPF).read_dir().expect("it is mounted");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("longwire");
    names.filter(own).count()
}

/// Numbered datagrams in one direction: send times and arrivals.
pub(super) struct Numbered {
    pub sent: Vec<Instant>,
    pub arrived: Vec<(usize, Instant)>,
}

impl Numbered {
    /// Asserts that each datagram took at least the delay `by`, with a tolerance of 1 ms.
    fn assert_delayed(&self, by: Duration) {
        let delays = self.arrived.iter().map(|(number, at)| {
            let delay = at.duration_since(self.sent[*number]);
            (*number, delay)
        });
        let delays: Vec<(usize, Duration)> = delays.collect();
        // The link converts CLOCK_REALTIME receive stamps to monotonic time, with an error of
        // microseconds.
        let is_early = |delay: Duration| delay + Duration::from_millis(1) <= by;
        let early = delays.iter().filter(|(_, delay)| is_early(*delay)).count();
        if let Some(first) = delays.iter().position(|(_, delay)| is_early(*delay)) {
            let near = &delays[first.saturating_sub(5)..delays.len().min(first + 15)];
            panic!(
                "{early} of {} passed by the link, first: {near:?}",
                delays.len()
            );
        }
    }
}

/// Sends numbered datagrams between namespaces until `over`, then waits for late ones.
pub(super) fn number(
    from: &NetNamespace,
    to: &NetNamespace,
    side: Side,
    over: &AtomicBool,
) -> Numbered {
    let address = SocketAddr::new(Plan::USUAL.v4_of(side).into(), 9_000);
    let receiver = within(to, || UdpSocket::bind(address));
    // A large buffer avoids losses at the receiver while its thread waits for a core.
    setsockopt(&receiver, RcvBufForce, &(16 << 20)).expect("root may");
    let sender = within(from, || UdpSocket::bind("0.0.0.0:0"));
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
            // Fails while the interface is closed or the queue is full.
            let _ = sender.send_to(&(sent.len() - 1).to_be_bytes(), address);
            thread::sleep(Duration::from_micros(50));
        }
        let arrived = receiving.join().expect("it received");
        Numbered { sent, arrived }
    })
}

/// Waits until this many more datagrams have arrived at far.
pub(super) fn wait_for_arrivals(joined: &Joined, datagrams: u64) {
    let arrived = || within(&joined.far, || link_stats(DEVICE)).rx_packets;
    let enough = arrived() + datagrams;
    eventually("nothing arrives", || arrived() >= enough);
}

fn closed(joined: &Joined, delay: &str) -> Value {
    let mut body = attachment(&path_of(&joined.near), json!({ "delay": delay }));
    body["fail"] = "closed".into();
    body
}

#[test]
fn a_node_that_is_killed_leaves_interfaces_closed_until_it_is_back() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    let folder = Folder::new();
    let mut node = RunningNode::start(&folder);
    node.put("closed", &closed(&joined, "15ms"));
    assert_eq!(pins(), 2);
    let over = AtomicBool::new(false);
    let stream = thread::scope(|scope| {
        let stream = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
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
        node.assert_crossed(|| joined.round_trip(), 30.0);
        node.delete("closed");
        stream
    });
    assert_eq!(pins(), 0);
    joined.assert_round_trip(0.0);
    joined.assert_clean();
    let (arrived, sent) = (stream.arrived.len(), stream.sent.len());
    assert!(arrived > 1_000, "{arrived} of {sent}");
    stream.assert_delayed(Duration::from_millis(15));
}

#[test]
fn nothing_passes_once_the_program_is_killed() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    // Resolve neighbours while the interface is open.
    joined.assert_round_trip(0.0);
    let name = name_of("closed");
    for round in 0..5 {
        let attached = joined.attach(&name, "--fail closed --delay 30ms");
        assert_eq!(pins(), 2);
        let over = AtomicBool::new(false);
        let (streams, killed) = thread::scope(|scope| {
            let up = scope.spawn(|| number(&joined.near, &joined.far, Side::Far, &over));
            let down = scope.spawn(|| number(&joined.far, &joined.near, Side::Near, &over));
            thread::sleep(Duration::from_millis(250 + 7 * round));
            // SIGKILL takes effect after a delay.
            attached.program.signal(Signal::SIGKILL);
            let killed = Instant::now() + KILL_MAX;
            let _ = attached.program.end();
            thread::sleep(Duration::from_millis(200));
            over.store(true, Ordering::Relaxed);
            let streams = [up, down].map(|stream| stream.join().expect("a stream"));
            (streams, killed)
        });
        for stream in &streams {
            assert!(
                !stream.arrived.is_empty(),
                "nothing arrived before the kill"
            );
            for (number, _) in &stream.arrived {
                assert!(
                    stream.sent[*number] < killed,
                    "{number} passed after the kill"
                );
            }
            stream.assert_delayed(Duration::from_millis(30));
            assert!(stream.sent.last().is_some_and(|last| *last > killed));
        }
        assert_eq!(joined.round_trip(), None, "closed");
        longwire("attach list").prints("its emulator ended");
        longwire(format!("attach set {name} delay=1ms")).says("attach detach");
        joined.refuses(&name_of("other"), "", "attach list");
        detach(&name);
        joined.assert_round_trip(0.0);
        joined.assert_clean();
        assert_eq!(pins(), 0);
    }
    let listed = longwire("attach list").stdout;
    assert!(!listed.contains(&name), "{listed}");
}

#[test]
fn nothing_stays_after_a_usual_end_or_without_the_interface() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    let name = name_of("usual");
    let attached = joined.attach(&name, "--fail closed --delay 5ms");
    joined.assert_round_trip(10.0);
    attached.detach();
    joined.assert_round_trip(0.0);
    assert_eq!(pins(), 0);
    joined.assert_clean();

    // Traffic that is not selected for the link stays open.
    joined
        .attach(&name, "--fail closed --to 192.0.2.0/24")
        .kill();
    joined.assert_round_trip(0.0);
    detach(&name);

    joined.attach(&name, "--fail closed --delay 5ms").kill();
    within(&joined.near, || link_delete(DEVICE));
    let listed = longwire("attach list").stdout;
    assert!(!listed.contains(&name), "{listed}");
    assert_eq!(pins(), 0);
}

#[test]
fn closed_needs_a_bpf_file_system() {
    let Some(joined) = Joined::new() else { return };
    mounts(false);
    let refused = joined.refuses(&name_of("no-bpf"), "--fail closed", "mount -t bpf");
    refused.exits(1);
    joined.assert_round_trip(0.0);
    joined.assert_clean();
}

#[test]
fn a_later_link_does_not_open_a_closed_one() {
    let Some((joined, [first, second, _])) = joined() else {
        return;
    };
    mounts(true);
    for address in [first, second] {
        joined.assert_round_trip_to(address, 0.0);
    }
    for _ in 0..3 {
        let name = name_of("closed-part");
        joined
            .attach(&name, &format!("--fail closed --to {}", prefix(first)))
            .kill();
        let options = format!("--to {} --delay 10ms", prefix(second));
        let other = joined.attach(&name_of("later"), &options);
        assert_eq!(joined.round_trip_to(first), None, "closed");
        joined.assert_round_trip_to(second, 20.0);
        other.detach();
        detach(&name);
    }
    for address in [first, second] {
        joined.assert_round_trip_to(address, 0.0);
    }
    joined.assert_clean();
}

#[test]
fn links_that_are_attached_at_once_are_apart() {
    let Some((joined, addresses)) = joined() else {
        return;
    };
    mounts(true);
    for fail in ["closed", "open"] {
        let runs = addresses.map(|address| {
            let name = name_of(&format!("apart-{address}"));
            let options = format!("--fail {fail} --to {} --delay 10ms", prefix(address));
            let program = start(joined.line(DEVICE, &name, &options));
            joined.links.0.lock().expect("no panic").push(name.clone());
            (name, program)
        });
        let runs = runs.map(|(name, program)| (name, program.ready("attached to")));
        // Detach the runs one by one.
        for (number, (name, program)) in runs.into_iter().enumerate() {
            for (other, address) in addresses.into_iter().enumerate() {
                let delays = if other < number { 0.0 } else { 20.0 };
                joined.assert_round_trip_to(address, delays);
            }
            detach(&name);
            let _ = program.end();
        }
        assert_eq!(pins(), 0);
    }
    joined.assert_clean();
}

#[test]
fn a_closed_attachment_whose_target_is_gone_opens_when_it_is_removed() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    for by_end_of_node in [false, true] {
        let folder = Folder::new();
        let node = RunningNode::start(&folder);
        let sleep = background(&joined.near, "sleep 1000");
        let mut body = closed(&joined, "15ms");
        body["target"] = json!({ "pid": sleep.id() });
        node.put("pid", &body);
        node.assert_crossed(|| joined.round_trip(), 30.0);
        node.kill();
        assert_eq!(joined.round_trip(), None, "closed");
        drop(sleep);
        let node = RunningNode::start(&folder);
        assert_eq!(node.get("pid")["state"], "waiting");
        assert_eq!(joined.round_trip(), None, "closed until it is removed");
        if by_end_of_node {
            node.stop();
        } else {
            node.delete("pid");
        }
        assert_eq!(pins(), 0);
        joined.assert_round_trip(0.0);
    }
    joined.assert_clean();
}

#[test]
fn each_interface_of_a_closed_attachment_is_attached_again() {
    let Some((joined, [first, second, _])) = joined() else {
        return;
    };
    mounts(true);
    joined.add_pair("eth1");
    let folder = Folder::new();
    let node = RunningNode::start(&folder);
    // Attach to one interface first, so that the next attachment gets different serial numbers at
    // the two interfaces.
    let mut other = attachment(&path_of(&joined.near), json!({ "delay": "5ms" }));
    other["to"] = json!([prefix(second)]);
    node.put("other", &other);
    let mut all = closed(&joined, "15ms");
    all["interface"] = "all".into();
    all["to"] = json!([prefix(first)]);
    let made = node.put("all", &all);
    assert_eq!(made["interfaces"], json!([DEVICE, "eth1"]), "{made}");
    assert_eq!(pins(), 4);
    node.kill();
    assert_eq!(joined.round_trip(), None, "closed");
    let node = RunningNode::start(&folder);
    node.assert_crossed(|| joined.round_trip(), 30.0);
    assert_eq!(pins(), 4);
    // An interface deleted while no node runs leaves nothing behind.
    node.kill();
    within(&joined.near, || link_delete("eth1"));
    let node = RunningNode::start(&folder);
    node.assert_crossed(|| joined.round_trip(), 30.0);
    assert_eq!(pins(), 2);
    node.delete("all");
    assert_eq!(pins(), 0);
    node.assert_crossed(|| joined.round_trip(), 0.0);
    node.delete("other");
    joined.assert_clean();
}

#[test]
fn a_node_that_is_killed_at_any_moment_leaves_nothing_closed_after_its_removal() {
    let Some(joined) = Joined::new() else { return };
    mounts(true);
    joined.assert_round_trip(0.0);
    let folder = Folder::new();
    for wait_ms in (0..60).step_by(4) {
        let node = RunningNode::start(&folder);
        let body = closed(&joined, "1ms");
        let mut client = node.client();
        let put = thread::spawn(move || client.put(&path("any"), &body).is_ok());
        thread::sleep(Duration::from_millis(wait_ms));
        node.kill();
        let _ = put.join();
        let node = RunningNode::start(&folder);
        node.delete("any");
        node.stop();
        assert_eq!(pins(), 0, "killed after {wait_ms} ms");
        assert!(joined.round_trip().is_some(), "killed after {wait_ms} ms");
    }
    joined.assert_clean();
}
