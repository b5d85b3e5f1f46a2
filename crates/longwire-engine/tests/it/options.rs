//! Options of one direction as text: parsed, overlaid and printed; default and undersized queues;
//! the MTU.

use crate::common::{config, frame, link, spec};
use longwire_engine::models::queue::QueueLimit;
use longwire_engine::{BitRate, Bytes, DropReason, LinkConfig, Nanos, Packets, Verdict};

/// Returns all parts of the link as one line.
fn described(config: &LinkConfig) -> String {
    let parts = config.describe().into_iter();
    let words: Vec<String> = parts.map(|(name, text)| format!("{name}={text}")).collect();
    words.join(" ")
}

#[test]
fn nothing_given_is_a_wire() {
    assert_eq!(
        described(&config("")),
        "rate=unlimited framing=none queue=unlimited loss=none corrupt=none duplicate=none \
         delay=0ns reorder=none order=in-order mtu=none router=none rewrite=none"
    );
}

#[test]
fn descriptions_round_trip() {
    let links = [
        "",
        "rate=10mbit delay=20ms mtu=1500",
        "rate=1.5gbit framing=bytes:overhead=18,cell=48,cell-header=5 queue=100p,64kb loss=0.1% \
         loss=ber:1e-9,entry delay=exponential:20ms,10ms order=reorder mtu=9000",
        // Long and fast enough for the derived queue to reach its maximum.
        "rate=10tbit delay=24h queue=unlimited",
        "rate=10tbit delay=24h",
    ];
    for line in links {
        let first = described(&config(line));
        assert_eq!(described(&config(&first)), first);
    }
    let text = described(&config(links[2]));
    let losses = " loss=packet:rate=0.1% loss=ber:rate=1e-9,at=entry ";
    assert!(text.contains(losses), "{text}");
}

#[test]
fn absence_can_be_written() {
    let config = config("rate=unlimited queue=unlimited loss=none mtu=none");
    assert!(config.rate.is_unlimited());
    assert_eq!(config.mtu.bytes(), None);
    assert_eq!(config.queue_limit(), QueueLimit::UNLIMITED);
    assert!(config.loss.is_empty());
}

#[test]
fn one_direction_is_laid_over_both() {
    let both = spec("rate=10mbit delay=20ms loss=1% loss=ber:1e-9");
    for (over, expected) in [
        (
            "delay=5ms mtu=1500",
            "rate=10mbit loss=1% loss=ber:1e-9 delay=5ms mtu=1500",
        ),
        // A list replaces the whole previous list.
        ("loss=2%", "rate=10mbit loss=2% delay=20ms"),
        ("loss=none", "rate=10mbit loss=none delay=20ms"),
        ("", "rate=10mbit loss=1% loss=ber:1e-9 delay=20ms"),
    ] {
        assert_eq!(both.overlay(&spec(over)), spec(expected), "{over}");
    }
    assert_eq!(spec("loss=none").overlay(&both), both);
}

#[test]
fn the_default_queue_follows_its_rule() {
    let limit = |line| config(line).queue_limit();
    let bytes = |bytes| QueueLimit {
        packets: None,
        bytes: Some(Bytes(bytes)),
    };
    // At least 100 ms, or two delays if longer, and at least 16 full frames.
    assert_eq!(limit("rate=10mbit"), bytes(125_000));
    assert_eq!(limit("rate=10mbit delay=200ms"), bytes(500_000));
    assert_eq!(limit("rate=64kbit delay=1ms"), bytes(16 * 1514));
    assert_eq!(limit("rate=10tbit delay=24h"), bytes(1 << 40));
    assert_eq!(limit("delay=20ms"), QueueLimit::UNLIMITED);
    // For a varying delay, the mean applies.
    let uniform = "rate=10mbit delay=uniform:100ms,300ms";
    assert_eq!(limit(uniform), bytes(500_000));
}

#[test]
fn an_undersized_queue_gets_a_sufficient_size() {
    let would_do = |queue: &str| {
        let config = config(&format!("rate=10mbit delay=20ms queue={queue}"));
        config.queue_undersized().map(|limit| limit.to_string())
    };
    // 10 Mbit/s for 40 ms: 50,000 bytes, or 34 full frames.
    assert_eq!(would_do("33p").as_deref(), Some("34p"));
    assert_eq!(would_do("34p"), None);
    assert_eq!(would_do("49999b").as_deref(), Some("50000b"));
    assert_eq!(would_do("50000b"), None);
    assert_eq!(would_do("unlimited"), None);
    let both = "tail-drop:packets=1000p,bytes=50000b";
    assert_eq!(would_do("1000p,1kb").as_deref(), Some(both));
    let rate = BitRate::from_bits_per_sec(10_000_000);
    let needed = QueueLimit::needed(rate, Nanos::from_millis(20));
    assert_eq!(needed, Some((Packets(34), Bytes(50_000))));
    // At least two full frames; no limit without a rate.
    let least = QueueLimit::needed(rate, Nanos::ZERO);
    assert_eq!(least, Some((Packets(2), Bytes(3_028))));
    assert_eq!(QueueLimit::needed(None, Nanos::from_secs(1)), None);
    // The default limit does not trigger the warning about small queues.
    for delay in ["0", "1ms", "20ms", "3s"] {
        for rate in ["1bit", "64kbit", "10mbit", "100gbit"] {
            assert_eq!(
                config(&format!("rate={rate} delay={delay}")).queue_undersized(),
                None
            );
        }
    }
}

/// Returns a MAC header with these VLAN tags.
fn tagged(tags: &[[u8; 2]]) -> Vec<u8> {
    let mut header = vec![0u8; 12];
    for tag in tags {
        header.extend_from_slice(tag);
        header.extend_from_slice(&[0, 1]);
    }
    header.extend_from_slice(&[0x08, 0x00]);
    header
}

#[test]
fn the_mtu_counts_what_is_behind_the_mac_header_and_its_tags() {
    const CUSTOMER: [u8; 2] = [0x81, 0x00];
    const SERVICE: [u8; 2] = [0x88, 0xa8];
    let mut link = link("mtu=1500", 1);
    let mut fits = |len, header: &[u8]| match link.offer(frame(0, len), header) {
        Verdict::Deliver(_) => true,
        verdict => {
            assert_eq!(verdict, Verdict::Drop(DropReason::Mtu));
            false
        }
    };
    for (tags, longest) in [
        (&[][..], 1514),
        (&[CUSTOMER][..], 1518),
        (&[SERVICE, CUSTOMER][..], 1522),
        (&[[0x91, 0x00], CUSTOMER][..], 1522),
        // Tags beyond the depth that providers stack count as payload.
        (&[SERVICE; 6][..], 1530),
    ] {
        assert!(fits(longest, &tagged(tags)), "{tags:?}");
        assert!(!fits(longest + 1, &tagged(tags)), "{tags:?}");
    }
    // A truncated header counts as untagged and does not panic.
    for cut in 0..=16 {
        let header = &tagged(&[CUSTOMER, CUSTOMER])[..cut];
        assert!(fits(1514, header));
        assert_eq!(fits(1515, header), cut >= 14, "{cut}");
        assert!(!fits(u32::MAX, header));
    }
    assert!(fits(0, &[]));
}
