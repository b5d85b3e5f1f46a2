//! Generated frames: contents, checksums, flows and due times.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longwire_engine::Nanos;
use longwire_packet::probe::Probe;
use longwire_packet::repair_checksums;
use longwire_runtime::record::Epoch;
use longwire_runtime::{Feed, FeedFrame};
use longwire_traffic::generator::{
    AddressRange, FlowConfig, FlowOrder, GeneratorConfig, GeneratorError, GeneratorFeed,
    MacAddress, Payload, PortRange, Protocol, TcpFlags, TogetherFeed, VlanTag,
};
use longwire_traffic::{ARRIVALS, SIZES};

#[derive(Debug, PartialEq)]
struct Frame {
    bytes: Vec<u8>,
    due: Nanos,
}

fn config(sizes: &str, flows: FlowConfig) -> GeneratorConfig {
    GeneratorConfig {
        flows,
        sizes: Arc::from(SIZES.parse(sizes).expect(sizes)),
        arrivals: Arc::from(ARRIVALS.parse("constant").expect("constant")),
        rate: Some("1mpps".parse().expect("a rate")),
        payload: Payload::Counting,
        probe: Some(7),
        count: None,
        time: None,
        seed: 1,
    }
}

const START: Epoch = Epoch {
    monotonic: Nanos::from_secs(5),
    wall: Nanos::from_secs(1_700_000_000),
};

fn generate(config: GeneratorConfig, count: usize) -> Vec<Frame> {
    let mut feed = GeneratorFeed::new(config).expect("a valid configuration");
    feed.begin(START);
    let mut frames = Vec::new();
    while frames.len() < count {
        let mut take = |fed: FeedFrame<'_>| {
            assert_eq!(fed.bytes.len(), fed.wire_len as usize);
            assert_eq!(fed.output, 0);
            frames.push(Frame {
                bytes: fed.bytes.to_vec(),
                due: fed.due,
            });
        };
        // An odd number, so that bursts end at varying positions.
        if feed.feed(37, &mut take).expect("it never fails").end {
            break;
        }
    }
    frames
}

fn v6() -> FlowConfig {
    FlowConfig {
        sources: "2001:2::1-2001:2::ff".parse().expect("a range"),
        destinations: "2001:2:0:1::/64".parse().expect("a prefix"),
        ..FlowConfig::default()
    }
}

/// Checks every checksum against an independent implementation.
fn assert_right(frame: &[u8], what: &str) {
    let mut repaired = frame.to_vec();
    repair_checksums(&mut repaired);
    assert_eq!(frame, repaired, "{what}");
    // Check the checker, too: it must repair a corrupted frame.
    let mut corrupted = frame.to_vec();
    let last = corrupted.len() - 1;
    corrupted[last] ^= 0x55;
    repair_checksums(&mut corrupted);
    assert_ne!(frame[..last], corrupted[..last], "{what}");
}

#[test]
fn checksums_are_valid_for_all_headers_and_payloads() {
    for family in [FlowConfig::default(), v6()] {
        for protocol in [Protocol::Udp, Protocol::Tcp, Protocol::Icmp] {
            for (vlans, probe) in [(0, Some(7)), (2, Some(7)), (0, None)] {
                let tag: VlanTag = "100:5".parse().expect("a tag");
                let flows = FlowConfig {
                    protocol,
                    count: 50,
                    dscp: 46,
                    vlans: vec![tag; vlans],
                    ..family.clone()
                };
                let what = format!("{flows}, {vlans} tags, {probe:?}");
                for payload in [Payload::Counting, Payload::Random, Payload::Zeros] {
                    let config = GeneratorConfig {
                        probe,
                        payload,
                        ..config("uniform:min=120,max=1600", flows.clone())
                    };
                    for frame in generate(config, 2_000) {
                        assert_right(&frame.bytes, &what);
                    }
                }
            }
        }
    }
}

