//! A port's interface and a station at its other end: veth pairs in separate namespaces, which are
//! removed with the test.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
pub use longwire_io::clock::monotonic_now as now;
use longwire_io::net::ethtool::{Ethtool, Features};
use longwire_io::net::veth::End;
use longwire_io::net::{self, NetNamespace, sysctl};
use longwire_io::port::options::{OpenOptions, Purpose, XdpMode};
use longwire_io::port::registry::{self, AnyTx, Port};
use longwire_io::{Offload, PortError, PushResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_testbed::support::{device, namespace, skip, wire};

/// The interface that a port opens.
pub const PORT: &str = "port0";
/// The station's interface.
pub const STATION: &str = "station0";

pub struct Pair {
    /// The port's namespace.
    pub inside: NetNamespace,
    /// The station's namespace.
    pub outside: NetNamespace,
}

impl Pair {
    pub fn new() -> Option<Pair> {
        Pair::number(1, 1500)
    }

    /// Creates a pair with an MTU, where the station's address is 10.78.0.`number`.
    pub fn number(number: u8, mtu: u32) -> Option<Pair> {
        Pair::with_queues(number, mtu, 1)
    }

    pub fn with_queues(number: u8, mtu: u32, queues: u32) -> Option<Pair> {
        let pair = Pair {
            inside: namespace()?,
            outside: namespace()?,
        };
        let end = |name, namespace| End {
            mtu: Some(mtu),
            queues: Some(queues),
            mac: Some([2, 0, 0, 0, u8::from(name == PORT), number]),
            ..device(name, Some(namespace))
        };
        // The station sends only when a test requests it.
        let silent = || sysctl::set("ipv6/conf/all/disable_ipv6", "1");
        pair.in_station(silent).unwrap();
        wire(end(PORT, &pair.inside), end(STATION, &pair.outside)).unwrap();
        let address = IpAddr::V4(Ipv4Addr::new(10, 78, 0, number));
        let addressed = pair.in_station(|| net::addr_add(STATION, address, 24));
        addressed.unwrap();
        Some(pair)
    }

    /// Opens `packet:IF` in the port's namespace.
    pub fn packet(&self) -> Port {
        let opened =
            self.in_port(|| registry::open(&format!("packet:{PORT}"), &OpenOptions::default()));
        opened.unwrap()
    }

    /// Opens `xdp:IF` in the port's namespace.
    pub fn xdp(&self, xdp_mode: XdpMode) -> Port {
        let options = OpenOptions {
            xdp_mode,
            ..OpenOptions::default()
        };
        self.in_port(|| registry::open(&format!("xdp:{PORT}"), &options))
            .unwrap()
    }

    /// Opens `packet:IF` in the station's namespace.
    pub fn station(&self) -> Port {
        let opened = self
            .in_station(|| registry::open(&format!("packet:{STATION}"), &OpenOptions::default()));
        opened.unwrap()
    }

    /// Opens `kind:IF` in the port's namespace, or skips the test if that is not permitted.
    pub fn open(&self, kind: &str, options: &OpenOptions) -> Option<Port> {
        allowed(self.in_port(|| registry::open(&format!("{kind}:{PORT}"), options)))
    }

    pub fn in_port<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.inside.run(work).unwrap()
    }

    pub fn in_station<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.outside.run(work).unwrap()
    }
}

/// Returns the port, or skips the test if the machine does not permit it.
pub fn allowed(opened: Result<Port, PortError>) -> Option<Port> {
    match opened {
        Err(error @ PortError::Denied { .. }) => skip(error),
        opened => Some(opened.unwrap()),
    }
}

/// Returns the options for a port that only sends.
pub fn sending() -> OpenOptions {
    OpenOptions {
        purpose: Purpose::Send,
        ..OpenOptions::default()
    }
}

/// Returns the options for a port without super-packets and partial checksums.
pub fn without_offloads() -> OpenOptions {
    OpenOptions {
        offloads: false,
        ..OpenOptions::default()
    }
}

/// A copy of a received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub bytes: Vec<u8>,
    pub arrival: Nanos,
    pub offload: Offload,
}

