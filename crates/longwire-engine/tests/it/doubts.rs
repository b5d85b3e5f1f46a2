//! Warnings about values that other tools accept but that are probably mistakes in Longwire.

use longwire_engine::{LinkSpec, NoLoader};
use longwire_testbed::support::rows;

use crate::common::config;
use crate::common::files::Files;

/// A delay trace that reads the trains file conflicts with the base delay of `cellreplay`.
#[test]
fn a_base_delay_from_the_trains_file_is_doubtful() {
    let trains = "0 20 0 1 3\n100 24 0 2 2\n250 20 0 0 5\n".to_owned();
    let files = [
        ("light", trains.clone()),
        ("other", trains),
        ("heavy", "1\n1\n3\n10\n".to_owned()),
    ];
    let doubt = |rate: &str, delay: &str| {
        let line = format!("rate={rate} delay={delay}");
        let spec = LinkSpec::parse(&line, &Files(&files));
        let spec = spec.unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut doubts = spec.joint_doubts();
        let config = spec.build(&NoLoader).expect("no plugins");
        assert!(config.doubts.ends_with(&doubts), "{line}");
        doubts.retain(|doubt| doubt.option == "rate");
        doubts.pop().map(|doubt| doubt.message)
    };
    let rate = "cellreplay:trains=light,opportunities=heavy";
    let pair = doubt(rate, "trace:file=light").unwrap();
    assert!(pair.contains("write base-delay=included"), "{pair}");
    assert_eq!(
        doubt("cellreplay:light,heavy", "trace:light,end=hold"),
        Some(pair)
    );
    let twice = doubt(&format!("{rate},base-delay=included"), "trace:file=light");
    assert!(twice.unwrap().contains("remove the delay"));
    for (rate, delay) in [
        (rate, "trace:file=other"),
        (rate, "20ms"),
        (rate, "per-packet:file=light"),
        ("mahimahi:file=heavy", "trace:file=light"),
        (
            "trace:light,time-column=1,time-unit=ms,rate-column=2,rate-unit=mbit",
            "trace:file=light",
        ),
    ] {
        assert_eq!(doubt(rate, delay), None, "{rate} {delay}");
    }
}

/// Returns the doubts about a link as text.
fn doubts(line: &str) -> Vec<String> {
    let doubts = config(line).doubts.into_iter();
    doubts
        .map(|doubt| format!("{}: {}", doubt.option, doubt.message))
        .collect()
}

/// Sensible links that differ little from doubtful ones.
#[test]
fn plausible_links_are_accepted_silently() {
    for line in [
        "rate=10mbit loss=correlated:rate=1%,correlation=99%",
        "rate=10mbit loss=correlated:rate=50%,correlation=-100%",
        "delay=1ms reorder=gap:gap=5,rate=50%,correlation=99.9%",
        "rate=10mbit delay=steps:at=0s/20ms;10s/50ms;10.000000001s/60ms order=reorder",
        "rate=10mbit framing=bytes:overhead=-64",
        "rate=10mbit framing=bytes:overhead=-14",
        "rate=10mbit queue=60b",
        "rate=10mbit queue=codel:target=100ms,interval=100ms",
        "rate=10mbit",
        "rate=10Mbit",
        "rate=10MBps",
        "rate=80kbit",
        "rate=10mbit mtu=1e3",
        "rate=10mbit mtu=fragment:1.4e3",
        "queue=codel rate=10mbit",
        "queue=derived",
        "framing=none",
        "framing=atm rate=10mbit",
        "reorder=hold:rate=1%,time=5ms",
        "reorder=gap:gap=5 delay=5ms",
        "reorder=gap:rate=25% delay=5ms",
        "delay=normal:mean=20ms,stddev=20ms order=reorder",
        "delay=20ms",
    ] {
        assert_eq!(doubts(line), Vec::<String>::new(), "{line}");
    }
    assert_eq!(config("mtu=1e3").mtu.bytes(), Some(1_000));
}

#[test]
fn doubts_are_noted_with_what_to_write_instead() {
    for [option, text, message] in rows(
        "
        rate  | 10Mbps | 10Mbps is 80mbit: as in tc, bps means bytes per second; write 10mbit for bits, or 80mbit for bytes
        rate  | 100mbps | 100mbps is 800mbit: as in tc, bps means bytes per second; write 100mbit for bits, or 800mbit for bytes
        rate  | fixed:rate=2.5Gbps | 2.5Gbps is 20gbit: as in tc, bps means bytes per second
        rate  | token-bucket:rate=10kbit,burst=64kb,peak=10Kbps | 10Kbps is 80kbit
        rate  | steps:at=0s/10mbit;10s/5Mbps | 5Mbps is 40mbit
        queue | codel:target=200ms | target=200ms is above interval=100ms
        queue | fq-codel:target=20ms,interval=10ms | target=20ms is above interval=10ms
        ",
    ) {
        let rate = if option == "rate" { "" } else { "rate=10mbit" };
        let config = config(&format!("{rate} {option}={text}"));
        let [doubt] = config.doubts.as_slice() else {
            panic!("{text}: {:?}", config.doubts);
        };
        assert_eq!(doubt.option, option);
        assert!(doubt.message.contains(message), "{}", doubt.message);
    }
}

#[test]
fn parts_without_an_effect_are_doubtful() {
    for [line, said] in rows(
        "
        queue=codel                     | queue: codel has no effect without a rate
        queue=10p delay=20ms            | frames in flight do not count
        queue=10p rate=unlimited        | add a rate
        framing=atm                     | framing: atm has no effect without a rate
        reorder=gap:gap=5,rate=25%      | reorder: frames cannot be sent ahead without a delay
        reorder=gap:gap=5 delay=0ms     | add a delay
        reorder=gap:rate=100% delay=5ms | all frames are sent ahead
        reorder=gap delay=5ms           | all frames are sent ahead
        delay=normal:mean=20ms,stddev=30ms order=reorder | stddev=30ms is above mean=20ms
        ",
    ) {
        let doubts = doubts(line);
        assert_eq!(doubts.len(), 1, "{line}: {doubts:?}");
        assert!(doubts[0].contains(said), "{line}: {doubts:?}");
    }
}

/// Compares the mean of in-order jitter with a computation. With a uniform delay of 0.5 s to 2.5 s
/// at 1,000 frames/s, the release is the maximum of delay minus elapsed time over the last frames,
/// close to 2.5 s.
#[test]
fn the_mean_of_ordered_jitter_is_reported() {
    let message = |delay: &str| {
        let doubts = config(&format!("delay={delay}")).doubts;
        assert_eq!(doubts.len(), 1, "{delay}: {doubts:?}");
        doubts[0].message.clone()
    };
    let said = message("uniform:min=500ms,max=2500ms");
    let mean = said.split("the mean is ").nth(1).expect("a mean");
    let mean: longwire_engine::Nanos = mean.split(',').next().expect("it").parse().expect("a time");
    // The probability that all frames are more than a gap below 2.5 s is the product over k of 1 -
    // (gap - k ms) / 2 s.
    let mut expected = 2.5;
    for step in 0..2_000 {
        let gap = f64::from(step) * 1e-3;
        let all = (0..step).map(|k| 1.0 - (gap - f64::from(k) * 1e-3) / 2.0);
        expected -= all.product::<f64>() * 1e-3;
    }
    let error = mean.as_secs_f64() - expected;
    assert!(error.abs() < 0.01, "{said} {expected}");
    assert!(
        said.contains("not 1.5s") || said.contains("not 1.49s"),
        "{said}"
    );
}
