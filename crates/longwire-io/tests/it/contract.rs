//! The port contract, checked in the same way for each port. Without the right to create
//! namespaces, the tests are skipped with a message, except in CI, where they fail.

use crate::common::contract;
use crate::common::pair;

use contract::{Rules, check_gone, check_port, check_received, send_lengths, send_shorts};
use longwire_engine::{Bytes, Nanos};
use longwire_io::net::{self, sysctl};
use longwire_io::port::mem;
use longwire_io::port::options::{OpenOptions, XdpMode};
use longwire_io::port::own::OwnRx;
use longwire_io::port::registry::{self, AnyRx, AnyTx, Port};
use longwire_io::{PortError, PushResult, Received, RxFrame, RxPort, TxFrame, TxPort};
use longwire_testbed::support::{Folder, namespace, skip};
use pair::{
    PORT, Pair, STATION, allowed, both_in_one, features, frame, now, number_of, receive_until,
    send, without_offloads,
};

fn open(text: &str) -> Result<Port, PortError> {
    registry::open(text, &OpenOptions::default())
}

fn refusal(text: &str) -> String {
    open(text).err().unwrap().to_string()
}

/// Opens ports of this kind at both ends of a veth pair.
fn both_ends(kind: &str, mtu: u32) -> Option<(Pair, Port, Port)> {
    let pair = Pair::number(1, mtu)?;
    let port = pair.open(kind, &OpenOptions::default())?;
    let station = allowed(pair.in_station(|| open(&format!("{kind}:{STATION}"))))?;
    Some((pair, port, station))
}

/// One end of the pipe, as a port implemented by the caller.
struct Own<T>(T);

impl OwnRx for Own<mem::PipeRx> {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut dyn FnMut(RxFrame<'_>)) -> Received {
        self.0.receive(now, max, &mut |frame| take(frame))
    }

    fn frame_max(&self) -> usize {
        self.0.frame_max()
    }
}

#[test]
fn ports_in_memory_keep_the_contract() {
    let [(tx, rx), (own_tx, own_rx)] = [(); 2].map(|()| mem::pipe(Bytes(1 << 20)).unwrap());
    let pipe = (AnyTx::Pipe(Box::new(tx)), AnyRx::Pipe(Box::new(rx)));
    let own = (
        AnyTx::Own(Box::new(own_tx)),
        AnyRx::Own(Box::new(Own(own_rx))),
    );
    for (mut tx, mut rx) in [pipe, own] {
        let rules = Rules::live().and_len(9014).and_len(65_549);
        check_port(&mut tx, &mut rx, &rules);
    }
}

#[test]
fn the_null_port_takes_everything_and_gives_nothing() {
    let mut null = open("null").unwrap();
    assert_eq!(null.name, "null");
    send_shorts(&mut null.tx);
    let bytes = &send_lengths(&mut null.tx, &Rules::live().and_len(65_549)).frames[0];
    for _ in 0..100 {
        let pushed = null.tx.push(TxFrame::whole(bytes, now()));
        assert_eq!(pushed, PushResult::Taken);
    }
    assert_eq!(null.tx.flush().unwrap(), 100);
    assert_eq!(null.tx.unsent(), 0);
    assert_eq!(null.tx.losses(), Default::default());
    assert_eq!(
        (null.tx.sample_every(1), null.tx.launch_lead()),
        (None, None)
    );
    null.tx
        .sampled(&mut |_| panic!("a stamp of a frame that went nowhere"));
    let take = &mut |_: RxFrame<'_>| panic!("a frame from nowhere");
    assert!(null.rx.receive(now(), 64, take).unwrap().end);
    for text in ["null:", "null:eth0"] {
        let said = refusal(text);
        assert!(said.contains("is not a port"), "{said}");
        assert!(said.ends_with(", null"), "{said}");
    }
}

#[test]
fn ports_on_interfaces_keep_the_contract() {
    let jumbo = Rules::live().and_len(9014);
    for (kind, mtu, rules) in [("packet", 9000, jumbo), ("xdp", 1500, Rules::live())] {
        let Some((pair, mut port, mut station)) = both_ends(kind, mtu) else {
            continue;
        };
        check_port(&mut port.tx, &mut station.rx, &rules);
        check_port(&mut station.tx, &mut port.rx, &rules);
        check_gone(&mut port.tx, &mut port.rx, || {
            pair.in_station(|| net::link_delete(STATION)).unwrap();
        });
    }
}

/// The ports on interfaces: their kind and XDP receive mode.
const MODES: [(&str, XdpMode); 3] = [
    ("packet", XdpMode::Best),
    ("xdp", XdpMode::Native),
    ("xdp", XdpMode::Generic),
];

fn options(xdp_mode: XdpMode) -> OpenOptions {
    OpenOptions {
        xdp_mode,
        ..OpenOptions::default()
    }
}