impl Kept {
    pub fn new(frame: &RxFrame<'_>) -> Kept {
        assert_eq!(frame.wire_len as usize, frame.bytes.len());
        Kept {
            bytes: frame.bytes.to_vec(),
            arrival: frame.arrival,
            offload: frame.offload,
        }
    }
}

/// Receives until `enough` returns true, at most for two seconds.
pub fn receive_until(rx: &mut impl RxPort, enough: impl Fn(&[Kept]) -> bool) -> Vec<Kept> {
    let start = Instant::now();
    let mut frames = Vec::new();
    while !enough(&frames) && start.elapsed() < Duration::from_secs(2) {
        let keep = &mut |frame: RxFrame<'_>| frames.push(Kept::new(&frame));
        rx.receive(now(), 64, keep).unwrap();
    }
    frames
}

/// Sends one frame unchanged.
pub fn send(tx: &mut impl TxPort, bytes: &[u8]) {
    send_with(tx, bytes, Offload::NONE);
}

pub fn send_with(tx: &mut impl TxPort, bytes: &[u8], offload: Offload) {
    push_with(tx, bytes, offload);
    flush(tx);
}

pub fn push_with(tx: &mut impl TxPort, bytes: &[u8], offload: Offload) {
    let frame = TxFrame {
        offload,
        ..TxFrame::whole(bytes, Nanos::ZERO)
    };
    assert_eq!(tx.push(frame), PushResult::Taken);
}

/// Passes each frame of one port to `pass` with the other port's sending half, while `work` runs.
pub fn carry<T>(
    [a, b]: [&mut Port; 2],
    mut pass: impl FnMut(RxFrame<'_>, &mut AnyTx) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (rx, tx) in [(&mut a.rx, &mut b.tx), (&mut b.rx, &mut a.tx)] {
                    let room = tx.free_slots();
                    rx.receive(now(), room, &mut |frame| pass(frame, tx))
                        .unwrap();
                    tx.flush().unwrap();
                }
                thread::yield_now();
            }
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Returns an interface's features, in this thread's namespace.
pub fn features(name: &str) -> Features {
    Ethtool::open().unwrap().features(name).unwrap()
}

/// Sends `data` by TCP from an address in one namespace to one in the other.
pub fn tcp_transfer(
    [near, far]: [&NetNamespace; 2],
    [from, to]: [&str; 2],
    data: &[u8],
) -> Vec<u8> {
    const LIMIT: Duration = Duration::from_secs(5);
    let listener = far.run(|| TcpListener::bind(to)).unwrap().unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let send = || {
            let mut stream = TcpStream::connect_timeout(&to.parse().unwrap(), LIMIT).unwrap();
            assert_eq!(stream.local_addr().unwrap().ip().to_string(), from);
            stream.write_all(data).unwrap();
        };
        near.run(send).unwrap();
        receiver.join().unwrap()
    })
}

/// Creates a namespace in which [`PORT`] and [`STATION`] are connected.
pub fn both_in_one() -> Option<NetNamespace> {
    let place = namespace()?;
    let made = place.run(|| wire(device(PORT, None), device(STATION, None)));
    made.unwrap().unwrap();
    Some(place)
}

/// Calls `look` until it returns a value; fails at the time limit.
pub fn until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < limit, "{what}");
    }
}

/// Flushes until everything has left, at most for two seconds.
pub fn flush(tx: &mut impl TxPort) {
    until(Duration::from_secs(2), "frames are stuck", || {
        tx.flush().unwrap();
        (tx.unsent() == 0).then_some(())
    });
}

/// Returns an Ethernet frame with an experimental EtherType, which the stack ignores.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 9, 8, 0x88, 0xb5];
    bytes.extend(number.to_be_bytes());
    bytes.resize(len.max(18), number as u8);
    bytes
}

/// Returns the number of a frame from [`frame`]; `None` for other frames.
pub fn number_of(bytes: &[u8]) -> Option<u32> {
    if bytes.get(12..14)? != [0x88, 0xb5] {
        return None;
    }
    Some(u32::from_be_bytes(*bytes.get(14..)?.first_chunk()?))
}
