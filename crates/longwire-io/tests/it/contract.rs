//! The contract of ports, checked in the same way for each. Without the right to create
//! namespaces the tests are skipped with a message, except in CI, where they fail.

use crate::common::contract;
use crate::common::pair;

use contract::{Rules, check_gone, check_port, check_received, send_lengths, send_shorts};
use longwire_engine::{Bytes, Nanos};
use longwire_io::net::{self, sysctl};
use longwire_io::port::mem;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::own::{OwnRx, OwnTx};
use longwire_io::port::registry::{self, AnyRx, AnyTx, Port};
use longwire_io::{PortError, PushResult, ReceiveResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_testbed::support::{Folder, namespace, skip};
use pair::{PORT, Pair, STATION, now};

fn open(text: &str) -> Result<Port, PortError> {
    registry::open(text, &OpenOptions::default())
}

/// Returns the port, or skips the test if the machine does not allow it.
fn allowed(opened: Result<Port, PortError>) -> Option<Port> {
    match opened {
        Ok(port) => Some(port),
        Err(error @ PortError::Denied { .. }) => skip(error),
        Err(error) => panic!("{error}"),
    }
}

/// Opens ports of this kind at both ends of a veth pair.
fn both_ends(kind: &str, mtu: u32) -> Option<(Pair, Port, Port)> {
    let pair = Pair::number(1, mtu)?;
    let port = allowed(pair.in_port(|| open(&format!("{kind}:{PORT}"))))?;
    let station = allowed(pair.in_station(|| open(&format!("{kind}:{STATION}"))))?;
    Some((pair, port, station))
}

#[test]
fn the_pipe_in_memory_keeps_the_contract() {
    let (tx, rx) = mem::pipe(Bytes(1 << 20)).unwrap();
    let (mut tx, mut rx) = (AnyTx::Pipe(Box::new(tx)), AnyRx::Pipe(Box::new(rx)));
    let rules = Rules::live().and_len(9014).and_len(65_549);
    check_port(&mut tx, &mut rx, &rules);
}

/// The ends of the pipe, passed in by the caller.
struct Own<T>(T);

impl OwnRx for Own<mem::PipeRx> {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut dyn FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        self.0.receive(now, max, &mut |frame| take(frame))
    }

    fn frame_max(&self) -> usize {
        self.0.frame_max()
    }
}

impl OwnTx for Own<mem::PipeTx> {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        self.0.push(frame)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.0.flush()
    }

    fn free_slots(&self) -> usize {
        self.0.free_slots()
    }

    fn unsent(&self) -> usize {
        self.0.unsent()
    }
}

#[test]
fn a_port_of_the_callers_own_keeps_the_contract() {
    let (tx, rx) = mem::pipe(Bytes(1 << 20)).unwrap();
    let (mut tx, mut rx) = (AnyTx::Own(Box::new(Own(tx))), AnyRx::Own(Box::new(Own(rx))));
    let rules = Rules::live().and_len(9014).and_len(65_549);
    check_port(&mut tx, &mut rx, &rules);
}

#[test]
fn the_null_port_takes_everything_and_gives_nothing() {
    let mut null = open("null").unwrap();
    assert_eq!(null.name, "null");
    send_shorts(&mut null.tx);
    let sent = send_lengths(&mut null.tx, &Rules::live().and_len(65_549));
    let bytes = &sent.frames[0];
    for _ in 0..100 {
        assert_eq!(
            null.tx.push(TxFrame::whole(bytes, now())),
            PushResult::Taken
        );
    }
    assert_eq!(null.tx.flush().unwrap(), 100);
    assert_eq!(
        (null.tx.unsent(), null.tx.losses()),
        (0, Default::default())
    );
    let received = null
        .rx
        .receive(now(), 64, &mut |_| panic!("a frame from nowhere"));
    assert!(received.unwrap().end);
    for text in ["null:", "null:eth0"] {
        let said = open(text).err().unwrap().to_string();
        assert!(
            said.contains("is not a port") && said.ends_with(", null"),
            "{said}"
        );
    }
}

