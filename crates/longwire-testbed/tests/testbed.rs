//! A link between two sockets. Tests that need namespaces are skipped with a message if these are
//! not allowed, except in CI.
#![allow(missing_docs, reason = "tests")]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_testbed::support::skip;
use longwire_testbed::{Node, RunningTestbed, Testbed, TestbedError};

const PORT: u16 = 4433;

/// Starts a link; `None` if that is not allowed on this machine.
fn start(link: &str) -> Option<RunningTestbed> {
    let testbed = Testbed::link(link).expect("a link's text");
    // Tests share the machine, so allow long delays.
    match testbed.seed(7).tolerance(Duration::from_secs(10)).start() {
        Err(error) if error.is_unprivileged() => skip(error),
        started => Some(started.expect("the link starts")),
    }
}

fn socket(node: &Node, address: IpAddr, port: u16) -> UdpSocket {
    let bound = node.run(|| UdpSocket::bind((address, port)));
    let socket = bound.expect("the network is entered").expect("a socket");
    let timeout = Some(Duration::from_secs(5));
    socket.set_read_timeout(timeout).expect("a timeout");
    socket
}

/// Returns the minimum of several RTTs between two addresses.
fn fastest(net: &RunningTestbed, near: IpAddr, far: IpAddr) -> Duration {
    let (client, server) = (socket(net.near(), near, 0), socket(net.far(), far, PORT));
    client.connect((far, PORT)).expect("a peer");
    let round_trip = || {
        let begin = Instant::now();
        client.send(b"ping").expect("sent");
        let mut buffer = [0; 16];
        let (length, sender) = server.recv_from(&mut buffer).expect("arrives");
        server.send_to(&buffer[..length], sender).expect("sent");
        client.recv(&mut buffer).expect("comes back");
        begin.elapsed()
    };
    let trips: Vec<Duration> = (0..20).map(|_| round_trip()).collect();
    trips.into_iter().min().expect("trips")
}

#[test]
fn round_trips_take_both_delays() {
    let Some(net) = start("delay=20ms") else {
        return;
    };
    let (near, far) = (net.near(), net.far());
    for (near, far) in [
        (near.addr().into(), far.addr().into()),
        (near.addr_v6().into(), far.addr_v6().into()),
    ] {
        let found: Duration = fastest(&net, near, far);
        assert!(found >= Duration::from_millis(40), "{found:?}");
    }
    let report = net.finish().expect("a report");
    for direction in [&report.up, &report.down] {
        // The frames are only the datagrams: no address resolution, no IPv6 reports.
        assert_eq!([direction.packets_in(), direction.packets_out()], [40, 40]);
        assert_eq!(
            [direction.dropped(), direction.artifacts()],
            [0, 0],
            "{report:?}"
        );
        assert!(direction.artifacts_by_kind().contains_key("late"));
        // Each datagram crosses each direction once, and the fastest was released on time.
        let lateness = direction.lateness_us();
        assert!(lateness.min < 5_000.0 && lateness.max > 0.0, "{lateness:?}");
    }
}

#[test]
fn each_direction_has_its_own_loss() {
    const SENT: u64 = 2_000;
    let Some(net) = start("loss=10% down-loss=none") else {
        return;
    };
    let client = socket(net.near(), net.near().addr().into(), 0);
    let _server = socket(net.far(), net.far().addr().into(), PORT);
    for _ in 0..SENT {
        client
            .send_to(b"ping", (net.far().addr(), PORT))
            .expect("sent");
    }
    let end = Instant::now() + Duration::from_secs(5);
    while net.report().up.packets_in() < SENT && Instant::now() < end {
        sleep(Duration::from_millis(5));
    }
    let report = net.finish().expect("a report");
    let (up, lost) = (&report.up, report.up.dropped());
    assert_eq!(up.packets_in(), SENT);
    // 200 of 2,000; four standard deviations are 54.
    assert!((146..=254).contains(&lost), "{lost}");
    assert_eq!(up.drops()["loss"], lost);
    assert_eq!(up.packets_out() + lost + up.in_flight(), SENT);
    // A direction without traffic has a report too.
    assert_eq!(
        [report.down.packets_in(), report.down.drops()["loss"]],
        [0, 0]
    );
}

#[test]
fn threads_and_values_cross_over() {
    let Some(net) = start("rate=100mbit delay=1ms") else {
        return;
    };
    let listener = net.far().run(|| TcpListener::bind(("0.0.0.0", PORT)));
    let listener = listener.expect("entered").expect("a listener");
    let server = net.far().spawn(move || {
        let mut text = String::new();
        let (mut stream, _) = listener.accept().expect("a client");
        stream.read_to_string(&mut text).expect("text");
        text
    });
    let server = server.expect("a thread");
    let sent = net.near().run(|| {
        let mut stream = TcpStream::connect((net.far().addr(), PORT))?;
        stream.write_all(b"over the link")
    });
    sent.expect("entered").expect("sent");
    assert_eq!(server.join().expect("ends"), "over the link");
}

#[test]
fn programs_run_at_an_end() {
    let Some(net) = start("delay=1ms") else {
        return;
    };
    let mut command = Command::new("sh");
    let line = "cat /proc/net/dev | grep -c eth0; echo $LONGWIRE_FAR; pwd";
    command
        .args(["-c", line])
        .current_dir("/usr")
        .stdout(Stdio::piped());
    let child = net.near().start(command).expect("it starts");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, format!("1\n{}\n/usr\n", net.far().addr()));
    let missing = net.near().start(Command::new("longwire-no-such-command"));
    let error = missing.expect_err("there is no such program").to_string();
    assert!(
        error.contains("command 'longwire-no-such-command' not found"),
        "{error}"
    );
}

#[test]
fn wrong_texts_are_refused() {
    let error = Testbed::link("delay=20mss").expect_err("the value is wrong");
    assert!(matches!(error, TestbedError::Text(_)) && !error.is_unprivileged());
    assert!(error.to_string().starts_with("delay: "), "{error}");
}