/// Opens a port, and the other end of its pair through a packet socket.
fn with_station(kind: &str, mtu: u32, options: &OpenOptions) -> Option<(Pair, Port, Port)> {
    let pair = Pair::number(1, mtu)?;
    let (port, station) = (pair.open(kind, options)?, pair.station());
    Some((pair, port, station))
}

/// Frames are sent one by one. Stamps must be in order, and between sending and reception, mostly
/// just before reception.
#[test]
fn arrivals_are_tight_and_in_order() {
    for (kind, mode) in MODES {
        let Some((_pair, mut port, mut station)) = with_station(kind, 1500, &options(mode)) else {
            continue;
        };
        // The clock difference used by `packet:` is accurate to tens of nanoseconds.
        let slack_ns = if kind == "packet" { 500 } else { 0 };
        let mut late = Vec::new();
        let mut last = Nanos::ZERO;
        for n in 0..2000 {
            let before = now();
            send(&mut station.tx, &frame(n, 64));
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            let after = now();
            let arrival = got[0].arrival;
            assert!(arrival >= last && arrival <= after, "{kind} {mode:?}");
            assert!(arrival.as_nanos() + slack_ns >= before.as_nanos());
            late.push(after.saturating_sub(arrival).as_nanos());
            last = arrival;
        }
        late.sort_unstable();
        let (p50, p99) = (late[1000], late[1980]);
        eprintln!("{kind} {mode:?}: received − arrival: p50 {p50} p99 {p99} ns");
        assert!(p50 < 200_000, "{kind} {mode:?}: p50 {p50} ns");
        if let AnyRx::Packet(rx) = &port.rx {
            assert_eq!(rx.clock_steps(), 0);
        }
    }
}

#[test]
fn vlan_tags_stay_where_they_are() {
    for (kind, mode) in MODES {
        // A frame of 5,000 bytes exceeds a slot in a packet socket's ring.
        let long = if kind == "packet" { 5000 } else { 1000 };
        let mtu = if kind == "packet" { 9000 } else { 1500 };
        let Some((_pair, mut port, mut station)) = with_station(kind, mtu, &options(mode)) else {
            continue;
        };
        for (len, ethertype) in [(64, [0x81, 0x00]), (64, [0x88, 0xa8]), (long, [0x81, 0x00])] {
            let mut bytes = frame(7, len);
            bytes.splice(12..12, [ethertype[0], ethertype[1], 0x60, 0x2a]);
            send(&mut station.tx, &bytes);
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            assert_eq!(got.len(), 1, "{kind} {mode:?} {ethertype:x?}");
            assert!(got[0].bytes == bytes, "{kind} {mode:?} {len}");
        }
    }
}

/// Of a thousand frames sent to a smaller ring, the first arrive in order and the rest are counted,
/// however often the counter is read. Later frames pass.
#[test]
fn an_overflowing_ring_is_counted() {
    const SENT: u32 = 1000;
    for (kind, mode) in MODES {
        let options = OpenOptions {
            ring_bytes: Some(if kind == "packet" { 64 * 1024 } else { 1 }),
            ..options(mode)
        };
        let Some((_pair, mut port, mut station)) = with_station(kind, 1500, &options) else {
            continue;
        };
        for n in 0..SENT {
            send(&mut station.tx, &frame(n, 64));
        }
        let mut numbers = Vec::new();
        let mut take = |f: RxFrame<'_>| numbers.extend(number_of(f.bytes));
        while port.rx.receive(now(), 16, &mut take).unwrap().frames > 0 {}
        let got = numbers.len() as u32;
        assert!((11..SENT).contains(&got), "{kind} {mode:?}: {got}");
        assert_eq!(numbers, (0..got).collect::<Vec<_>>(), "{kind} {mode:?}");
        for _ in 0..2 {
            // Reading resets the kernel's counter but not the port's.
            assert_eq!(port.rx.losses().ring_full, u64::from(SENT - got));
        }
        for n in 0..500 {
            send(&mut station.tx, &frame(n, 64));
            let got = receive_until(&mut port.rx, |got| !got.is_empty());
            assert_eq!(number_of(&got[0].bytes), Some(n), "{kind} {mode:?}");
        }
    }
}

