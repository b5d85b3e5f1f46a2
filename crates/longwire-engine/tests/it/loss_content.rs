//! Loss by content: matching and rejected filters, and robustness against arbitrary text and
//! frames.

use crate::common::files::frame_context;
use longwire_engine::models::LOSS;
use longwire_engine::models::loss::LossModel;
use longwire_engine::{DropReason, FrameContext, Verdict};
use longwire_packet::filter::{Filter, LANGUAGE};
use longwire_testbed::support::frames::{self, Ipv4, PLAIN4, ethernet, ipv6, transport};
use longwire_testbed::support::rows;
use longwire_units::random::{Purpose, Stream};
use proptest::prelude::*;

fn model(filter: &str) -> Box<dyn LossModel> {
    let text = format!("content:match={filter}");
    LOSS.parse(&text)
        .unwrap_or_else(|error| panic!("{filter}: {error}"))
        .model
}

fn refusal(filter: &str) -> String {
    let error = LOSS.parse(&format!("content:match={filter}")).unwrap_err();
    let text = error.to_string();
    let message = text.strip_prefix("content: match: ");
    message.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Every example in the help must be a valid filter.
#[test]
fn names_in_the_help_are_accepted() {
    for [text, filter] in rows(
        "
        ip, ip6, arp, icmp, icmp6, tcp, udp, sctp | not ip6
        vlan [N]                     | vlan and vlan 7
        proto N                      | ip proto 6 or ip6 proto 17 or ether proto 0x88cc
        [PROTOCOL] [src¦dst] host¦net | src host 10.0.0.1
        net¦port¦portrange           | tcp dst port 80 or udp portrange 5-9
        ether [src¦dst] host         | ether src host 02:00:00:00:00:01
        [ether¦ip¦ip6] multicast     | ether multicast or ip multicast
        ether broadcast              | ether broadcast
        less N, greater N            | less 100 or greater 1000
        tcp[13] & 2 != 0             | tcp[13] & 2 != 0
        ip.addr == 10.0.0.0/8        | ip.addr == 10.0.0.0/8
        tcp.port in {80, 443}        | tcp.port in {80, 443}
        len, ttl, dscp, ecn          | len > 9 and ttl 5 and dscp ef and ecn = 1
        flag syn                     | flag syn
        fragment                     | fragment
        bytes OFFSET HEX             | bytes 14 4500
        and, or, not and parentheses | not (ip and tcp) or udp
        ",
    ) {
        assert!(LANGUAGE.contains(&text.replace('¦', "|")), "{text}");
        assert!(Filter::parse(filter).is_ok(), "{filter}");
    }
    for word in "ip ip6 arp icmp icmp6 tcp udp sctp".split(' ') {
        assert!(Filter::parse(word).is_ok(), "{word}");
    }
    for flag in "syn fin rst psh ack urg ece cwr".split(' ') {
        assert!(Filter::parse(&format!("flag {flag}")).is_ok(), "{flag}");
    }
}

fn matches(model: &mut dyn LossModel, bytes: &[u8], len: usize) -> bool {
    let frame_context = FrameContext {
        bytes,
        ..frame_context(0, len as u32)
    };
    let mut stream = Stream::new(1, 0, Purpose::MediumLoss);
    let lost = model.judge(&frame_context, &mut stream);
    assert!(matches!(lost, None | Some(DropReason::Content)));
    lost.is_some()
}

/// Frames of every kind, labelled by letters.
fn all() -> Vec<(char, Vec<u8>)> {
    let udp4 = transport(4, 17, (5_353, 53), 0, &[1; 30]);
    let udp6 = transport(6, 17, (9, 5_005), 0, &[2; 64]);
    let tcp = |version, flags, len| transport(version, 6, (40_000, 443), flags, &vec![3; len]);
    let expedited = Ipv4 {
        class: 46 << 2 | 2,
        ttl: 3,
        ..PLAIN4
    };
    let part = |fragment| Ipv4 { fragment, ..PLAIN4 }.packet(17, &udp4);
    let hop_by_hop: (u8, &[u8]) = (0, &[0, 0, 1, 4, 0, 0, 0, 0]);
    let later_part: (u8, &[u8]) = (44, &[0, 0, 0, 8, 0, 0, 0, 9]);
    let v4 = |packet: &[u8]| ethernet(&[], 0x0800, packet);
    let v6 = |packet: &[u8]| ethernet(&[], 0x86dd, packet);
    let tagged = |packet: &[u8]| ethernet(&[100, 8], 0x86dd, packet);
    let ping = transport(4, 1, (0, 0), 0, &[0; 56]);
    vec![
        // SYN to port 443, EF, ECT(0), TTL nearly expired.
        ('a', v4(&expedited.packet(6, &tcp(4, 0x02, 0)))),
        // DNS in VLAN 7.
        ('b', ethernet(&[7], 0x0800, &PLAIN4.packet(17, &udp4))),
        ('c', v4(&PLAIN4.packet(1, &ping))),
        // ACK and PSH, a kilobyte, CE.
        ('d', v6(&ipv6(3, &[], 6, &tcp(6, 0x18, 1_000)))),
        // After an extension header, in VLAN 8 of provider VLAN 100.
        ('e', tagged(&ipv6(0, &[hop_by_hop], 17, &udp6))),
        ('f', ethernet(&[], 0x0806, &[0; 46])),
        // A first fragment, and a later one.
        ('g', v4(&part(0x2000))),
        ('h', v4(&part(0x0010))),
        ('i', v6(&ipv6(0, &[later_part], 17, &udp6))),
        ('j', vec![0xff; 9]),
    ]
}

fn matching(filter: &str) -> String {
    let mut model = model(filter);
    let all = all();
    let found = all
        .iter()
        .filter(|(_, frame)| matches(model.as_mut(), frame, frame.len()));
    found.map(|(letter, _)| letter).collect()
}

/// Covers filters that tcpdump does not support, and prefixes that end within an octet;
/// `filter_tools` in longwire-packet compares the rest with tcpdump and tshark.
#[test]
fn filters_match_what_they_say() {
    for (filter, expected) in [
        // ARP packets contain addresses too.
        ("net 0.0.0.0/0", "abcfgh"),
        ("net ::/0", "dei"),
        // Prefixes that end within an octet.
        ("net 10.1.2.2/31", "abcgh"),
        ("net 10.1.2.4/30", ""),
        ("vlan 100", "e"),
        ("dscp 46", "a"),
        ("dscp = ef", "a"),
        ("dscp != ef", "bcdeghi"),
        ("dscp < af11", "bcdeghi"),
        ("ecn ce", "d"),
        ("ecn >= ect0", "ad"),
        ("ttl <= 3", "a"),
        ("ttl > 60", "bcdeghi"),
        ("len 9", "j"),
        ("flag syn", "a"),
        ("flag ack and flag psh", "d"),
        ("flag rst", ""),
        ("fragment", "ghi"),
        ("dst host 192.0.2.77 and not fragment", "abc"),
        ("bytes 12 0800", "acgh"),
        ("bytes 12 81:00:00:07", "b"),
        ("bytes 0 ffff", "j"),
        ("bytes 8 ffff", ""),
        ("bytes 65535 00", ""),
        // "and" binds more tightly than "or".
        ("arp or ip and tcp", "af"),
        ("not not arp", "f"),
        ("! ip && !ip6 || port 53", "bfgj"),
    ] {
        assert_eq!(matching(filter), expected, "{filter}");
    }
}

#[test]
fn filters_are_refused_at_their_column() {
    const WHAT: &str = "a test such as ip, udp, port 53, src net 10.0.0.0/8 or len > 100";
    for [filter, column, message] in rows(
        "
        ip and        | 7  | the filter ends early; expected WHAT
        ip udp        | 4  | unexpected 'udp'; join tests with 'and' or 'or'
        (ip or udp    | 11 | the filter ends early; expected ')'
        ip)           | 3  | unmatched ')'
        ip and cheese | 8  | 'cheese' is not WHAT
        ü and ip      | 1  | 'ü' is not WHAT
        (ü)           | 2  | 'ü' is not WHAT
        ip and (ü)    | 9  | 'ü' is not WHAT
        port 65536 | 6 | '65536' is not a port number, 0 to 65535, or a service such as http
        udp port dns | 10 | 'dns' is not a port number, 0 to 65535, or a service such as http
        portrange 9-5 | 11 | '9-5' is not a range of ports such as 5000-5010
        net 10.0.0.0/33 | 5 | '10.0.0.0/33' is not a network such as 10.0.0.0/8 or 2001:db8::/32
        src 10.0.0 | 5 | '10.0.0' is not an address such as 10.0.0.1 or 2001:db8::1
        len x | 5 | 'x' is not a length in bytes
        len > x | 7 | 'x' is not a number, len, or bytes such as tcp[13] or ip[2:2]
        ttl 256 | 5 | '256' is not a time to live, 0 to 255
        dscp 64 | 6 | '64' is not a code point: 0 to 63, ef, cs1 or af11
        ecn = maybe | 7 | 'maybe' is not one of not-ect, ect1, ect0, ce, or 0 to 3
        flag ns | 6 | 'ns' is not one of fin, syn, rst, psh, ack, urg, ece, cwr
        bytes 0 123 | 9 | '123' is not bytes in hexadecimal such as 4500
        bytes x 12 | 7 | 'x' is not an offset in bytes, 0 to 65535
        ether proto 0xgg | 13 | '0xgg' is not an EtherType such as 0x88cc or arp
        ether src 2:0:0:0:0:1:3 | 11 | '2:0:0:0:0:1:3' is not an Ethernet address such as 02:00:00:00:00:01
        ",
    ) {
        let message = format!("column {column}: {}", message.replace("WHAT", WHAT));
        assert_eq!(refusal(filter), message, "{filter}");
    }
    let deep = "more than 32 nested parentheses and negations";
    let open = format!("{}ip", "(".repeat(40));
    assert_eq!(refusal(&open), format!("column 34: {deep}"));
    let negated = format!("{}ip", "not ".repeat(5_000));
    assert_eq!(refusal(&negated), format!("column 133: {deep}"));
}

/// The drop reason is reported, and the loss ratio fits: 20,000 frames at 99.98 % confidence.
#[test]
fn a_matching_frame_is_lost_with_its_probability() {
    let all = all();
    let line = "loss=content:match=udp port 53,probability=30%";
    let mut link = crate::common::link(line, 1);
    let mut lost = 0;
    for index in 0..40_000u64 {
        let bytes = &all[index as usize % 2].1;
        let frame = crate::common::frame(index * 1_000, bytes.len() as u32);
        match link.offer(frame, bytes) {
            Verdict::Drop(DropReason::Content) => {
                assert_eq!(index % 2, 1, "only the second frame is DNS");
                lost += 1;
            }
            other => assert!(matches!(other, Verdict::Deliver(_))),
        }
    }
    crate::common::assert_binomial("lost", lost, 20_000, 0.3, 0.9998);
    let mut entry = crate::common::link("loss=content:match=udp port 53,at=entry", 1);
    let verdict = entry.offer(crate::common::frame(0, 80), &all[1].1);
    assert_eq!(verdict, Verdict::Drop(DropReason::EntryLoss));
}

/// Tests every primitive on frames truncated at every length: absent fields do not match, except
/// under negation.
#[test]
fn frames_cut_short_are_no_matter() {
    let every = "ip or ip6 or vlan 9 or tcp or port 1 or net 1.2.3.4/5 or ether src 00:00:00:00:00:00 \
                 or dscp 1 or ecn 3 or ttl 0 or flag urg or fragment or bytes 20 00 or ip6 net ff::/8";
    let mut filter = model(every);
    let samples = frames::samples().into_iter().map(|sample| sample.frame);
    for frame in samples.chain(all().into_iter().map(|(_, frame)| frame)) {
        for end in 0..=frame.len() {
            matches(filter.as_mut(), &frame[..end], frame.len());
        }
    }
    assert!(!matches(model("tcp port 443").as_mut(), &[], 60));
    assert!(matches(model("len 60 and not tcp").as_mut(), &[], 60));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_and_no_frame_make_a_filter_panic(
        words in proptest::collection::vec(
            "ip|ip6|vlan|tcp|udp|port|portrange|src|dst|host|net|ether|proto|len|dscp|ecn|flag|syn\
             |bytes|fragment|and|or|not|\\(|\\)|!|=|<|>=|[0-9]{1,5}|0x[0-9a-f]{1,4}|10\\.0\\.0\\.0/8|::1|[^,]",
            0..12,
        ),
        frame in proptest::collection::vec(any::<u8>(), 0..90),
        typed in 0usize..4,
    ) {
        let text = words.join(" ");
        let mut frame = frame;
        let types: [&[u8]; 4] = [&[], &[8, 0, 0x45], &[0x86, 0xdd, 0x60], &[0x81, 0, 0, 1, 0x86, 0xdd, 0x60]];
        for (at, byte) in types[typed].iter().enumerate() {
            if let Some(place) = frame.get_mut(12 + at) {
                *place = *byte;
            }
        }
        match LOSS.parse(&format!("content:match={text}")) {
            Ok(mut placed) => {
                matches(placed.model.as_mut(), &frame, frame.len());
                let written = placed.to_string();
                let again = LOSS.parse(&written).unwrap();
                prop_assert_eq!(again.to_string(), written);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