/// One in 65,536 consecutive sums yields a zero checksum, which UDP sends as all ones.
#[test]
fn a_checksum_of_zero_is_written_as_ones() {
    let flows = FlowConfig {
        count: 65_535,
        source_ports: "1-65535".parse().expect("ports"),
        ..FlowConfig::default()
    };
    let config = GeneratorConfig {
        probe: None,
        ..config("60", flows)
    };
    let frames = generate(config, 65_535);
    let mut sums = BTreeSet::new();
    for frame in &frames {
        sums.insert([frame.bytes[40], frame.bytes[41]]);
        assert_right(&frame.bytes, "UDP");
    }
    assert!(sums.contains(&[0xff, 0xff]) && !sums.contains(&[0, 0]));
}

#[test]
fn headers_have_the_requested_values() {
    let flows = FlowConfig {
        vlans: ["200", "100:5"]
            .map(|tag| tag.parse().expect("a tag"))
            .into(),
        source_mac: "02:11:22:33:44:55".parse().expect("an address"),
        destination_mac: MacAddress([0xff; 6]),
        ttl: 3,
        dscp: 46,
        source_ports: PortRange::one(4_000),
        destination_ports: PortRange::one(53),
        ..FlowConfig::default()
    };
    let frame = &generate(config("200", flows), 1)[0].bytes;
    assert_eq!(frame[..6], [0xff; 6]);
    assert_eq!(frame[6..12], [2, 0x11, 0x22, 0x33, 0x44, 0x55]);
    let tags = [0x88, 0xa8, 0, 200, 0x81, 0, 0xa0, 100, 8, 0];
    assert_eq!(frame[12..22], tags);
    let ip = &frame[22..];
    assert_eq!((ip[0], ip[1], ip[8], ip[9]), (0x45, 46 << 2, 3, 17));
    assert_eq!(ip[2..4], (200u16 - 22).to_be_bytes());
    assert_eq!(ip[12..20], [198, 18, 0, 1, 198, 19, 0, 1]);
    assert_eq!(ip[20..26], [0x0f, 0xa0, 0, 53, 0, (200 - 22 - 20) as u8]);
    // Payload bytes after the probe are consecutive numbers.
    assert_eq!(frame[22 + 28..][18..22], [18, 19, 20, 21]);
}

#[test]
fn flows_differ_and_take_turns() {
    let flows = FlowConfig {
        count: 30,
        sources: "10.0.0.0/29".parse().expect("a prefix"),
        destinations: "10.1.0.1-10.1.0.2".parse().expect("a range"),
        source_ports: "1000-1003".parse().expect("ports"),
        ..FlowConfig::default()
    };
    let frames = generate(config("60", flows.clone()), 90);
    let of = |frame: &Frame| frame.bytes[26..38].to_vec();
    let round: Vec<Vec<u8>> = frames[..30].iter().map(of).collect();
    assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 30);
    assert_eq!(frames[30..60].iter().map(of).collect::<Vec<_>>(), round);
    // The hosts of the prefix, without network and broadcast address.
    let hosts: BTreeSet<u8> = round.iter().map(|flow| flow[3]).collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    // 6 sources × 2 destinations × 4 ports are 48 flows, not 49.
    let refused = |count| {
        let flows = flows.clone();
        GeneratorFeed::new(config("60", FlowConfig { count, ..flows })).err()
    };
    assert_eq!(refused(48), None);
    let (count, possible) = (49, 48);
    let expected = GeneratorError::TooManyFlows { count, possible };
    assert_eq!(refused(49), Some(expected));
    assert_eq!(refused(0), Some(GeneratorError::FlowsRange { count: 0 }));
}

