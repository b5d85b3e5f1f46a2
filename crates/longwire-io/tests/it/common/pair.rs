//! A port's interface with a station at its other end: veth pairs in separate
//! namespaces, which vanish with the test.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_io::{Arrived, Offload, Outgoing, Pushed, RxPort, TxPort};
use longwire_testbed::support::namespace;

/// The interface that a port opens.
pub const PORT: &str = "port0";
/// The interface of the station at its other end.
pub const STATION: &str = "station0";

pub struct Pair {
    /// Where the port is.
    pub inside: NetNamespace,
    /// Where the station is.
    pub outside: NetNamespace,
}

impl Pair {
    pub fn new() -> Option<Pair> {
        Pair::number(1, 1500)
    }

    /// With the station's address 10.78.0.`number`, and an MTU.
    pub fn number(number: u8, mtu: u32) -> Option<Pair> {
        Pair::with_queues(number, mtu, 1)
    }

    pub fn with_queues(number: u8, mtu: u32, queues: u32) -> Option<Pair> {
        let pair = Pair {
            inside: namespace()?,
            outside: namespace()?,
        };
        let end = |name, namespace| End {
            name,
            namespace,
            mtu: Some(mtu),
            queues: Some(queues),
            mac: Some([2, 0, 0, 0, u8::from(name == PORT), number]),
            ..End::default()
        };
        let made = pair.inside.run(|| {
            veth::create(&VethConfig {
                a: end(PORT, None),
                b: end(STATION, Some(&pair.outside)),
            })?;
            net::link_up(PORT)
        });
        made.unwrap().unwrap();
        let address = IpAddr::V4(Ipv4Addr::new(10, 78, 0, number));
        let ready = pair.outside.run(|| {
            // The station speaks only when a test wants it to.
            sysctl::set("ipv6/conf/all/disable_ipv6", "1")?;
            net::addr_add(STATION, address, 24)?;
            net::link_up(STATION)
        });
        ready.unwrap().unwrap();
        Some(pair)
    }

    pub fn in_port<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.inside.run(work).unwrap()
    }

    pub fn in_station<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.outside.run(work).unwrap()
    }
}

pub fn now() -> Nanos {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    Nanos::from_nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// A frame that was received, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub bytes: Vec<u8>,
    pub arrival: Nanos,
    pub offload: Offload,
}

impl Kept {
    pub fn new(frame: &Arrived<'_>) -> Kept {
        assert_eq!(frame.wire_len as usize, frame.bytes.len());
        Kept {
            bytes: frame.bytes.to_vec(),
            arrival: frame.arrival,
            offload: frame.offload,
        }
    }
}

/// Receives until `enough` says so, or for two seconds.
pub fn receive_until(rx: &mut impl RxPort, enough: impl Fn(&[Kept]) -> bool) -> Vec<Kept> {
    let start = Instant::now();
    let mut frames = Vec::new();
    while !enough(&frames) && start.elapsed() < Duration::from_secs(2) {
        let keep = &mut |frame: Arrived<'_>| frames.push(Kept::new(&frame));
        rx.receive(now(), 64, keep).unwrap();
    }
    frames
}

/// Sends one frame as it is.
pub fn send(tx: &mut impl TxPort, bytes: &[u8]) {
    send_with(tx, bytes, Offload::NONE);
}

pub fn send_with(tx: &mut impl TxPort, bytes: &[u8], offload: Offload) {
    let frame = Outgoing {
        bytes,
        release: Nanos::ZERO,
        offload,
        lent: None,
        wire_len: bytes.len() as u32,
    };
    assert_eq!(tx.push(frame), Pushed::Taken);
    flush(tx);
}

/// Flushes until everything has left, or for two seconds.
pub fn flush(tx: &mut impl TxPort) {
    let start = Instant::now();
    loop {
        tx.flush().unwrap();
        if tx.unsent() == 0 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(2), "frames are stuck");
    }
}

/// An Ethernet frame of an experimental type: the stack ignores it.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 9, 8, 0x88, 0xb5];
    bytes.extend(number.to_be_bytes());
    bytes.resize(len.max(18), number as u8);
    bytes
}

/// The number in a frame made by [`frame`]; `None` for others.
pub fn number_of(bytes: &[u8]) -> Option<u32> {
    if bytes.get(12..14)? != [0x88, 0xb5] {
        return None;
    }
    Some(u32::from_be_bytes(*bytes.get(14..)?.first_chunk()?))
}
