//! Link specifications: printed as written, compared by text, and built into any number of links
//! that share only file contents.

use std::cell::RefCell;

use longwire_engine::models::mtu::Mtu;
use longwire_engine::models::order::OrderPolicy;
use longwire_engine::models::queue::QueueLimit;
use longwire_engine::{
    BitRate, DropReason, FrameContext, Hook, Link, LinkId, LinkSpec, Loader, Nanos, NoLoader,
    PARTS, Packets, Plugin, Probability, TakePiece, Verdict,
};
use longwire_testbed::support::rows;
use longwire_units::random::Stream;

use crate::common::{config, frame, spec, verdicts};

#[test]
fn a_specification_is_printed_as_it_was_written() {
    for line in [
        "",
        "rate=10000kbit delay=0.02s",
        "queue=derived loss=none delay=none",
        "loss=1% loss=ber:1e-9,entry rewrite=ip:ttl=1 rewrite=ip:dscp=46",
        "queue=64kb loss=1% loss=burst:start=1%,length=4 order=reorder",
        "loss=content:match=udp port 53 and ip.addr == 10.0.0.1 mtu=fragment:1.4e3",
    ] {
        assert_eq!(spec(line).to_string(), line);
        assert_eq!(spec(line).is_empty(), line.is_empty());
    }
    // Parts are in help order, losses in the specified order.
    let unordered = spec("loss=2% mtu=1500 loss=1% rate=1mbit");
    assert_eq!(unordered.to_string(), "rate=1mbit loss=2% loss=1% mtu=1500");
    let given = unordered.given().into_iter();
    let given: Vec<String> = given.map(|(name, text)| format!("{name} {text}")).collect();
    assert_eq!(given, ["rate 1mbit", "loss 2%", "loss 1%", "mtu 1500"]);
    let texts = |name| {
        PARTS
            .iter()
            .find(|part| part.name == name)
            .unwrap()
            .texts(&unordered)
    };
    assert_eq!(texts("loss").unwrap(), ["2%", "1%"]);
    assert_eq!(texts("delay"), None);
}

#[test]
fn clones_are_equal_and_other_texts_are_not() {
    let line = "rate=10mbit queue=codel loss=1% delay=20ms";
    let first = spec(line);
    assert_eq!(first.clone(), first);
    assert_eq!(spec(line), first);
    for other in [
        "",
        "rate=10mbit queue=codel loss=1%",
        "rate=10000kbit queue=codel loss=1% delay=20ms",
        "rate=10mbit queue=derived loss=1% delay=20ms",
        "rate=10mbit queue=codel loss=1% loss=1% delay=20ms",
        "rate=10mbit queue=codel loss=none delay=20ms",
    ] {
        assert_ne!(spec(other), first, "{other}");
    }
    // Unspecified differs from explicitly none.
    assert_ne!(spec("loss=none"), LinkSpec::new());
}

#[test]
fn typed_builders_equal_their_texts() {
    let rate = BitRate::from_bits_per_sec(10_000_000).unwrap();
    let queue = QueueLimit {
        packets: Some(Packets(100)),
        bytes: None,
    };
    let percent: Probability = "1%".parse().unwrap();
    let built = LinkSpec::new()
        .rate(rate)
        .queue(queue)
        .loss(percent)
        .loss(percent)
        .delay(Nanos::from_millis(20))
        .order(OrderPolicy::Reorder)
        .mtu(Mtu::Fragment(1_400));
    let text = "rate=10mbit queue=100p loss=packet:rate=1% loss=packet:rate=1% \
                delay=20ms order=reorder mtu=fragment:bytes=1400";
    assert_eq!(built.to_string(), text);
    assert_eq!(built, spec(text));
    let short = "rate=10mbit queue=100p loss=1% loss=1% delay=20ms order=reorder mtu=fragment:1400";
    let built = built.build(&NoLoader).unwrap();
    assert_eq!(built.describe(), config(short).describe());
    // For a part with a single value, the last value applies.
    let twice = LinkSpec::new()
        .delay(Nanos::ZERO)
        .delay(Nanos::from_millis(5));
    assert_eq!(twice, spec("delay=5ms"));
}

