//! Captures of real traffic, replayed unchanged and rewritten: tshark finds no errors
//! in the arrivals.

use crate::common::process::{Capture, SUSPECT, records, tshark};
use crate::common::{have, write};
use crate::replay::frames::{extension_headers, sctp_association, tagged, timed};
use crate::replay::traffic::{Stations, VOICE_PACKETS};
use crate::replay::wire::{Wire, pcap_of};
use longwire_testbed::support::{Folder, words};

/// A filter for frames that [`REWRITING`] did not change.
const NOT_REWRITTEN: &str = "not vlan.id == 77 or not eth.dst == 02:00:00:00:00:0b or \
    eth.src == 02:00:00:00:00:01 or ip.addr == 10.9.0.0/24 or ipv6.addr == fd09::/64 or \
    arp.src.proto_ipv4 == 10.9.0.0/24 or tcp.port == 80 or udp.port == 53 or \
    (ip and not ip.dsfield.dscp == 46) or (ipv6 and not ipv6.tclass.dscp == 46) or \
    (ip and not ip.ttl == 63)";

const REWRITING: &str = "--map 10.9.0.0/24=192.0.2.0/24 --map fd09::/64=2001:db8:5::/64 \
                         --src-mac 02:00:00:00:00:0a --dst-mac 02:00:00:00:00:0b \
                         --map-port 80=8080 --map-port 53=5300 --vlan push:77,pcp=3 --ttl -1 \
                         --dscp ef";

fn expect_none(file: &str, filter: &str, of: &str) {
    let found = tshark(file, filter);
    assert!(found.is_empty(), "{of}, {file}:\n{found}");
}

/// The environment of a replay.
struct Bench {
    dir: Folder,
    wire: Wire,
}

impl Bench {
    /// Prints the reason and returns `None` without namespaces; fails in CI.
    fn new(programs: &[&str]) -> Option<Bench> {
        let here = ["dumpcap", "tshark"].iter().chain(programs);
        // Names each missing program.
        let missing = here.filter(|program| !have(program)).count();
        let all = missing == 0;
        let dir = Folder::new();
        let wire = Wire::new(1, 9_000).filter(|_| all)?;
        Some(Bench { dir, wire })
    }

