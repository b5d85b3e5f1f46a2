//! Measures the cost of a frame between two hosts with
//! `LONGWIRE_FIGURES=1 cargo test --release -p longwire-hosts --test figures -- --nocapture`.
//! Without the variable, a short run checks the measurement itself.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_hosts::{
    ClockShift, Identity, Key, Peer, PeerSetup, Stamp, Transport, TransportSetup,
};
use longwire_io::clock::read_clock;
use longwire_packet::bridge::PortIndex;
use longwire_runtime::deciding::{RemoteFrame, RemoteParts};
use nix::time::ClockId;

fn identity(index: u16) -> Identity {
    Identity {
        index,
        digest: [1; 32],
        instance: 1 + u64::from(index),
        mtu: 1_400,
    }
}

fn peers() -> [Peer; 2] {
    let key = Key::new([4; 32]);
    [0, 1].map(|index| Peer::new(identity(index), key.clone(), 1 - index, "other"))
}

/// Exchanges datagrams until both hosts are connected, and returns the time.
fn connect(peers: &mut [Peer; 2]) -> Nanos {
    let mut now = Nanos::from_secs(1);
    while !peers.iter().all(Peer::is_connected) {
        now = now.saturating_add(Nanos::from_millis(1));
        let stamp = Stamp {
            monotonic: now,
            wall: now,
        };
        let mut flying = VecDeque::new();
        for (to, peer) in [1, 0].into_iter().zip(&mut *peers) {
            peer.poll(stamp, None, &mut |it| flying.push_back((to, it.to_vec())));
        }
        while let Some((to, datagram)) = flying.pop_front() {
            let mut send = |it: &[u8]| flying.push_back((1 - to, it.to_vec()));
            let _ = peers[to].receive(stamp, &datagram, &mut send, &mut |_| {});
        }
    }
    now
}

/// Returns this thread's CPU time in nanoseconds, which is independent of other load.
fn cpu_time() -> u64 {
    read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Sends bursts of frames between in-memory hosts and prints the cost per frame.
fn in_memory(len: usize, burst: usize, frames: usize) {
    let mut both = peers();
    let now = connect(&mut both);
    let [mut a, mut b] = both;
    let stamp = Stamp {
        monotonic: now,
        wall: now,
    };
    let release = now.saturating_add(Nanos::from_secs(1));
    let before = a.report(stamp);
    let bytes = vec![7; len];
    let (mut sealing, mut opening) = (0, 0);
    let mut received = 0;
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    for _ in 0..frames / burst {
        let mut used = 0;
        let began = cpu_time();
        {
            let mut send = |it: &[u8]| {
                if used == datagrams.len() {
                    datagrams.push(Vec::new());
                }
                datagrams[used].clear();
                datagrams[used].extend_from_slice(it);
                used += 1;
            };
            for _ in 0..burst {
                a.push(now, (1, 2, release), &bytes, &mut send);
            }
            a.flush(now, &mut send);
        }
        sealing += cpu_time() - began;
        let began = cpu_time();
        for datagram in &datagrams[..used] {
            let taken = b.receive(stamp, datagram, &mut |_| {}, &mut |frame| {
                received += usize::from(frame.bytes.len() == len);
            });
            taken.expect("a datagram of the session");
        }
        opening += cpu_time() - began;
    }
    let sent = frames / burst * burst;
    assert_eq!(received, sent);
    let report = a.report(stamp);
    let bytes_sent = report.bytes_sent - before.bytes_sent;
    let datagrams = report.datagrams_sent - before.datagrams_sent;
    let headers = 28 * datagrams;
    let overhead = (bytes_sent + headers) as f64 / sent as f64 - len as f64;
    println!(
        "{len:5} B, {burst:2} at once: {:6.0} ns to send, {:6.0} ns to receive; {overhead:.1} B of overhead per frame, with UDP and IPv4",
        sealing as f64 / sent as f64,
        opening as f64 / sent as f64,
    );
}

fn start(index: u16, ports: [u16; 2]) -> (Transport, RemoteParts) {
    let address = |index: usize| ([127, 0, 0, 1], ports[index]).into();
    let own = usize::from(index);
    let setup = TransportSetup {
        name: index.to_string(),
        identity: identity(index),
        key: Key::new([4; 32]),
        listen: address(own),
        peers: vec![PeerSetup {
            index: 1 - index,
            name: "other".to_owned(),
            address: address(1 - own),
        }],
        shift: ClockShift::default(),
    };
    let exits = vec![(own == 1).then_some(0), (own == 0).then_some(0)];
    Transport::start(setup, exits).expect("it starts")
}

/// Sends frames over loopback as fast as they are received, and prints the rate.
fn over_loopback(len: usize, time: Duration) {
    // Two ports that are free now.
    let free = || UdpSocket::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let ports = [free(), free()].map(|address| address.expect("a port").port());
    let (a, mut from) = start(0, ports);
    let (b, mut to) = start(1, ports);
    let began = Instant::now();
    while a.epoch().is_none() || b.epoch().is_none() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{:?}",
            a.report()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = vec![7; len];
    let (mut sent, mut received) = (0u64, 0u64);
    let began = Instant::now();
    let mut heard = began;
    while began.elapsed() < time {
        // More frames in flight would overflow the socket.
        while sent < received + 512 {
            from.outbound[0].push(&RemoteFrame {
                port: PortIndex(1),
                line: 1,
                release: Nanos::from_secs(1 << 30),
                is_late: false,
                bytes: &bytes,
            });
            sent += 1;
        }
        from.outbound[0].publish();
        from.bell.ring_if_asleep();
        let before = received;
        while to.inbound[0].front().is_some() {
            to.inbound[0].advance();
            received += 1;
        }
        to.inbound[0].settle();
        if received > before {
            heard = Instant::now();
        } else if heard.elapsed() > Duration::from_millis(200) {
            // The frames in flight were lost; do not wait for them.
            sent = received;
            heard = Instant::now();
        } else {
            std::thread::yield_now();
        }
    }
    let rate = received as f64 / began.elapsed().as_secs_f64();
    let (sending, receiving) = (a.stop(), b.stop());
    println!(
        "{len:5} B over loopback: {:.0} frames/s, {} lost, {} late",
        rate, receiving.peers[0].frames_lost, receiving.peers[0].frames_late
    );
    assert!(sending.peers[0].frames_sent >= received && received > 0);
}

/// Selects the long measurement.
const LONG: &str = "LONGWIRE_FIGURES";

#[test]
fn figures() {
    if std::env::var_os(LONG).is_none() {
        in_memory(64, 4, 40);
        in_memory(1_514, 1, 20);
        return over_loopback(64, Duration::from_millis(200));
    }
    for len in [64, 512, 1_300, 1_514] {
        for burst in [1, 32] {
            in_memory(len, burst, 320_000);
        }
    }
    for len in [64, 512, 1_300, 1_514] {
        over_loopback(len, Duration::from_secs(3));
    }
}
