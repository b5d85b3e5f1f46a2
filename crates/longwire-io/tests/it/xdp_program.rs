//! The attachments and changes of `xdp:IF` on an interface, and their removal. Without the
//! right to create namespaces the tests are skipped with a message, except in CI, where
//! they fail.

use crate::common::pair;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::interface::Interface;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::xdp::{self, XdpPort};
use pair::{PORT, Pair, STATION, both_in_one, frame, number_of, receive_until, send};

/// Set for the process that a test starts from its own program.
const CHILD: &str = "LONGWIRE_TEST_CHILD";

fn has_program(pair: &Pair) -> bool {
    pair.in_port(|| Interface::find(PORT)).unwrap().has_xdp
}

#[test]
fn program_and_settings_are_put_back() {
    let Some(pair) = Pair::new() else { return };
    let features = || {
        let read = |name: &str| Ethtool::open()?.features(name);
        (
            pair.in_port(|| read(PORT)).unwrap(),
            pair.in_station(|| read(STATION)).unwrap(),
        )
    };
    let before = features();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let XdpPort { rx, tx, .. } = pair.xdp(mode);
        assert!(has_program(&pair));
        if mode == XdpMode::Native {
            // By the kernel itself.
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
    // SAFETY: only reads and writes of pipes happen between fork and exec.
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
fn a_peer_in_the_same_namespace_gets_its_segmentation_back() {
    let Some(inside) = both_in_one() else { return };
    let features = || {
        let read = |name: &str| Ethtool::open()?.features(name);
        inside
            .run(|| (read(PORT).unwrap(), read(STATION).unwrap()))
            .unwrap()
    };
    let before = features();
    assert!(before.1.active("tx-tcp-segmentation"));
    let options = OpenOptions {
        xdp_mode: XdpMode::Generic,
        ..OpenOptions::default()
    };
    let port = inside.run(|| xdp::open(PORT, &options)).unwrap().unwrap();
    let during = features().1;
    assert!(!during.active("tx-tcp-segmentation") && !during.active("tx-generic-segmentation"));
    assert!(
        port.notes
            .iter()
            .any(|note| note.starts_with("station0: disabled tx-tcp-segmentation")),
        "{:?}",
        port.notes
    );
    drop(port);
    assert_eq!(features(), before);
}

#[test]
fn the_program_is_removed_with_a_killed_process() {
    const INNER: &str = "xdp_program::inside_a_process_to_be_killed";
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
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.contains("READY"));
    assert!(ready, "the child did not open the port");
    assert!(has_program(&pair));
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while has_program(&pair) {
        assert!(start.elapsed() < Duration::from_secs(2), "still attached");
        thread::sleep(Duration::from_millis(5));
    }
    pair.xdp(XdpMode::Best);
}

/// Run by `the_program_is_removed_with_a_killed_process` in a separate process.
#[test]
fn inside_a_process_to_be_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let _port = xdp::open(PORT, &OpenOptions::default()).unwrap();
    println!("READY");
    thread::sleep(Duration::from_secs(10));
}

#[test]
fn an_interface_in_use_is_refused_with_a_reason() {
    let Some(pair) = Pair::new() else { return };
    let _port = pair.xdp(XdpMode::Best);
    let again = pair.in_port(|| xdp::open(PORT, &OpenOptions::default()));
    let error = again.err().expect("it is in use");
    let said = "xdp:port0: this command already carries the frames that arrive there";
    assert!(error.to_string().starts_with(said), "{error}");
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
