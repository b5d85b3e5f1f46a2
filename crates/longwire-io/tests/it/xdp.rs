//! `xdp:IF` with the kernel, over veth pairs: queues, attachment and changes to the interface.
//! Without the rights to create namespaces and to load XDP programs, the tests are skipped with a
//! message, except in CI, where they fail.

use crate::common::pair;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use longwire_io::RxPort;
use longwire_io::net::interface::Interface;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::{Port, registry};
use nix::poll::{PollFd, PollFlags, poll};
use pair::{PORT, Pair, STATION, features, frame, number_of, receive_until, send, until};

/// Environment variable of the processes that a test starts from the test program.
const CHILD: &str = "LONGWIRE_TEST_CHILD";

fn has_program(pair: &Pair) -> bool {
    pair.in_port(|| Interface::find(PORT)).unwrap().has_xdp
}

/// Broadcasts a datagram that ends with `n` from a new socket.
fn send_flow(n: u8) {
    let socket = UdpSocket::bind("10.78.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    socket.send_to(&[0, n], "10.78.0.255:9").unwrap();
}

#[test]
fn long_frames_and_an_interface_in_use_are_refused_with_a_reason() {
    let in_use = "xdp:port0: this command already forwards frames from it";
    for (mtu, start, hint) in [(9000, "", "use packet:port0"), (1500, in_use, "")] {
        let Some(pair) = Pair::number(1, mtu) else {
            return;
        };
        let _port = (mtu == 1500).then(|| pair.xdp(XdpMode::Best));
        let opened =
            pair.in_port(|| registry::open(&format!("xdp:{PORT}"), &OpenOptions::default()));
        let error = opened.err().expect("a refusal").to_string();
        let is_told = error.starts_with(start) && error.contains(hint);
        assert!(is_told, "{error}");
    }
}

#[test]
fn all_queues_are_received_in_the_order_of_arrival() {
    let Some(pair) = Pair::with_queues(1, 1500, 4) else {
        return;
    };
    let mut port = pair.xdp(XdpMode::Best);
    let used = |frames: &[pair::Kept]| -> Vec<u8> {
        let last_byte = |kept: &pair::Kept| *kept.bytes.last().unwrap();
        frames.iter().map(last_byte).collect()
    };
    // The kernel spreads flows over the queues. Frames on a queue without a socket would be
    // missing.
    pair.in_station(|| (0..200).for_each(send_flow));
    let got = receive_until(&mut port.rx, |got| got.len() >= 200);
    assert_eq!(used(&got), (0..200).collect::<Vec<u8>>());
    // One descriptor is readable, whichever queue has frames.
    let poll = |port: &Port| {
        let fd = PollFd::new(port.rx.readable().unwrap(), PollFlags::POLLIN);
        poll(&mut [fd], 100u16).unwrap()
    };
    assert_eq!(poll(&port), 0);
    for n in 0..20u8 {
        pair.in_station(|| send_flow(n));
        assert_eq!(poll(&port), 1);
        let got = receive_until(&mut port.rx, |got| !got.is_empty());
        assert_eq!(used(&got), [n]);
    }
}

#[test]
fn program_and_settings_are_put_back() {
    let Some(pair) = Pair::new() else { return };
    let features = || {
        let own = pair.in_port(|| features(PORT));
        (own, pair.in_station(|| features(STATION)))
    };
    let before = features();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let Port { rx, tx, .. } = pair.xdp(mode);
        assert!(has_program(&pair));
        if mode == XdpMode::Native {
            // With native XDP, the kernel itself disables segmentation on the veth peer.
            assert!(!features().1.active("tx-tcp-segmentation"));
        }
        drop(rx);
        assert!(has_program(&pair), "the other half is still open");
        drop(tx);
        assert!(!has_program(&pair));
        assert_eq!(features(), before);
    }
}

#[test]
fn a_child_that_has_not_started_its_program_keeps_nothing() {
    let Some(pair) = Pair::new() else { return };
    let port = pair.xdp(XdpMode::Best);
    let (mut started, start) = io::pipe().unwrap();
    let (go, mut going) = io::pipe().unwrap();
    let mut child = Command::new("true");
    // SAFETY: only reads and writes on pipes happen between fork and exec.
    unsafe {
        child.pre_exec(move || {
            (&start).write_all(b"s")?;
            (&go).read_exact(&mut [0])
        });
    }
    let child = thread::spawn(move || child.status());
    started.read_exact(&mut [0]).unwrap();
    drop(port);
    let attached = has_program(&pair);
    going.write_all(b"g").unwrap();
    assert!(child.join().unwrap().unwrap().success());
    assert!(!attached);
}

#[test]
fn the_program_is_removed_with_a_killed_process() {
    const INNER: &str = "xdp::inside_a_process_to_be_killed";
    let Some(pair) = Pair::new() else { return };
    // A child starts in the namespace of the thread that creates it.
    let mut child = pair.in_port(|| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", INNER, "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let ready = lines.any(|line| line.contains("READY"));
    assert!(ready, "the child did not open the port");
    assert!(has_program(&pair));
    child.kill().unwrap();
    child.wait().unwrap();
    until(Duration::from_secs(2), "still attached", || {
        thread::sleep(Duration::from_millis(5));
        (!has_program(&pair)).then_some(())
    });
    pair.xdp(XdpMode::Best);
}

/// Run by `the_program_is_removed_with_a_killed_process` in a separate process.
#[test]
fn inside_a_process_to_be_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let _port = registry::open(&format!("xdp:{PORT}"), &OpenOptions::default()).unwrap();
    println!("READY");
    thread::sleep(Duration::from_secs(10));
}

#[test]
fn a_port_can_be_opened_again_at_once() {
    let Some(pair) = Pair::new() else { return };
    for n in 0..20 {
        let mut port = pair.xdp(XdpMode::Best);
        let mut station = pair.station();
        send(&mut station.tx, &frame(n, 64));
        let got = receive_until(&mut port.rx, |got| !got.is_empty());
        assert_eq!(number_of(&got[0].bytes), Some(n));
    }
}
