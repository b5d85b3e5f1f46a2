//! Real traffic, including super-packets, through two `packet:IF` ports with a forwarder in
//! between. Without the right to create namespaces, the tests are skipped with a message, except in
//! CI, where they fail.

use crate::common::frames;
use crate::common::pair;
use longwire_testbed::support::skip;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use frames::FrameSpec;
use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::{self, sysctl};
use longwire_io::port::{AnyTx, Checksum};
use longwire_io::{Offload, RxFrame, RxPort, TxPort};
use pair::{PORT, Pair, STATION, flush, frame, number_of, push_with, receive_until, tcp_transfer};

/// Environment variable of the processes that a test starts from the test program.
const CHILD: &str = "LONGWIRE_TEST_CHILD";

/// Two stations, and the emulator's two ports between them.
struct Between {
    near: Pair,
    far: Pair,
}

impl Between {
    fn new() -> Option<Between> {
        Some(Between {
            near: Pair::number(1, 1500)?,
            far: Pair::number(2, 1500)?,
        })
    }

    /// Sends `data` by TCP from the near station's address to the far one's.
    fn transfer(&self, addresses: [&str; 2], data: &[u8]) -> Vec<u8> {
        tcp_transfer([&self.near.outside, &self.far.outside], addresses, data)
    }

    /// Carries frames between the two ports while `work` runs, passing each frame to `look` first.
    fn carry<T>(
        &self,
        mut look: impl FnMut(&mut Vec<u8>, &mut Offload) + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let (mut near, mut far) = (self.near.packet(), self.far.packet());
        let pass = |frame: RxFrame<'_>, tx: &mut AnyTx| {
            let (mut bytes, mut offload) = (frame.bytes.to_vec(), frame.offload);
            look(&mut bytes, &mut offload);
            push_with(tx, &bytes, offload);
        };
        let result = pair::carry([&mut near, &mut far], pass, work);
        for mut port in [near, far] {
            assert_eq!(port.rx.losses(), Default::default());
        }
        result
    }
}

/// Super-packets of up to 64 KiB pass whole. Longer ones, which senders build if their device
/// allows it, pass in pieces.
#[test]
fn tcp_passes_in_super_packets_and_big_tcp_in_pieces() {
    let Some(between) = Between::new() else {
        return;
    };
    let data: Vec<u8> = (0..20_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let pairs = [&between.near, &between.far];
    for (pair, number) in pairs.into_iter().zip(1..) {
        pair.in_station(|| {
            sysctl::set("ipv6/conf/station0/accept_dad", "0").unwrap();
            sysctl::set("ipv6/conf/station0/disable_ipv6", "0").unwrap();
            let address = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, number));
            net::addr_add(STATION, address, 64).unwrap();
        });
    }
    for (is_big, addresses) in [
        (false, ["10.78.0.1", "10.78.0.2:5000"]),
        (true, ["10.78.0.1", "10.78.0.2:5000"]),
        (true, ["fd78::1", "[fd78::2]:5000"]),
    ] {
        for pair in pairs.iter().filter(|_| is_big) {
            pair.in_station(|| net::set_gso_max(STATION, 200_000))
                .unwrap();
        }
        let (mut longest, mut supers, mut full) = (0, 0, 0);
        let look = |bytes: &mut Vec<u8>, offload: &mut Offload| {
            assert!(bytes.len() <= 14 + 65_535, "{}", bytes.len());
            assert!(bytes.len() <= 1514 || offload.segments.is_some());
            longest = longest.max(bytes.len());
            supers += usize::from(offload.segments.is_some());
            // Long pieces are cut at the length limit of an IP packet; the sender's own limit is
            // much higher.
            full += usize::from(bytes.len() > 64_000);
        };
        let received = between.carry(look, || between.transfer(addresses, &data));
        assert!(received == data, "{} bytes", received.len());
        assert!(longest > 60_000 && supers > 100, "{longest} {supers}");
        assert!(!is_big || full > 20, "{full} pieces of {addresses:?}");
    }
}

#[test]
fn unfinished_checksums_pass_and_can_be_finished() {
    let Some(between) = Between::new() else {
        return;
    };
    for finish in [false, true] {
        let mut unfinished = 0;
        let look = |bytes: &mut Vec<u8>, offload: &mut Offload| {
            unfinished += usize::from(offload.checksum.is_some());
            if finish && let Some(checksum) = offload.checksum.take() {
                assert!(longwire_io::port::offload::finish_checksum(bytes, checksum));
            }
        };
        between.carry(look, || {
            let socket =
                |pair: &Pair, address| pair.in_station(|| UdpSocket::bind(address)).unwrap();
            let receiver = socket(&between.far, "10.78.0.2:5001");
            let limit = Some(Duration::from_secs(5));
            receiver.set_read_timeout(limit).unwrap();
            let sender = socket(&between.near, "10.78.0.1:0");
            let message: Vec<u8> = (0..1001u32).map(|n| n as u8).collect();
            let mut buffer = [0; 2000];
            for _ in 0..20 {
                sender.send_to(&message, "10.78.0.2:5001").unwrap();
                let len = receiver.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..len], message);
            }
        });
        assert!(unfinished >= 20, "{unfinished}");
    }
}

