//! Altered frames in tshark: none is malformed, and no checksum is wrong. If tshark is not
//! installed, the test prints a message and passes, except in CI, where it fails.

use std::fs;
use std::process::Command;

use crate::alter::{Alterations, altered_in, options, sctp, udp};
use crate::bytes_of;
use longwire_testbed::support::capture::pcap;
use longwire_testbed::support::frames::{self, PLAIN4, ethernet, ipv6};
use longwire_testbed::support::{Folder, output};

/// Returns whole frames: all samples; SCTP and UDP packets; an ICMP error, a neighbour solicitation
/// and an ARP request.
fn sources() -> Vec<Vec<u8>> {
    let quoted = udp((40_000, 9_999), &[7; 60]);
    let error = [&[3, 3, 0, 0, 0, 0, 0, 0], &quoted[14..70]].concat();
    let solicitation = bytes_of("870000000000000020010db80000000000000000000000090101020000000001");
    let mut packet = ipv6(0, &[], 58, &solicitation);
    packet[7] = 255;
    let mut arp = bytes_of("00010800060400010200000000010a0102030000000000000a010204");
    arp.resize(46, 0);
    let samples = frames::samples().into_iter().map(|sample| sample.frame);
    let others = [
        sctp(200),
        sctp(1_300),
        udp((40_000, 9_999), &[7; 1_400]),
        ethernet(&[], 0x0800, &PLAIN4.packet(1, &error)),
        ethernet(&[], 0x86dd, &packet),
        ethernet(&[], 0x0806, &arp),
    ];
    let mut all: Vec<Vec<u8>> = samples.chain(others).collect();
    for frame in &mut all {
        longwire_packet::repair_checksums(frame);
    }
    all
}

/// Alters the sources with several sets of options, whole and truncated to at most 96 bytes.
fn all_altered() -> Vec<Vec<u8>> {
    let sets = [
        "map=10.0.0.0/8=172.16.0.0/12 map=2001:db8::/32=2001:db8:7::/48 map-port=443=8443 map-port=5060=15060 src-mac=02:aa:aa:aa:aa:aa vlan=push:77,pcp=3 ttl=-1 dscp=46",
        "anonymize vlan=pop loop-renumber loop-addresses=7",
        "truncated=pattern:00ff",
        "mtu=576 mtu-action=truncate",
        "mtu=576",
    ];
    let mut all = Vec::new();
    for set in sets {
        let mut alterations = Alterations::new(options(set));
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
    command.args(["-Y", wrong, "-T", "fields"]);
    command.args([
        "-e",
        "frame.number",
        "-e",
        "frame.len",
        "-e",
        "_ws.col.Info",
    ]);
    let Some(output) = output(&mut command) else {
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.is_empty(), "of {} frames:\n{said}", frames.len());
}