#[test]
fn a_peer_in_the_same_namespace_gets_its_segmentation_back() {
    let generic = options(XdpMode::Generic);
    for (kind, options, disabled) in [
        ("packet", without_offloads(), &["tx-tcp-segmentation"][..]),
        (
            "xdp",
            generic,
            &["tx-tcp-segmentation", "tx-generic-segmentation"],
        ),
    ] {
        let Some(place) = both_in_one() else { return };
        let features = || place.run(|| (features(PORT), features(STATION))).unwrap();
        let before = features();
        assert!(before.1.active("tx-tcp-segmentation"));
        let opened = place.run(|| registry::open(&format!("{kind}:{PORT}"), &options));
        let port = opened.unwrap().unwrap();
        let during = features().1;
        for feature in disabled {
            assert!(!during.active(feature), "{kind}: {feature}");
        }
        let said = |note: &String| note.starts_with("station0: disabled tx-tcp-segmentation");
        assert!(port.notes.iter().any(said), "{kind}: {:?}", port.notes);
        drop(port);
        assert_eq!(features(), before, "{kind}");
    }
}

#[test]
fn tap_ports_keep_the_contract() {
    let Some(place) = namespace() else { return };
    let opened = place.run(|| {
        // Silences the kernel, so that the device carries only the test's frames.
        sysctl::set("ipv6/conf/default/disable_ipv6", "1").unwrap();
        let port = open("tap:tap0").ok()?;
        net::link::set_mtu("tap0", 9000).unwrap();
        Some((port, open("packet:tap0").unwrap()))
    });
    let Some((mut port, mut kernel)) = opened.unwrap() else {
        return skip("no /dev/net/tun").unwrap_or(());
    };
    let rules = Rules::live().and_len(9014);
    check_port(&mut port.tx, &mut kernel.rx, &rules);
    check_port(&mut kernel.tx, &mut port.rx, &rules);
    check_gone(&mut port.tx, &mut port.rx, || {
        place.run(|| net::link_delete("tap0")).unwrap().unwrap();
    });
}

#[test]
fn captures_keep_the_contract() {
    let rules = Rules {
        live: false,
        ..Rules::live().and_len(9014).and_len(65_549)
    };
    for extension in ["pcap", "pcapng"] {
        let dir = Folder::new();
        let path = dir.file(&format!("contract.{extension}"));
        let mut writer = open(&format!("pcap:out={path}")).unwrap();
        assert!(writer.rx.receive(now(), 1, &mut |_| {}).unwrap().end);
        send_shorts(&mut writer.tx);
        let sent = send_lengths(&mut writer.tx, &rules);
        drop(writer);
        let mut reader = open(&format!("pcap:{path}")).unwrap();
        check_received(&mut reader.rx, &sent, &rules);
        let last = reader.rx.receive(now(), 1, &mut |_| {}).unwrap();
        assert!(last.end && last.frames == 0);
        let said = refusal(&format!("pcap:in={path},out={path}"));
        assert!(said.contains("are the same file"), "{said}");
    }
}

#[test]
fn a_capture_plays_at_its_own_times() {
    let dir = Folder::new();
    let path = dir.file("times.pcap");
    let mut writer = open(&format!("pcap:out={path}")).unwrap();
    let offsets = [0, 10, 5, 30_000_000];
    for offset in offsets {
        let release = Nanos::from_nanos(1_000 + offset);
        writer.tx.push(TxFrame::whole(&[offset as u8; 60], release));
    }
    assert_eq!(writer.tx.flush().unwrap(), 4);
    drop(writer);
    let mut reader = open(&format!("pcap:{path}")).unwrap();
    let start = now();
    let mut arrivals = Vec::new();
    let mut receive = |at: Nanos, rx: &mut AnyRx| {
        let take = &mut |frame: RxFrame<'_>| arrivals.push(frame.arrival);
        rx.receive(at, 64, take).unwrap()
    };
    assert!(is_readable(&reader.rx), "the first frame is due at once");
    assert_eq!(receive(start, &mut reader.rx).frames, 1);
    let soon = start.saturating_add(Nanos::from_micros(1));
    assert_eq!(receive(soon, &mut reader.rx).frames, 2);
    assert!(!is_readable(&reader.rx), "the last is not yet due");
    std::thread::sleep(std::time::Duration::from_millis(35));
    assert!(is_readable(&reader.rx));
    let last = receive(now(), &mut reader.rx);
    assert!(last.end && last.frames == 1);
    let base = start.as_nanos();
    // The third was captured before the second and arrives with it.
    let expected = [0, 10, 10, 30_000_000].map(|offset| Nanos::from_nanos(base + offset));
    assert_eq!(arrivals, expected);
}

fn is_readable(rx: &impl RxPort) -> bool {
    let fd = rx.readable().unwrap();
    let mut wait = [nix::poll::PollFd::new(fd, nix::poll::PollFlags::POLLIN)];
    nix::poll::poll(&mut wait, nix::poll::PollTimeout::ZERO).unwrap() > 0
}