/// Each of 10 flows gets 10 % of 50,000 frames, to within five standard deviations (seed 1); fails
/// with probability 6e-7.
#[test]
fn random_flows_are_even() {
    let flows = FlowConfig {
        count: 10,
        order: FlowOrder::Random,
        ..FlowConfig::default()
    };
    let mut counts = [0u32; 10];
    for frame in generate(config("60", flows), 50_000).iter().take(50_000) {
        let port = u16::from_be_bytes([frame.bytes[34], frame.bytes[35]]);
        counts[usize::from(port - 49_152)] += 1;
    }
    let deviation = (50_000.0f64 * 0.1 * 0.9).sqrt();
    let is_even = |count: u32| (f64::from(count) - 5_000.0).abs() < 5.0 * deviation;
    assert!(counts.into_iter().all(is_even), "{counts:?}");
}

#[test]
fn probes_carry_sequence_and_time() {
    let frames = generate(config("60", FlowConfig::default()), 5_000);
    for (number, frame) in (0..).zip(&frames) {
        assert_eq!(frame.due, Nanos::from_nanos(number * 1_000));
        let probe = Probe::find(&frame.bytes[42..]).expect("a probe");
        assert_eq!((probe.stream, probe.sequence), (7, number));
        assert_eq!(probe.sent, START.wall.saturating_add(frame.due));
    }
}

#[test]
fn segments_have_consecutive_sequence_numbers() {
    let flows = FlowConfig {
        protocol: Protocol::Tcp,
        count: 2,
        tcp_flags: "ack".parse().expect("flags"),
        ..FlowConfig::default()
    };
    let frames = generate(config("154", flows), 6);
    let sequence = |frame: &Frame| u32::from_be_bytes(frame.bytes[38..42].try_into().expect("4"));
    let sequences: Vec<u32> = frames.iter().map(sequence).take(6).collect();
    assert_eq!(sequences, [0, 0, 100, 100, 200, 200]);
    assert!(frames.iter().all(|frame| frame.bytes[47] == 0x10));
}

#[test]
fn count_and_time_end_the_feed() {
    let limited = |count, time| GeneratorConfig {
        count,
        time,
        ..config("60", FlowConfig::default())
    };
    assert_eq!(generate(limited(Some(1_000), None), 5_000).len(), 1_000);
    // Frames 0 to 999 are due before 1 ms.
    let time = Some(Nanos::from_millis(1));
    assert_eq!(generate(limited(None, time), 5_000).len(), 1_000);
    assert_eq!(generate(limited(Some(10), time), 5_000).len(), 10);
    assert_eq!(generate(limited(Some(0), None), 5_000).len(), 0);
    let mut feed = GeneratorFeed::new(limited(Some(100), None)).expect("a valid configuration");
    assert_eq!(feed.status().fraction, Some(0.0));
    feed.feed(50, &mut |_| {}).expect("frames");
    assert_eq!(feed.status().fraction, Some(0.5));
}

#[test]
fn frames_without_a_rate_are_due_at_once() {
    let config = GeneratorConfig {
        rate: None,
        count: Some(100),
        ..config("imix", FlowConfig::default())
    };
    let frames = generate(config.clone(), 200);
    assert_eq!(frames.len(), 100);
    assert!(frames.iter().all(|frame| frame.due == Nanos::ZERO));
    assert!(
        !GeneratorFeed::new(config)
            .expect("a valid configuration")
            .is_paced()
    );
}

