//! Guaranteed minimum time from arrival to release. `composition.rs` checks that no frame on any
//! link is faster.

use crate::common::any_spec::Examples;
use crate::common::{config, frame, link};
use longwire_engine::{
    FrameContext, Hook, Link, LinkId, LinkSpec, Loader, Nanos, Plugin, PluginHints, TakePiece,
    Verdict,
};
use longwire_testbed::support::rows;
use longwire_units::random::Stream;

#[test]
fn each_model_guarantees_its_lower_bound() {
    let table = "
        rate=10mbit                                            | 0ns
        delay=20ms                                             | 20ms
        delay=20ms rate=1kbit queue=codel                      | 20ms
        delay=uniform:min=2ms,max=9ms order=reorder            | 2ms
        delay=uniform:min=2ms,max=9ms,correlation=90%          | 2ms
        delay=normal:mean=20ms,stddev=5ms                      | 0ns
        delay=normal:mean=20ms,stddev=5ms,min=3ms              | 3ms
        delay=exponential:mean=9ms,min=7ms                     | 7ms
        delay=lognormal:mean=1ms,stddev=1ms,location=6ms       | 6001085ns
        delay=pareto:scale=4ms                                 | 4ms
        delay=sinusoid:mean=5ms,amplitude=3ms,period=1s        | 2ms
        delay=steps:at=0s/4ms;1s/1ms,end=loop              | 1ms
        delay=steps:at=0s/4ms;1s/1ms,end=stop              | 0ns
        delay=steps:at=0s/4ms;1s/1ms,end=loop,change=linear| 1ms
        delay=20ms reorder=hold:10%,5ms                        | 20ms
        delay=20ms reorder=gap:gap=3                           | 0ns
        delay=20ms duplicate=50% mtu=fragment:600 loss=1%      | 20ms
    ";
    for [line, expected] in rows(table) {
        let expected: Nanos = expected.parse().expect(expected);
        assert_eq!(config(line).lookahead(), expected, "{line}");
        assert_eq!(link(line, 1).poll_slack(), expected, "{line}");
    }
    for (delay, expected) in [("per-packet", "19.9ms"), ("samples", "19.9ms")] {
        let file = format!("delay={delay}:file=delay.{delay}.file");
        let spec = LinkSpec::parse(&file, &Examples).expect(delay);
        let expected: Nanos = expected.parse().expect(expected);
        let config = spec.build(&Examples).expect(delay);
        assert_eq!(config.lookahead(), expected, "{delay}");
    }
}

/// Provides plugins that declare a bound of 2 ms and violate it for every other frame.
struct Careless;

impl Loader for Careless {
    fn read(&self, _: &str, _: TakePiece<'_>) -> Result<(), String> {
        Err("no files".to_owned())
    }

    fn plugin(&self, _: &str, _: Hook, _: &[(String, String)]) -> Result<Box<dyn Plugin>, String> {
        Ok(Box::new(Alternating(0)))
    }
}

#[derive(Debug)]
struct Alternating(u64);

impl Plugin for Alternating {
    fn hints(&self) -> PluginHints {
        PluginHints {
            delay_least: Nanos::from_millis(2),
            ..PluginHints::default()
        }
    }

    fn delay(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.0 += 1;
        Nanos::from_millis(self.0 % 2 * 3)
    }
}

#[test]
fn a_plugin_that_breaks_its_word_does_not_break_the_bound() {
    let spec = LinkSpec::parse("delay=plugin:file=any.so", &Careless).expect("a spec");
    let config = spec.build(&Careless).expect("a link");
    assert_eq!(config.lookahead(), Nanos::from_millis(2));
    let mut link = Link::new(config, 1, LinkId(0));
    let mut delays = Vec::new();
    for number in 0..4 {
        let at = number * 1_000_000_000;
        let Verdict::Deliver(delivery) = link.offer(frame(at, 100), &[]) else {
            panic!("not delivered");
        };
        delays.push((delivery.release.as_nanos() - at) / 1_000_000);
    }
    assert_eq!(delays, [3, 2, 3, 2]);
}