    /// Replays a trace; returns the file of its `frames` arrivals.
    fn replay(&self, trace: &str, options: &[&str], frames: usize) -> String {
        let name = format!("arrived-{}.pcap", options.len());
        let capture = Capture::start(&self.dir, &name, &self.wire.far, &["-i", "far0"]);
        let command = [
            "replay", trace, "--to", "near0", "--rate", "2kpps", "--json",
        ];
        let ran = self.wire.run(&[&command, options].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let link = &ran.json()["links"][0];
        assert_eq!(link["packets_out"], frames, "{link}");
        let file = capture.with_frames(frames);
        assert_eq!(records(&file).len(), frames, "{trace} {options:?}");
        file
    }

    /// Checks that a trace arrives unchanged and, if rewritten, without errors;
    /// `header` is the length of the capture's link-layer header.
    fn check(&self, trace: &str, least: usize, header: usize) {
        let sent = records(trace);
        assert!(sent.len() >= least, "{trace}: {} frames", sent.len());
        expect_none(trace, SUSPECT, "as captured");
        let arrived = self.replay(trace, &[], sent.len());
        let packets = |frames: &[Vec<u8>], header: usize| -> Vec<Vec<u8>> {
            frames
                .iter()
                .map(|frame| frame[header..].to_vec())
                .collect()
        };
        let behind = if header == 0 { 0 } else { 14 };
        let (came, sent_packets) = (packets(&records(&arrived), behind), packets(&sent, header));
        assert!(came == sent_packets, "{trace}: other bytes arrive");
        expect_none(&arrived, SUSPECT, "replayed");
        let arrived = self.replay(trace, &words(REWRITING), sent.len());
        expect_none(&arrived, SUSPECT, "rewritten");
        expect_none(&arrived, NOT_REWRITTEN, "not rewritten");
    }
}

#[test]
fn pings_fragments_and_errors() {
    let Some(bench) = Bench::new(&["ping"]) else {
        return;
    };
    let Some(stations) = Stations::new(1_500) else {
        return;
    };
    let place = (&bench.dir, "pings.pcap");
    // Two of each size and protocol with their replies; 4,000 bytes make three
    // fragments.
    let speak = |stations: &Stations| stations.ping(&["56", "4000"]);
    let trace = stations.capture(place, &["-i", "station"], 34, speak);
    assert!(!tshark(&trace, "ipv6.fraghdr and icmpv6").is_empty());
    assert!(!tshark(&trace, "icmp.type == 3").is_empty());
    bench.check(&trace, 34, 0);

    let frames = records(&trace);
    let kinds: [&[(u16, u16)]; 3] = [
        &[(0x8100, 7)],
        &[(0x88a8, 100), (0x8100, 7)],
        &[(0x8100, 0x6007)],
    ];
    let tags = frames.iter().zip(kinds.into_iter().cycle());
    let frames = timed(tags.map(|(frame, tags)| tagged(frame, tags)));
    let trace = bench.dir.file("tagged.pcap");
    write(&trace, &pcap_of(1, &frames));
    bench.check(&trace, 34, 0);
}

#[test]
fn names_and_a_call() {
    let Some(bench) = Bench::new(&[]) else { return };
    let Some(stations) = Stations::new(1_500) else {
        return;
    };
    let place = (&bench.dir, "names.pcap");
    let trace = stations.capture(place, &["-i", "station"], 8, Stations::look_up);
    let answers = tshark(&trace, "dns.flags.response == 1 and dns.a == 192.0.2.80");
    assert_eq!(answers.lines().count(), 4, "{answers}");
    bench.check(&trace, 8, 0);

    let voice = 2 * usize::from(VOICE_PACKETS);
    let place = (&bench.dir, "call.pcap");
    let trace = stations.capture(place, &["-i", "station"], voice + 6, Stations::call);
    bench.check(&trace, voice + 6, 0);
    // The SDP description of the call still matches the arrivals.
    let arrived = bench.replay(&trace, &[], records(&trace).len());
    let heard = tshark(&arrived, "rtp and rtp.setup-frame");
    assert_eq!(heard.lines().count(), voice, "{heard}");
}

#[test]
fn pages_whole_and_cut() {
    let Some(bench) = Bench::new(&["curl"]) else {
        return;
    };
    let Some(stations) = Stations::new(1_500) else {
        return;
    };
    let page = |stations: &Stations| stations.fetch(60_000);
    let place = (&bench.dir, "pages.pcap");
    let trace = stations.capture(place, &["-i", "station"], 90, page);
    bench.check(&trace, 90, 0);

    // The first 96 bytes of each, padded, with fixed checksums.
    let place = (&bench.dir, "cut.pcap");
    let trace = stations.capture(place, &["-i", "station", "-s", "96"], 90, page);
    let cut = records(&trace);
    assert!(cut.iter().all(|frame| frame.len() <= 96));
    for options in [&[][..], &words(REWRITING)] {
        let arrived = bench.replay(&trace, options, cut.len());
        expect_none(&arrived, SUSPECT, "filled up");
        let frames = records(&arrived);
        assert!(frames.iter().any(|frame| frame.len() >= 1_514));
        // Headers are as captured, except for the checksum, which covers the padding.
        let same = |(cut, frame): (&Vec<u8>, &Vec<u8>)| cut[..40] == frame[..40];
        assert!(!options.is_empty() || cut.iter().zip(&frames).all(same));
    }
    let kept = bench.replay(&trace, &["--truncated", "keep"], cut.len());
    assert!(records(&kept) == cut);
}

#[test]
fn jumbo_frames() {
    let Some(bench) = Bench::new(&["curl", "ping"]) else {
        return;
    };
    let Some(stations) = Stations::new(9_000) else {
        return;
    };
    let place = (&bench.dir, "jumbo.pcap");
    let trace = stations.capture(place, &["-i", "station"], 40, |stations| {
        stations.ping(&["8952"]);
        stations.fetch(100_000);
    });
    let longest = records(&trace).iter().map(Vec::len).max();
    assert_eq!(longest, Some(9_014));
    bench.check(&trace, 40, 0);
}

#[test]
fn captures_on_any_interface() {
    let Some(bench) = Bench::new(&["ping"]) else {
        return;
    };
    let Some(stations) = Stations::new(1_500) else {
        return;
    };
    for (kind, header) in [("LINUX_SLL", 16), ("LINUX_SLL2", 20)] {
        let place = (&bench.dir, kind);
        let options = ["-i", "any", "-y", kind];
        let trace = stations.capture(place, &options, 10, |stations| {
            stations.look_up();
            stations.ping(&["100"]);
        });
        bench.check(&trace, 10, header);
    }
}

#[test]
fn extension_headers_and_sctp() {
    let Some(bench) = Bench::new(&[]) else { return };
    let headers = bench.dir.file("headers.pcap");
    write(&headers, &pcap_of(1, &extension_headers()));
    for kind in ["hopopts", "dstopts", "routing", "fraghdr"] {
        assert!(
            !tshark(&headers, &format!("ipv6.{kind}")).is_empty(),
            "{kind}"
        );
    }
    bench.check(&headers, 8, 0);
    let sctp = bench.dir.file("sctp.pcap");
    write(&sctp, &pcap_of(1, &sctp_association()));
    assert_eq!(
        tshark(&sctp, "sctp.checksum.status == 1").lines().count(),
        23
    );
    bench.check(&sctp, 23, 0);
}

/// Validates the tests above: an inverted byte is detected, stays wrong when an address
/// is rewritten, and is repaired on request.
#[test]
fn a_wrong_byte_is_found() {
    let Some(bench) = Bench::new(&[]) else { return };
    let mut frames = extension_headers();
    let last = frames[0].1.len() - 1;
    frames[0].1[last] ^= 1;
    let trace = bench.dir.file("wrong.pcap");
    write(&trace, &pcap_of(1, &frames));
    for (options, wrong) in [
        (&[][..], 1),
        (&["--map", "fd09::/64=2001:db8::/64"], 1),
        (&["--fix-checksums"], 0),
    ] {
        let arrived = bench.replay(&trace, options, frames.len());
        let found = tshark(&arrived, SUSPECT);
        assert_eq!(found.lines().count(), wrong, "{options:?}: {found}");
    }
}