#[test]
fn wrong_lines_are_refused() {
    for [line, message] in rows(
        "
        loss=none loss=1%             | loss: unknown loss model 'none'; known: packet,
        loss=1% loss=none             | loss: unknown loss model 'none'; known: packet,
        loss=none loss=none           | loss: unknown loss model 'none'; known: packet,
        rewrite=none rewrite=ip:ttl=1 | rewrite: unknown rewrite model 'none'; known: ip,
        20ms                          | '20ms' has no name
        delay=                        | 'delay=' has no value
        delay=1ms dely=2ms            | unknown option 'dely'; options are rate, framing
        delay=1ms delay=2ms           | delay is given twice
        delay=1kg                     | delay:
        ",
    ) {
        let error = line.parse::<LinkSpec>().unwrap_err().to_string();
        assert!(error.starts_with(message), "{line}: {error}");
    }
}

/// Provides two files and a plugin, and logs reads and loads.
#[derive(Default)]
struct Recorder(RefCell<Vec<String>>);

impl Recorder {
    /// Returns and clears the log.
    fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

impl Loader for Recorder {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.0.borrow_mut().push(path.to_owned());
        match path {
            "delays" => take(b"5 1 9 2 6\n"),
            "losses" => take(b"time_s,loss_percent\n0,10\n0.1,60\n0.2,30\n"),
            _ => Err("no such file".to_owned()),
        }
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        self.0.borrow_mut().push(format!("{path} {hook:?}"));
        Ok(Box::new(ThirdLost(0)))
    }
}

/// Loses every third frame.
#[derive(Debug)]
struct ThirdLost(u64);

impl Plugin for ThirdLost {
    fn lose(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Option<DropReason> {
        self.0 += 1;
        self.0.is_multiple_of(3).then_some(DropReason::Loss)
    }
}

/// Alternates frames between links, to detect shared state.
#[test]
fn files_are_read_once_for_all_links_and_states_are_separate() {
    let loader = Recorder::default();
    let line = "rate=token-bucket:rate=1mbit,burst=4kb loss=trace:losses loss=burst:start=5%,length=3 \
                delay=per-packet:file=delays order=reorder";
    let spec = LinkSpec::parse(line, &loader).unwrap();
    assert_eq!(loader.take(), ["losses", "delays"]);
    let build = |_| Link::new(spec.build(&loader).unwrap(), 7, LinkId(3));
    let mut links: Vec<Link> = (0..100).map(build).collect();
    let mut alone = build(100);
    let expected = verdicts(&mut alone, 200, 3_000_000);
    assert!(expected.contains(&Verdict::Drop(DropReason::Loss)));
    for (number, expected) in (0..).zip(expected) {
        for link in &mut links {
            let verdict = link.offer(frame(number * 3_000_000, 1000), &[]);
            assert_eq!(verdict, expected, "frame {number}");
        }
    }
    let change = spec.clone().build_change(&loader).unwrap();
    assert!(change.loss.is_some() && change.queue.is_none());
    assert_eq!(loader.take(), [""; 0]);
}

#[test]
fn each_link_has_a_state_of_its_plugins() {
    let loader = Recorder::default();
    let spec = LinkSpec::parse("loss=plugin:third", &loader).unwrap();
    assert_eq!(spec.to_string(), "loss=plugin:third");
    // The plugin and its parameters are checked when parsed.
    assert_eq!(loader.take(), ["third Loss"]);
    let build = || Link::new(spec.build(&loader).unwrap(), 1, LinkId(0));
    let (mut first, mut second) = (build(), build());
    assert_eq!(loader.take(), ["third Loss", "third Loss"]);
    let is_lost = |verdict: &Verdict| matches!(verdict, Verdict::Drop(_));
    for link in [&mut first, &mut second] {
        let lost: Vec<bool> = verdicts(link, 6, 1).iter().map(is_lost).collect();
        assert_eq!(lost, [false, false, true, false, false, true]);
    }
    assert_eq!(
        spec.build(&NoLoader).unwrap_err().to_string(),
        "loss: plugin: file: third: plugins cannot be loaded in this context"
    );
    let error = spec.build_change(&NoLoader).unwrap_err();
    assert_eq!(error.option, "loss");
}