#[test]
fn a_slow_pipe_neither_blocks_nor_loses() {
    let dir = Folder::new();
    let path = dir.file("pipe.pcap");
    nix::unistd::mkfifo(path.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (out, back) = std::thread::scope(|scope| {
        // A FIFO without a reader is refused.
        let writer = scope.spawn(|| {
            loop {
                if let Ok(port) = open(&format!("pcap:out={path}")) {
                    return port;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        // Opening the reader returns only once the header is written.
        let reader = scope.spawn(|| open(&format!("pcap:{path}")).unwrap());
        let mut writer = writer.join().unwrap();
        writer.tx.flush().unwrap();
        (writer, reader.join().unwrap())
    });
    let (mut tx, mut rx) = (out.tx, back.rx);
    // Send far more than a pipe's capacity.
    let sent = 2_000u32;
    for n in 0..sent {
        let release = Nanos::from_nanos(u64::from(n));
        tx.push(TxFrame::whole(&[n as u8; 700], release));
    }
    tx.flush().unwrap();
    assert!(tx.unsent() > 0);
    let mut got = Vec::new();
    while got.len() < sent as usize {
        let take = &mut |frame: RxFrame<'_>| got.push(frame.bytes[0]);
        rx.receive(now(), 64, take).unwrap();
        tx.flush().unwrap();
    }
    assert_eq!(tx.unsent(), 0);
    assert!(got.iter().enumerate().all(|(n, byte)| n as u8 == *byte));
    // There is no more data yet, but the input has not ended.
    assert!(!rx.receive(now(), 64, &mut |_| {}).unwrap().end);
    drop(tx);
    // A thread reads ahead, so the end is reported later.
    let mut surplus = |_: RxFrame<'_>| panic!("frame after the last");
    while !rx.receive(now(), 64, &mut surplus).unwrap().end {
        std::thread::yield_now();
    }
}

#[test]
fn ports_are_found_by_name() {
    for text in ["", "bogus:eth0", "packet", "packet:", ":eth0"] {
        let said = refusal(text);
        let expected = "is not a port; write one of auto:IF, packet:IF";
        assert!(said.contains(expected), "{said}");
    }
    assert!(refusal("nosuch0").contains("no interface 'nosuch0'; interfaces are "));
    assert!(refusal("xdp:nosuch0").contains("no interface 'nosuch0'; interfaces are "));
    assert!(refusal("pcap:in=a.pcap,in=b.pcap").contains("at most one input"));
    for kind in registry::PORTS {
        assert!(kind.example.starts_with(kind.name), "{}", kind.name);
    }
}

#[test]
fn auto_reports_its_choice() {
    let Some(pair) = Pair::new() else { return };
    let port = pair.in_port(|| open(PORT)).unwrap();
    assert_eq!(port.name, format!("packet:{PORT}"));
    let notes = &port.notes;
    assert!(notes[0].contains("virtual devices (veth)"), "{notes:?}");
    drop(port);
    let port = pair.open("auto", &without_offloads()).unwrap();
    assert!(port.notes[0].contains("AF_XDP"), "{:?}", port.notes);
}

/// Truncated frames, as captured and original length: truncated, complete, and with an original
/// length below the captured one, which is ignored.
const CUT_FRAMES: [(usize, u32, u32); 4] = [
    (64, 1514, 1514),
    (60, 60, 60),
    (96, 65_550, 65_550),
    (80, 0, 80),
];

fn send_cut(tx: &mut impl TxPort) {
    for (kept, wire_len, _) in CUT_FRAMES {
        let bytes = vec![kept as u8; kept];
        let frame = TxFrame {
            wire_len,
            ..TxFrame::whole(&bytes, Nanos::from_nanos(kept as u64))
        };
        assert_eq!(tx.push(frame), PushResult::Taken);
    }
    assert_eq!(tx.flush().unwrap(), CUT_FRAMES.len());
}

fn check_cut(rx: &mut impl RxPort, what: &str) {
    let mut got = Vec::new();
    while got.len() < CUT_FRAMES.len() {
        let take = &mut |frame: RxFrame<'_>| got.push((frame.bytes.len(), frame.wire_len));
        rx.receive(Nanos::MAX, 64, take).unwrap();
    }
    let expected = CUT_FRAMES.map(|(kept, _, wire_len)| (kept, wire_len));
    assert_eq!(got, expected, "{what}");
}

#[test]
fn pipes_and_captures_keep_the_length_on_the_wire() {
    let (mut tx, mut rx) = mem::pipe(Bytes(1 << 20)).unwrap();
    send_cut(&mut tx);
    check_cut(&mut rx, "pipe");
    for extension in ["pcap", "pcapng"] {
        let dir = Folder::new();
        let path = dir.file(&format!("cut.{extension}"));
        let mut writer = open(&format!("pcap:out={path}")).unwrap();
        send_cut(&mut writer.tx);
        drop(writer);
        let mut reader = open(&format!("pcap:{path}")).unwrap();
        check_cut(&mut reader.rx, extension);
    }
}
