use longwire_runtime::counters::{NamedCounts, Traffic};
use longwire_runtime::deciding::PortReport;
use longwire_runtime::{LinkReport, Pauses, RunReport, Spread};

use super::*;

fn report() -> RunReport {
    let link = |name: &str, late: u64, p99: f64| LinkReport {
        name: name.to_owned(),
        traffic: Traffic {
            packets_in: 100,
            packets_out: 97,
            ..Traffic::default()
        },
        drops: NamedCounts::from([("loss", 2), ("queue_full", 1)]),
        artifacts: NamedCounts::from([("late", late), ("memory", 0)]),
        lateness_us: Spread {
            p50: 1.5,
            p99,
            max: 900.0,
            ..Spread::default()
        },
        lateness_own_us: Spread {
            p50: 1.5,
            p99,
            max: 90.0,
            ..Spread::default()
        },
        ..LinkReport::default()
    };
    RunReport {
        links: vec![link("link.up", 0, 12.0), link("link.down", 3, 49.999)],
        pauses: Pauses {
            count: 2,
            max_us: 1_500.0,
            total_us: 2_000.0,
        },
        ..RunReport::default()
    }
}

fn parsed(text: &str) -> Requirement {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn unmet_of(report: &RunReport, text: &str) -> Vec<String> {
    parsed(text).unmet(report, Grade::Faithful)
}

fn unmet(text: &str) -> Vec<String> {
    unmet_of(&report(), text)
}

fn refusal(text: &str) -> String {
    match text.parse::<Requirement>() {
        Ok(parsed) => panic!("{text} was read as {parsed:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn comparisons_hold_as_written() {
    for (text, holds) in [
        ("packets_out<98", true),
        ("packets_out<97", false),
        ("packets_out<=97", true),
        ("packets_out=97", true),
        ("packets_out=98", false),
        ("packets_out>=97", true),
        ("packets_out>97", false),
        ("packets_out>96", true),
        ("drops=3", true),
        ("drops.loss=2", true),
        ("drops.queue_full>1", false),
        ("up.artifacts=0", true),
        ("artifacts.memory=0", true),
        ("lateness.p50<=1.5us", true),
        ("lateness.p50<1500ns", false),
    ] {
        assert_eq!(unmet(text).is_empty(), holds, "{text}");
    }
}

#[test]
fn an_unmet_clause_names_link_and_value() {
    assert_eq!(unmet("artifacts=0"), ["artifacts=0: link.down had 3"]);
    assert_eq!(
        unmet("lateness.p99<10us"),
        [
            "lateness.p99<10us: link.up had 12us",
            "lateness.p99<10us: link.down had 49.999us"
        ]
    );
}

#[test]
fn all_clauses_must_hold() {
    assert!(unmet("lateness.p99<50us, up.artifacts=0").is_empty());
    assert_eq!(unmet("lateness.p99<50us,artifacts=0,drops=0").len(), 3);
}

#[test]
fn a_direction_selects_a_link() {
    assert!(unmet("up.lateness.p99<13us").is_empty());
    assert!(unmet("ab.lateness.p99<13us").is_empty());
    assert_eq!(unmet("down.lateness.p99<13us").len(), 1);
    assert_eq!(unmet("ba.lateness.p99<13us").len(), 1);
}

#[test]
fn a_clause_about_a_missing_link_is_unmet() {
    let mut one_way = report();
    one_way.links.truncate(1);
    assert_eq!(
        unmet_of(&one_way, "down.artifacts=0"),
        ["down.artifacts=0: no link named 'down'; there were link.up"]
    );
}

/// Returns a network report with links of these names.
fn network(names: &[&str]) -> RunReport {
    let traffic = Traffic {
        packets_in: 10,
        ..Traffic::default()
    };
    let links = names.iter().map(|name| LinkReport {
        name: (*name).to_owned(),
        traffic,
        drops: [("loss", u64::from(name.ends_with("down")))].into(),
        lateness_us: Spread::UNMEASURED,
        ..LinkReport::default()
    });
    let far = PortReport {
        name: "far".to_owned(),
        traffic,
        ..PortReport::default()
    };
    RunReport {
        links: links.collect(),
        ports: vec![far],
        ..RunReport::default()
    }
}

#[test]
fn a_single_link_has_the_names_of_the_control_api() {
    let mut run = network(&["link.up", "link.down"]);
    run.ports.clear();
    let unmet = |text| unmet_of(&run, text);
    assert_eq!(unmet("link.up.drops=0,ab.drops=0"), [""; 0]);
    assert_eq!(
        unmet("link.down.drops=0"),
        ["link.down.drops=0: link.down had 1"]
    );
    assert_eq!(unmet("link.drops=0"), ["link.drops=0: link.down had 1"]);
    assert!(unmet("link.sideways.drops=0")[0].contains("no link named"));
}

#[test]
fn links_of_a_network_are_named_with_their_direction() {
    let network = network(&["ac.up", "ac.down", "b.c.up", "b.c.down"]);
    let unmet = |text| unmet_of(&network, text);
    assert!(unmet("ac.up.drops=0,ac.up.drops.loss=0,b.c.up.drops=0").is_empty());
    assert_eq!(unmet("ac.down.drops=0"), ["ac.down.drops=0: ac.down had 1"]);
    assert_eq!(unmet("b.c.down.drops.loss<5%").len(), 1);
    // Ports have no drops, so the clause applies only to links.
    assert_eq!(
        unmet("drops.loss>0"),
        ["drops.loss>0: ac.up had 0", "drops.loss>0: b.c.up had 0"]
    );
    assert_eq!(unmet("duplicated>0").len(), 4, "links");
    assert!(unmet("far.drops=0")[0].contains("name a link"));
    // A link's name selects both directions.
    assert_eq!(unmet("ac.drops=0"), ["ac.drops=0: ac.down had 1"]);
    assert_eq!(
        unmet("down.drops=0"),
        [
            "down.drops=0: no link named 'down'; there were ac.up, ac.down, b.c.up, \
          b.c.down, far"
        ]
    );
    assert_eq!(
        unmet("ac.dwn.drops=0"),
        ["ac.dwn.drops=0: no link named 'ac.dwn'; did you mean 'ac.down'?"]
    );
}

#[test]
fn unmeetable_conditions_are_found_before_the_run() {
    let unmeetable = |text: &str, kind| {
        let requirement: Requirement = text.parse().expect("it is right");
        requirement.unmeetable(&["far"], &["ac.up", "ac.down"], kind)
    };
    let fixed = RunKind {
        is_fixed: true,
        ..RunKind::default()
    };
    let all = RunKind {
        is_fixed: true,
        replays: true,
        receives: true,
    };
    for text in [
        "down.drops=0",
        "drops=0",
        "stops.count=0",
        "far.packets_in>0",
        "far.lateness.p99<1ms",
    ] {
        assert_eq!(unmeetable(text, fixed), Vec::<String>::new(), "{text}");
    }
    for (text, why) in [
        (
            "ac.dwn.drops=0",
            "no link named 'ac.dwn'; did you mean 'ac.down'?",
        ),
        ("far.drops=0", "ports count no drops"),
        ("gap.p99<1us", "gaps are measured for replays"),
        ("ac.up.sent.p99<1us", "send stamps are taken for replays"),
        ("received.lost=0", "no receiver"),
    ] {
        let found = unmeetable(text, fixed);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("{text}: {why}")), "{found:?}");
        let is_of_place = text.starts_with("ac.dwn");
        assert_eq!(
            unmeetable(text, all).len(),
            usize::from(is_of_place),
            "{text}"
        );
    }
    // Clients may add this link later.
    assert!(unmeetable("ac.dwn.drops=0", RunKind::default()).is_empty());
}

#[test]
fn up_and_down_are_the_directions_of_the_only_link() {
    let unmet = unmet_of(&network(&["link.up", "link.down"]), "up.drops=0,ba.drops=0");
    assert_eq!(unmet, ["ba.drops=0: link.down had 1"]);
}

#[test]
fn artifacts_and_lateness_are_measured_at_ports() {
    let network = network(&["link.up"]);
    let unmet = |text| unmet_of(&network, text);
    assert!(unmet("lateness.p99<1ms,far.lateness.p99<1ms").is_empty());
    for text in [
        "up.lateness.p99<1ms",
        "up.artifacts=0",
        "up.artifacts-lost<1%",
    ] {
        let named = unmet(text);
        assert!(
            named.len() == 1 && named[0].contains("counted at ports"),
            "{named:?}"
        );
    }
    assert!(unmet("up.artifacts.late=0").is_empty());
    assert!(unmet("gap.p99<1ns")[0].contains("no gaps"));
}

#[test]
fn a_run_without_frames_does_not_meet_the_recommendation() {
    let idle = RunReport {
        links: vec![LinkReport {
            name: "link.up".to_owned(),
            ..LinkReport::default()
        }],
        ..RunReport::default()
    };
    assert_eq!(
        unmet_of(&idle, RECOMMENDED),
        ["packets_in>0: link.up had 0"]
    );
}

#[test]
fn a_grade_is_met_by_a_better_run() {
    for (wanted, met) in [
        ("faithful", [false, false, false, true]),
        ("nearly-faithful", [false, false, true, true]),
        ("no-frames", [false, true, false, false]),
        ("not-faithful", [true, false, false, false]),
    ] {
        let requirement = parsed(wanted);
        let found = Grade::ALL.map(|grade| requirement.unmet(&report(), grade).is_empty());
        assert_eq!(found, met, "{wanted}");
    }
    let requirement = parsed("faithful,drops=3");
    assert_eq!(
        requirement.unmet(&report(), Grade::NearlyFaithful),
        ["faithful: the run was nearly-faithful"]
    );
    assert_eq!(
        requirement.unmet(&report(), Grade::NoFrames),
        ["faithful: the run had no frames"]
    );
}

#[test]
fn counts_are_compared_with_shares_of_the_frames() {
    for (text, holds) in [
        ("artifacts<3.1%", true),
        ("artifacts<3%", false),
        ("artifacts<=3%", true),
        ("up.artifacts=0%", true),
        ("artifacts.late<5%", true),
        ("artifacts.memory<0.1%", true),
        ("drops.loss=2%", true),
        ("drops<2.9%", false),
    ] {
        assert_eq!(unmet(text).is_empty(), holds, "{text}");
    }
    assert_eq!(
        unmet("artifacts<0.1%"),
        ["artifacts<0.1%: link.down had 3.00%, 3 of 100 frames"]
    );
}

#[test]
fn shares_count_frames_that_a_port_lost() {
    for (packets_in, packets_out, artifacts, holds) in [
        (0, 100, ("late", 49), true),
        (40, 40, ("ring_full", 60), false),
        (0, 0, ("send_failed", 1), false),
        (0, 0, ("late", 0), true),
    ] {
        let link = LinkReport {
            traffic: Traffic {
                packets_in,
                packets_out,
                ..Traffic::default()
            },
            artifacts: [artifacts].into(),
            ..LinkReport::default()
        };
        let report = RunReport {
            links: vec![link],
            ..RunReport::default()
        };
        let unmet = unmet_of(&report, "artifacts<50%");
        assert_eq!(unmet.is_empty(), holds, "{artifacts:?}: {unmet:?}");
    }
}

#[test]
fn artifacts_own_excludes_those_of_the_machine() {
    let mut report = report();
    for link in &mut report.links {
        link.artifacts.insert("late_paused".into(), 10);
        link.artifacts.insert("late_start".into(), 1);
    }
    let unmet = |text| unmet_of(&report, text);
    assert_eq!(unmet("artifacts=0").len(), 2);
    assert_eq!(
        unmet("artifacts-own=0"),
        ["artifacts-own=0: link.down had 3"]
    );
    assert!(unmet("up.artifacts-own<0.1%").is_empty());
    report.links[0].artifacts.insert("memory".into(), 2);
    let unmet = |text| unmet_of(&report, text);
    assert_eq!(
        unmet("artifacts-lost=0"),
        ["artifacts-lost=0: link.up had 2"]
    );
    assert_eq!(unmet("artifacts.late_paused=0").len(), 2);
    assert_eq!(unmet("lateness.max<100us").len(), 2);
    assert!(unmet("lateness-own.max<100us").is_empty());
}

#[test]
fn pauses_are_of_the_run() {
    assert!(unmet("pauses.max<2ms,pauses.total<=2ms,pauses.count<3,stops.count=0").is_empty());
    assert_eq!(
        unmet("pauses.max<1ms"),
        ["pauses.max<1ms: the run had 1.5ms"]
    );
}

#[test]
fn every_refusal_says_what_is_wrong() {
    for (text, said) in [
        ("lateness.p98<5us", "did you mean 'lateness.p99'"),
        ("drops.lost=0", "did you mean 'drops.loss'"),
        ("faithfull", "did you mean 'faithful'"),
        ("Nearly-Faithful", "did you mean 'nearly-faithful'"),
        ("sideways.jitter=0", "unknown name"),
        ("ac.down.drops.lost=0", "did you mean 'drops.loss'"),
        ("lateness<5us", "lateness.p50"),
        ("artifacts.lat=0", "did you mean 'artifacts.late'"),
        ("lateness.p99<50", "no unit"),
        ("lateness.p99<-1us", "negative"),
        ("artifacts=0us", "not a number"),
        ("artifacts=", "not a number"),
        ("artifacts", "not a comparison"),
        ("", "empty requirement"),
        (" , ", "empty requirement"),
        ("lateness.p99<1%", "only artifacts and drops"),
        ("packets_out>50%", "only artifacts and drops"),
        ("artifacts<x%", "0.1%"),
        ("artifacts<-1%", "not a share"),
        ("artifacts<nan%", "not a share"),
        ("artifacts=0,", "remove the extra comma"),
        (",artifacts=0", "remove the extra comma"),
        ("artifacts=0,,drops=0", "remove the extra comma"),
        ("up.pauses.max<1ms", "remove 'up.'"),
        ("pauses.longest<1ms", "pauses.max"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(said), "{text}: {refusal}");
    }
    for (text, refused) in [
        (
            "jitter<5us",
            "unknown name 'jitter'; `longwire exec --help` lists all names",
        ),
        (
            "loss<5%",
            "unknown name 'loss'; did you mean 'drops.loss', 'drops.entry_loss' or \
             'artifacts-lost'? `longwire exec --help` lists all names",
        ),
        (
            "artifacts-own<0.1",
            "'artifacts-own<0.1': '0.1' is not a count; write a count such as 5, or a share such as 0.1%",
        ),
    ] {
        assert_eq!(refusal(text), refused);
    }
}
