//! Frames of which a capture contains only the beginning: every path preserves their length
//! on the wire.

use longwire_engine::{Bytes, Nanos};
use longwire_io::port::mem;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_io::{PushResult, RxFrame, RxPort, TxFrame, TxPort};
use longwire_testbed::support::Folder;

/// Captured and original length: cut, complete, and an original length below the captured
/// one, which is ignored.
const FRAMES: [(usize, u32, u32); 4] = [
    (64, 1514, 1514),
    (60, 60, 60),
    (96, 65_550, 65_550),
    (80, 0, 80),
];

fn send(tx: &mut impl TxPort) {
    for (kept, wire_len, _) in FRAMES {
        let bytes = vec![kept as u8; kept];
        let frame = TxFrame {
            wire_len,
            ..TxFrame::whole(&bytes, Nanos::from_nanos(kept as u64))
        };
        assert_eq!(tx.push(frame), PushResult::Taken);
    }
    assert_eq!(tx.flush().unwrap(), FRAMES.len());
}

fn lengths(rx: &mut impl RxPort) -> Vec<(usize, u32)> {
    let mut got = Vec::new();
    while got.len() < FRAMES.len() {
        let take = &mut |frame: RxFrame<'_>| got.push((frame.bytes.len(), frame.wire_len));
        rx.receive(Nanos::MAX, 64, take).unwrap();
    }
    got
}

fn expected() -> Vec<(usize, u32)> {
    FRAMES.map(|(kept, _, wire_len)| (kept, wire_len)).to_vec()
}

#[test]
fn the_memory_pipe_keeps_the_length_on_the_wire() {
    let (mut tx, mut rx) = mem::pipe(Bytes(1 << 20)).unwrap();
    send(&mut tx);
    assert_eq!(lengths(&mut rx), expected());
}

#[test]
fn captures_store_the_length_on_the_wire() {
    for extension in ["pcap", "pcapng"] {
        let dir = Folder::new();
        let path = dir.file(&format!("cut.{extension}"));
        let options = OpenOptions::default();
        let mut writer = registry::open(&format!("pcap:out={path}"), &options).unwrap();
        send(&mut writer.tx);
        drop(writer);
        let mut reader = registry::open(&format!("pcap:{path}"), &options).unwrap();
        assert_eq!(lengths(&mut reader.rx), expected(), "{extension}");
    }
}