#[test]
fn packet_ports_keep_the_contract() {
    let Some((pair, mut port, mut station)) = both_ends("packet", 9000) else {
        return;
    };
    let rules = Rules::live().and_len(9014);
    check_port(&mut port.tx, &mut station.rx, &rules);
    check_port(&mut station.tx, &mut port.rx, &rules);
    check_gone(&mut port.tx, &mut port.rx, || {
        pair.in_station(|| net::link_delete(STATION)).unwrap();
    });
}

#[test]
fn xdp_ports_keep_the_contract() {
    let Some((pair, mut port, mut station)) = both_ends("xdp", 1500) else {
        return;
    };
    check_port(&mut port.tx, &mut station.rx, &Rules::live());
    check_port(&mut station.tx, &mut port.rx, &Rules::live());
    check_gone(&mut port.tx, &mut port.rx, || {
        pair.in_station(|| net::link_delete(STATION)).unwrap();
    });
}

#[test]
fn tap_ports_keep_the_contract() {
    let Some(place) = namespace() else { return };
    let opened = place.run(|| {
        // A silent kernel: the device only carries frames of the test.
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
        let over = open(&format!("pcap:in={path},out={path}"));
        assert!(
            over.err()
                .unwrap()
                .to_string()
                .contains("are the same file")
        );
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
        let take = &mut |frame: longwire_io::RxFrame<'_>| arrivals.push(frame.arrival);
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
        // The header must be written before opening the reader returns.
        let reader = scope.spawn(|| open(&format!("pcap:{path}")).unwrap());
        let mut writer = writer.join().unwrap();
        writer.tx.flush().unwrap();
        (writer, reader.join().unwrap())
    });
    let (mut tx, mut rx) = (out.tx, back.rx);
    // Far more than the capacity of a pipe.
    let sent = 2_000u32;
    for n in 0..sent {
        tx.push(TxFrame::whole(
            &[n as u8; 700],
            Nanos::from_nanos(u64::from(n)),
        ));
    }
    tx.flush().unwrap();
    assert!(tx.unsent() > 0);
    let mut got = Vec::new();
    while got.len() < sent as usize {
        let take = &mut |frame: longwire_io::RxFrame<'_>| got.push(frame.bytes[0]);
        rx.receive(now(), 64, take).unwrap();
        tx.flush().unwrap();
    }
    assert_eq!(tx.unsent(), 0);
    assert!(got.iter().enumerate().all(|(n, byte)| n as u8 == *byte));
    // No more data yet, which is not the end.
    assert!(!rx.receive(now(), 64, &mut |_| {}).unwrap().end);
    drop(tx);
    assert!(rx.receive(now(), 64, &mut |_| {}).unwrap().end);
}

#[test]
fn ports_are_found_by_name() {
    let error = |text: &str| open(text).err().unwrap().to_string();
    for text in ["", "bogus:eth0", "packet", "packet:", ":eth0"] {
        let said = error(text);
        assert!(
            said.contains("is not a port; write one of auto:IF, packet:IF"),
            "{said}"
        );
    }
    assert!(error("nosuch0").contains("no interface 'nosuch0'; interfaces are "));
    assert!(error("xdp:nosuch0").contains("no interface 'nosuch0'; interfaces are "));
    assert!(error("pcap:in=a.pcap,in=b.pcap").contains("at most one input"));
    for kind in registry::PORTS {
        assert!(kind.example.starts_with(kind.name), "{}", kind.name);
    }
}

#[test]
fn auto_reports_its_choice() {
    let Some(pair) = Pair::new() else { return };
    let port = pair.in_port(|| open(PORT)).unwrap();
    assert_eq!(port.name, format!("packet:{PORT}"));
    assert!(
        port.notes[0].contains("virtual devices (veth)"),
        "{:?}",
        port.notes
    );
    drop(port);
    let options = OpenOptions {
        offloads: false,
        ..OpenOptions::default()
    };
    let port = pair
        .in_port(|| registry::open(&format!("auto:{PORT}"), &options))
        .unwrap();
    assert!(port.notes[0].contains("AF_XDP"), "{:?}", port.notes);
}