#[test]
fn a_user_without_root_can_open_a_port() {
    const INNER: &str = "packet_traffic::inside_a_user_namespace";
    let output = std::process::Command::new("unshare")
        .args(["-Urn", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", INNER, "--nocapture"])
        .env(CHILD, "1")
        .output();
    let passed = |text: &[u8]| String::from_utf8_lossy(text).contains("1 passed");
    match output {
        Ok(output) if output.status.success() && passed(&output.stdout) => {}
        other => skip(format!("no user namespaces: {other:?}")).unwrap_or(()),
    }
}

/// Run by `a_user_without_root_can_open_a_port` in a separate process.
#[test]
fn inside_a_user_namespace() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let pair = Pair::new().expect("root of a user namespace may make more");
    let (mut port, mut station) = (pair.packet(), pair.station());
    eprintln!("{:?}", port.notes);
    pair::send(&mut port.tx, &frame(1, 64));
    let got = receive_until(&mut station.rx, |got| !got.is_empty());
    assert_eq!(got[0].bytes, frame(1, 64));
}

/// Builds a TCP super-packet with this payload length, and its offload.
fn super_packet(payload: usize) -> (Vec<u8>, Offload) {
    let spec = FrameSpec::tcp(payload);
    let offload = Offload {
        checksum: Some(spec.checksum()),
        segments: Some(spec.segments(1000)),
    };
    (spec.build_partial(), offload)
}

#[test]
fn super_packets_and_short_frames_keep_their_order() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    let mut sent = Vec::new();
    for n in 0..300u32 {
        let (bytes, offload) = match n % 7 {
            2 => super_packet(2_500 + n as usize),
            5 => super_packet(40_000 + n as usize),
            _ => (frame(n, 64), Offload::NONE),
        };
        while port.tx.free_slots() == 0 {
            flush(&mut port.tx);
        }
        push_with(&mut port.tx, &bytes, offload);
        sent.push((bytes, offload));
    }
    flush(&mut port.tx);
    let got = receive_until(&mut station.rx, |got| got.len() >= sent.len());
    let got: Vec<_> = got.into_iter().map(|f| (f.bytes, f.offload)).collect();
    assert!(got == sent, "{} of {}", got.len(), sent.len());
}

#[test]
fn super_packets_are_cut_for_a_device_that_cannot() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    pair.in_port(|| {
        let off = [("tx-tcp-segmentation", false)];
        Ethtool::open()?.set_features(PORT, off)
    })
    .unwrap();
    let (bytes, offload) = super_packet(9_500);
    pair::send(&mut port.tx, &frame(1, 64));
    pair::send_with(&mut port.tx, &bytes, offload);
    pair::send(&mut port.tx, &frame(2, 64));
    let got = receive_until(&mut station.rx, |got| got.len() >= 12);
    assert_eq!(got.len(), 12);
    assert_eq!(number_of(&got[0].bytes), Some(1));
    let header = usize::from(offload.segments.unwrap().header_len);
    for wire in &got[1..10] {
        assert_eq!(wire.bytes.len(), header + 1000);
    }
    assert_eq!(got[10].bytes.len(), header + 500);
    assert_eq!(number_of(&got[11].bytes), Some(2));
    assert_eq!(port.tx.losses(), Default::default());
}

#[test]
fn a_lost_super_packet_counts_as_its_wire_frames() {
    let Some(pair) = Pair::new() else { return };
    let mut port = pair.packet();
    pair.in_station(|| net::link_down(STATION)).unwrap();
    for payload in [2_500, 40_000] {
        let (bytes, offload) = super_packet(payload);
        pair::send_with(&mut port.tx, &bytes, offload);
    }
    pair::send(&mut port.tx, &frame(1, 64));
    assert_eq!(port.tx.losses().no_carrier, 3 + 40 + 1);
}

#[test]
fn a_super_packet_that_cannot_be_segmented_holds_up_no_others() {
    let Some(pair) = Pair::new() else { return };
    let (mut port, mut station) = (pair.packet(), pair.station());
    let spec = FrameSpec::udp(5_000);
    let offload = Offload {
        // No header has a checksum at this offset, so the kernel cannot segment the packet.
        checksum: Some(Checksum {
            start: spec.payload_at() as u16 + 100,
            offset: 6,
        }),
        segments: Some(spec.segments(1000)),
    };
    pair::send_with(&mut port.tx, &spec.build_partial(), offload);
    pair::send(&mut port.tx, &frame(1, 64));
    let got = receive_until(&mut station.rx, |got| !got.is_empty());
    assert_eq!(number_of(&got[0].bytes), Some(1));
    assert_eq!(port.tx.losses().send_failed, 5, "wire frames");
}