#[test]
fn the_seed_determines_all_frames() {
    let flows = FlowConfig {
        count: 100,
        order: FlowOrder::Random,
        ..FlowConfig::default()
    };
    let draw = |seed| {
        let config = GeneratorConfig {
            seed,
            payload: Payload::Random,
            arrivals: Arc::from(ARRIVALS.parse("poisson").expect("poisson")),
            ..config("uniform:min=60,max=1514", flows.clone())
        };
        generate(config, 500)
    };
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

fn assert_refused<T: FromStr>(texts: &str) {
    for text in texts.split(' ') {
        assert!(text.parse::<T>().is_err(), "{text}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let refused = |config| Some(GeneratorFeed::new(config).err()?.to_string());
    let short = refused(config("59", FlowConfig::default())).unwrap_or_default();
    assert!(short.contains("the minimum is 60"), "{short}");
    assert_eq!(refused(config("60", FlowConfig::default())), None);
    let without = GeneratorConfig {
        probe: None,
        ..config("42", FlowConfig::default())
    };
    assert_eq!(refused(without), None);
    let mixed = FlowConfig {
        destinations: AddressRange::one("::1".parse().expect("an address")),
        ..FlowConfig::default()
    };
    assert!(refused(config("60", mixed)).is_some());
    assert_refused::<AddressRange>("10.0.0.0/33 10.0.0.9-10.0.0.1 10.0.0.1-::1 host 1.2.3.4/x");
    assert_refused::<PortRange>(" 70000 9-8 a -1");
    assert_refused::<MacAddress>(
        "02:00:00:00:00 02:00:00:00:00:0g 02:00:00:00:00:01:02 +2:00:00:00:00:01",
    );
    assert_refused::<VlanTag>("4096 1:8 x");
    assert_refused::<Payload>("0x 0x123 0xzz text");
    assert_refused::<TcpFlags>("ack,xyz");
    let whole: AddressRange = "::/0".parse().expect("a prefix");
    assert!(whole.is_v6() && whole.count() > 1 << 100);
}

#[test]
fn frames_of_all_streams_are_ordered_by_time() {
    let stream = |probe, rate: &str, count| GeneratorConfig {
        rate: rate.parse().ok(),
        probe: Some(probe),
        count: Some(count),
        ..config("60", FlowConfig::default())
    };
    let configs = vec![stream(0, "1kpps", 4), stream(1, "2kpps", 8)];
    let mut feed = TogetherFeed::new(configs).expect("a feed");
    let sent = feed.sent();
    let mut frames = Vec::new();
    loop {
        let received = feed.feed(3, &mut |fed| {
            let probe = Probe::find(&fed.bytes[42..]).expect("a probe");
            frames.push((fed.due.as_nanos() / 1_000, probe.stream, probe.sequence));
        });
        if received.expect("generated").end {
            break;
        }
    }
    // At the same due time, the stream listed first precedes.
    let mut expected = Vec::new();
    for n in 0..4 {
        expected.push((n * 1_000, 0, n));
        expected.push((n * 1_000, 1, 2 * n));
        expected.push((n * 1_000 + 500, 1, 2 * n + 1));
    }
    assert_eq!(frames, expected);
    let sent: Vec<u64> = sent.iter().map(|n| n.load(Ordering::Relaxed)).collect();
    assert_eq!(sent, [4, 8]);
    assert_eq!(feed.status().fraction, Some(1.0));
    // Streams without a rate are refused, and so are none.
    let none = TogetherFeed::new(Vec::new()).err();
    assert_eq!(none, Some(GeneratorError::NoStream));
    let mut unpaced = stream(0, "1kpps", 1);
    unpaced.rate = None;
    assert!(TogetherFeed::new(vec![unpaced]).is_err());
}

#[test]
fn mac_addresses_take_turns() {
    let mut config = config("60", FlowConfig::default());
    config.count = Some(5);
    config.flows.source_mac = MacAddress([2, 0, 0, 0xff, 0xff, 0xfe]);
    config.flows.source_macs = 3;
    config.flows.destination_macs = 2;
    let frames = generate(config.clone(), 9);
    let macs = frames.iter().map(|frame| &frame.bytes[5..12]);
    let [one, two] = [0xfe, 0xff].map(|last| [0xff, 0xff, last]);
    let expected = [(2, one), (3, two), (2, [0; 3]), (3, one), (2, two)];
    let expected = expected.map(|(last, [a, b, c])| [last, 2, 0, 0, a, b, c]);
    assert_eq!(macs.collect::<Vec<_>>(), expected);
    config.flows.source_macs = 0;
    assert!(GeneratorFeed::new(config).is_err());
}
