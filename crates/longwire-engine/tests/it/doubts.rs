//! Values that are read without an error elsewhere, and are a slip here: what
//! is refused, and what is warned of.

use longwire_engine::{Doubt, LinkSpec, NoLoader};
use longwire_testbed::support::rows;

use crate::common::files::Files;
use crate::common::{config, refusal};

#[test]
fn slips_are_refused() {
    for [option, text, message] in rows(
        "
        loss    | correlated:rate=1%,correlation=100%      | it is below 100%
        reorder | gap:gap=5,rate=50%,correlation=100%      | it is below 100%
        delay   | steps:at=0s/20ms;10s/50ms;10s/60ms       | '10s/60ms': the step before has the same time
        delay   | steps:at=0s/20ms;10s/50ms;10s/60ms,change=linear | the same time
        rate    | steps:at=0s/20mbit;10s/50mbit;10s/60mbit | does not come after
        rate    | steps:at=0s/20mbit;                      | '' is not TIME/RATE
        framing | bytes:overhead=-5000                     | overhead=-5000 is outside -64..65535
        framing | bytes:overhead=-65                       | outside -64..65535
        delay   | 20ms,                                    | a comma with nothing after
        delay   | normal:mean=20ms,stddev=1ms,             | normal: 'mean=20ms,stddev=1ms,' has a comma
        delay   | normal:mean=20ms,,stddev=1ms             | a comma
        delay   | normal:,                                 | a comma
        queue   | 1b                                       | a queue of 1b holds no frame: the shortest of Ethernet has 60b
        queue   | tail-drop:packets=10p,bytes=59b          | holds no frame
        queue   | codel:limit-bytes=1b                     | holds no frame
        ",
    ) {
        let refused = refusal(option, text);
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

/// The pair that CellReplay's own emulator does in one.
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
        let doubt = spec.pair_doubt();
        let config = spec.build(&NoLoader).expect("no plugins");
        assert_eq!(config.doubts.last(), doubt.as_ref(), "{line}");
        doubt.map(|doubt| doubt.message)
    };
    let rate = "cellreplay:trains=light,opportunities=heavy";
    let pair = doubt(rate, "trace:file=light").unwrap();
    assert!(pair.contains("write base-delay=included"), "{pair}");
    assert_eq!(
        doubt("cellreplay:light,heavy", "trace:light,end=hold"),
        Some(pair)
    );
    let twice = doubt(&format!("{rate},base-delay=included"), "trace:file=light");
    assert!(twice.unwrap().contains("leave out the delay"));
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

/// The next values that mean something.
#[test]
fn what_is_no_slip_is_taken_without_a_word() {
    for (option, text) in [
        ("loss", "correlated:rate=1%,correlation=99%"),
        ("loss", "correlated:rate=50%,correlation=-100%"),
        ("reorder", "gap:gap=5,rate=50%,correlation=99.9%"),
        ("delay", "steps:at=0s/20ms;10s/50ms;10.000000001s/60ms"),
        ("framing", "bytes:overhead=-64"),
        ("framing", "bytes:overhead=-14"),
        ("queue", "60b"),
        ("queue", "codel:target=100ms,interval=100ms"),
        ("rate", "10mbit"),
        ("rate", "10Mbit"),
        ("rate", "10mbps"),
        ("rate", "10kbps"),
        ("mtu", "1e3"),
        ("mtu", "fragment:1.4e3"),
    ] {
        let config = config(&format!("{option}={text}"));
        assert_eq!(config.doubts, [], "{text}");
    }
    assert_eq!(config("mtu=1e3").mtu.bytes(), Some(1_000));
}

#[test]
fn doubts_are_noted_with_what_to_write_instead() {
    for (option, text, message) in [
        (
            "rate",
            "10Mbps",
            "10Mbps is 80mbit: as in tc, mbps is bytes a second; write 10mbit if bits are meant, \
             or 80mbit",
        ),
        (
            "rate",
            "fixed:rate=2.5Gbps",
            "2.5Gbps is 20gbit: as in tc, gbps is bytes",
        ),
        (
            "rate",
            "token-bucket:rate=10kbit,burst=64kb,peak=10Kbps",
            "10Kbps is 80kbit",
        ),
        ("rate", "steps:at=0s/10mbit;10s/5Mbps", "5Mbps is 40mbit"),
        (
            "queue",
            "codel:target=200ms",
            "target=200ms is above interval=100ms",
        ),
        (
            "queue",
            "fq-codel:target=20ms,interval=10ms",
            "target=20ms is above interval=10ms",
        ),
    ] {
        let config = config(&format!("{option}={text}"));
        let [
            Doubt {
                option: of,
                message: noted,
            },
        ] = config.doubts.as_slice()
        else {
            panic!("{text}: {:?}", config.doubts);
        };
        assert_eq!(*of, option);
        assert!(noted.contains(message), "{noted}");
    }
}
