//! A receiver at a real port: frames sent through a veth pair arrive exactly once. Needs privileges
//! for namespaces; skipped without them, except in CI.

use std::time::{Duration, Instant};

use longwire_capture::{CaptureReader, CaptureWriter};
use longwire_engine::Nanos;
use longwire_io::net::NetNamespace;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::{AnyTx, PushResult, TxFrame, TxPort, registry};
use longwire_packet::probe::Probe;
use longwire_runtime::record::Epoch;
use longwire_testbed::support::{Folder, device, namespace, wire};
use longwire_traffic::receive::{AgainstTrace, ReceiveConfig, Receiver};

/// Two namespaces connected by a veth pair.
struct Wire {
    near: NetNamespace,
    far: NetNamespace,
}

impl Wire {
    fn new() -> Option<Wire> {
        let (near, far) = (namespace()?, namespace()?);
        let end = |namespace| device("eth0", Some(namespace));
        wire(end(&near), end(&far)).expect("a wire");
        Some(Wire { near, far })
    }

    fn receive(&self, config: ReceiveConfig) -> Receiver {
        let receiving = self.far.run(|| Receiver::open("packet:eth0", config, None));
        receiving.expect("a thread").expect("a receiver")
    }

    fn port(&self) -> AnyTx {
        let port = self
            .near
            .run(|| registry::open("packet:eth0", &OpenOptions::default()));
        port.expect("a thread").expect("a port").tx
    }
}

/// Sends frames at full speed.
fn send<'a>(port: &mut AnyTx, frames: impl IntoIterator<Item = &'a Vec<u8>>) {
    for frame in frames {
        while port.push(TxFrame::whole(frame, Nanos::ZERO)) == PushResult::Full {
            port.flush().expect("frames leave");
        }
    }
    while port.unsent() > 0 {
        port.flush().expect("frames leave");
    }
}

/// Waits until `packets` frames have arrived.
fn await_packets(receiving: &Receiver, packets: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while receiving.packets() < packets && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a frame with an experimental EtherType (IEEE 802, 88-B5), which no network stack uses.
fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5];
    frame.extend(number.to_be_bytes());
    frame.resize(len, 0);
    frame
}

#[test]
fn frames_of_a_trace_arrive_at_the_port() {
    let Some(wire) = Wire::new() else { return };
    let folder = Folder::new();
    let (trace, capture) = (folder.file("sent.pcap"), folder.file("came.pcap"));
    let frames: Vec<Vec<u8>> = (0..20_000u64)
        .map(|number| frame(number, 60 + (number as usize * 31) % 1_400))
        .collect();
    let mut writer = CaptureWriter::create(&trace).expect("a trace");
    for (number, frame) in frames.iter().enumerate() {
        let stamp = Nanos::from_micros(number as u64 * 5);
        let written = writer.write(stamp, frame, frame.len() as u32);
        written.expect("a frame is written");
    }
    writer.finish().expect("the trace is whole");
    let receiving = wire.receive(ReceiveConfig {
        against: Some(AgainstTrace {
            trace,
            rounds: 1,
            ..AgainstTrace::default()
        }),
        // Exclude traffic of the namespaces' network stacks.
        filter: "ether proto 0x88b5".parse().ok(),
        capture: Some(capture.clone()),
        ..ReceiveConfig::default()
    });
    // Frame 100 is lost, 200 arrives after 202, 300 is duplicated, and 400 is changed.
    let mut sent = frames.clone();
    let late = sent[200].clone();
    sent[400][50] ^= 1;
    sent.insert(301, frames[300].clone());
    sent.insert(203, late);
    sent.remove(200);
    sent.remove(100);
    // Never send more frames than the ring holds, so that none is lost on a busy machine.
    let (mut port, mut gone) = (wire.port(), 0);
    for part in sent.chunks(2_000) {
        send(&mut port, part);
        gone += part.len() as u64;
        await_packets(&receiving, gone);
    }
    let report = receiving.stop();
    assert_eq!(report.error, None);
    assert_eq!(report.unseen.total(), 0);
    assert_eq!(report.packets, sent.len() as u64);
    let found = report.trace.expect("a comparison");
    assert_eq!(found.frames, 20_000);
    assert_eq!((found.matched, found.lost), (19_998, 1));
    assert_eq!((found.reordered, found.duplicates), (1, 1));
    assert_eq!((found.changed, found.foreign), (1, 0));
    assert!(!found.goes_on && found.behind_last == 0);
    assert!(report.gap_us.min >= 0.0 && report.gap_us.count == report.packets - 1);

    let mut reader = CaptureReader::open(&capture).expect("a capture");
    for frame in &sent {
        let record = reader.next().expect("a whole capture");
        assert_eq!(record.expect("a frame").bytes, &frame[..]);
    }
}

#[test]
fn probes_measure_delay_and_loss_at_the_port() {
    let Some(wire) = Wire::new() else { return };
    let receiving = wire.receive(ReceiveConfig {
        idle: Some(Nanos::from_millis(300)),
        filter: "ether proto 0x88b5".parse().ok(),
        ..ReceiveConfig::default()
    });
    let mut port = wire.port();
    for sequence in 0..500 {
        if sequence % 50 == 7 {
            continue;
        }
        let mut frame = frame(0, 60);
        let sent = Epoch::now().wall;
        let probe = Probe {
            stream: 3,
            sequence,
            sent,
        };
        assert!(probe.write(&mut frame[14..]));
        send(&mut port, [&frame]);
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while !receiving.ended() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(receiving.ended(), "the receiver ends when no frame arrives");
    let report = receiving.stop();
    assert_eq!(report.streams.len(), 1);
    let stream = report.streams[0];
    assert_eq!((stream.stream, stream.sequence.received), (3, 490));
    assert_eq!((stream.sequence.lost, stream.sequence.reordered), (10, 0));
    // A probe's send time is read before the probe is sent, so its delay is positive, to the
    // accuracy with which two clocks can be read simultaneously.
    assert!(stream.delay_us.min > -5.0, "{stream:?}");
    assert!(stream.delay_us.p50 < 50_000.0, "{stream:?}");
}
