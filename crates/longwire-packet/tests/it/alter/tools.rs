//! Altered frames in tshark: none is malformed, and no checksum is wrong. If tshark is not
//! installed, the test prints a message and passes, except in CI, where it fails.

use std::fs;
use std::process::Command;

use crate::alter::{Alterations, altered_in, options, sctp, udp};
use longwire_testbed::support::capture::pcap;
use longwire_testbed::support::frames::{self, PLAIN4, ethernet, ipv6};
use longwire_testbed::support::{Folder, output};

/// Returns whole frames: all samples; SCTP and UDP packets; an ICMP error, a neighbour solicitation
/// and an ARP request.
fn sources() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = frames::samples()
        .into_iter()
        .map(|sample| sample.frame)
        .collect();
    all.push(sctp(200));
    all.push(sctp(1_300));
    all.push(udp((40_000, 9_999), &[7; 1_400]));
    let quoted = udp((40_000, 9_999), &[7; 60]);
    let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
    message.extend(&quoted[14..70]);
    all.push(ethernet(&[], 0x0800, &PLAIN4.packet(1, &message)));
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    message.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    let mut packet = ipv6(0, &[], 58, &message);
    packet[7] = 255;
    all.push(ethernet(&[], 0x86dd, &packet));
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 1, 2, 3];
    arp.extend([0, 0, 0, 0, 0, 0, 10, 1, 2, 4]);
    arp.resize(46, 0);
    all.push(ethernet(&[], 0x0806, &arp));
    for frame in &mut all {
        longwire_packet::repair_checksums(frame);
    }
    all
}

/// Alters the sources with several sets of options, whole and truncated to at most 96 bytes.
fn all_altered() -> Vec<Vec<u8>> {
    let sets = [
        options(
            "map=10.0.0.0/8=172.16.0.0/12 map=2001:db8::/32=2001:db8:7::/48 map-port=443=8443 map-port=5060=15060 src-mac=02:aa:aa:aa:aa:aa vlan=push:77,pcp=3 ttl=-1 dscp=46",
        ),
        options("anonymize vlan=pop loop-renumber loop-addresses=7"),
        options("truncated=pattern:00ff"),
        options("mtu=576 mtu-action=truncate"),
        options("mtu=576"),
    ];
    let mut all = Vec::new();
    for set in sets {
        let mut alterations = Alterations::new(set);
        for frame in sources() {
            for captured in [frame.len(), 96, 82] {
                let bytes = &frame[..captured.min(frame.len())];
                all.extend(altered_in(&mut alterations, bytes, frame.len(), 3));
            }
        }
    }
    all
}

#[test]
fn tshark_accepts_altered_frames() {
    let frames = all_altered();
    let folder = Folder::new();
    let path = folder.file("altered.pcap");
    let timed = frames.iter().map(|frame| (0, frame));
    fs::write(&path, pcap(1, timed)).unwrap();
    let checks = ["ip", "tcp", "udp"].map(|layer| format!("{layer}.check_checksum:TRUE"));
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", &path, "-o", "sctp.checksum:CRC 32c"]);
    for check in &checks {
        command.args(["-o", check]);
    }
    // 0 means "bad" in all versions of tshark.
    let wrong = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                 || udp.checksum.status == 0 || icmp.checksum.status == 0 \
                 || icmpv6.checksum.status == 0 || sctp.checksum.status == 0";
    let fields = ["frame.number", "frame.len", "_ws.col.Info"];
    command.args(["-Y", wrong, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Some(output) = output(&mut command) else {
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.is_empty(), "of {} frames:\n{said}", frames.len());
}
