//! Captures with records that cannot be converted to Ethernet, read by a port and by a receiver.
//! Both count these records.

use longwire_engine::Nanos;
use longwire_io::port::RxPort;
use longwire_io::port::pcap::PcapRx;
use longwire_testbed::support::{Folder, capture};
use longwire_traffic::receive::{AgainstTrace, CaptureReceiver, ReceiveConfig};

/// Writes an IEEE 802.11 capture: a beacon, an IPv4 data frame and an encrypted frame.
fn wireless(folder: &Folder) -> String {
    let head = |first: u8, flags: u8| [&[first, flags][..], &[2; 22]].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45][..], &[0; 19]].concat();
    // The low bits of the sequence control field contain the fragment number.
    let data = |flags| {
        let mut head = head(8, flags);
        head[22] = 0;
        [head, snap.clone()].concat()
    };
    let records = [head(0x80, 0), data(1), data(0x41)];
    let path = folder.file("wireless.pcap");
    let file = capture::pcap(105, (0..).zip(records));
    std::fs::write(&path, file).expect("a small file");
    path
}

#[test]
fn records_without_an_ethernet_form_count_as_port_losses() {
    let folder = Folder::new();
    let mut port = PcapRx::open(&wireless(&folder)).expect("a capture");
    let (mut now, mut lengths, mut is_over) = (Nanos::from_secs(1), Vec::new(), false);
    while !is_over {
        let received = port.receive(now, 8, &mut |frame| lengths.push(frame.bytes.len()));
        is_over = received.expect("no fault").end;
        now = now.saturating_add(Nanos::from_secs(1));
    }
    assert_eq!(lengths, [34]);
    let losses = port.losses();
    assert_eq!((losses.unusable, losses.too_long), (2, 0));
}

#[test]
fn a_receiver_counts_and_names_the_records_that_it_cannot_examine() {
    let folder = Folder::new();
    let path = wireless(&folder);
    let config = ReceiveConfig {
        against: Some(AgainstTrace {
            trace: path.clone(),
            rounds: 1,
            ..AgainstTrace::default()
        }),
        ..ReceiveConfig::default()
    };
    let mut receiver = CaptureReceiver::open(&path, config).expect("a capture");
    while receiver.step() {}
    let report = receiver.finish();
    assert_eq!((report.packets, report.unseen.unusable), (1, 2));
    // There is a note for the trace, and one for the received capture.
    let encrypted = "skipped 1 record: IEEE 802.11, encrypted";
    let notes = report.notes.iter().filter(|note| note.ends_with(encrypted));
    assert_eq!(notes.count(), 2, "{:?}", report.notes);
}
