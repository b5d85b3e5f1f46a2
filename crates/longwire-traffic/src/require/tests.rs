use longwire_runtime::fabric::PortReport;
use longwire_runtime::ledger::{NamedCounts, Traffic};
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

fn unmet(text: &str) -> Vec<String> {
    let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    requirement.unmet(&report(), Grade::Faithful)
}

fn refusal(text: &str) -> String {
    match text.parse::<Requirement>() {
        Ok(parsed) => panic!("{text} was read as {parsed:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_comparison_holds_where_it_should() {
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
fn a_failed_clause_names_itself_the_link_and_what_it_had() {
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
fn clauses_are_joined_by_commas_and_must_all_hold() {
    assert!(unmet("lateness.p99<50us, up.artifacts=0").is_empty());
    assert_eq!(unmet("lateness.p99<50us,artifacts=0,drops=0").len(), 3);
}

#[test]
fn a_links_name_narrows_a_clause_and_both_namings_are_known() {
    assert!(unmet("up.lateness.p99<13us").is_empty());
    assert!(unmet("ab.lateness.p99<13us").is_empty());
    assert_eq!(unmet("down.lateness.p99<13us").len(), 1);
    assert_eq!(unmet("ba.lateness.p99<13us").len(), 1);
}

#[test]
fn a_run_without_the_link_does_not_meet_what_is_asked_of_it() {
    let mut one_way = report();
    one_way.links.truncate(1);
    let requirement: Requirement = "down.artifacts=0".parse().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        requirement.unmet(&one_way, Grade::Faithful),
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
fn a_single_link_has_its_names_of_the_control_api() {
    let mut run = network(&["link.up", "link.down"]);
    run.ports.clear();
    let unmet = |text: &str| {
        let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        requirement.unmet(&run, Grade::Faithful)
    };
    assert_eq!(unmet("link.up.drops=0,ab.drops=0"), [""; 0]);
    assert_eq!(
        unmet("link.down.drops=0"),
        ["link.down.drops=0: link.down had 1"]
    );
    assert_eq!(unmet("link.drops=0"), ["link.drops=0: link.down had 1"]);
    assert!(unmet("link.sideways.drops=0")[0].contains("no link named"));
}

#[test]
fn a_networks_links_are_named_with_their_directions() {
    let network = network(&["ac.up", "ac.down", "b.c.up", "b.c.down"]);
    let unmet = |text: &str| {
        let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        requirement.unmet(&network, Grade::Faithful)
    };
    assert!(unmet("ac.up.drops=0,ac.up.drops.loss=0,b.c.up.drops=0").is_empty());
    assert_eq!(unmet("ac.down.drops=0"), ["ac.down.drops=0: ac.down had 1"]);
    assert_eq!(unmet("b.c.down.drops.loss<5%").len(), 1);
    // Ports have no drops, so only links are judged.
    assert_eq!(
        unmet("drops.loss>0"),
        ["drops.loss>0: ac.up had 0", "drops.loss>0: b.c.up had 0"]
    );
    assert_eq!(unmet("duplicated>0").len(), 4, "links");
    assert!(unmet("far.drops=0")[0].contains("name a link"));
    // Both directions of a link.
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
fn unknown_links_are_reported_before_the_run() {
    let requirement: Requirement = "ac.dwn.drops=0,down.drops=0,drops=0,stops.count=0"
        .parse()
        .expect("it is right");
    let unknown = requirement.unknown(["far", "ac.up", "ac.down"].into_iter());
    assert_eq!(
        unknown,
        ["ac.dwn.drops=0: no link named 'ac.dwn'; did you mean 'ac.down'?"]
    );
}

#[test]
fn up_and_down_are_the_directions_of_the_only_link() {
    let network = network(&["link.up", "link.down"]);
    let requirement: Requirement = "up.drops=0,ba.drops=0".parse().expect("it is right");
    assert_eq!(
        requirement.unmet(&network, Grade::Faithful),
        ["ba.drops=0: link.down had 1"]
    );
}

#[test]
fn artifacts_and_lateness_of_a_network_are_those_of_its_ports() {
    let network = network(&["link.up"]);
    let unmet = |text: &str| {
        let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        requirement.unmet(&network, Grade::Faithful)
    };
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
    let requirement: Requirement = RECOMMENDED.parse().expect("it is right");
    let idle = RunReport {
        links: vec![LinkReport {
            name: "link.up".to_owned(),
            ..LinkReport::default()
        }],
        ..RunReport::default()
    };
    assert_eq!(
        requirement.unmet(&idle, Grade::Faithful),
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
        let requirement: Requirement = wanted.parse().unwrap_or_else(|e| panic!("{e}"));
        let found = Grade::ALL.map(|grade| requirement.unmet(&report(), grade).is_empty());
        assert_eq!(found, met, "{wanted}");
    }
    let requirement: Requirement = "faithful,drops=3".parse().unwrap_or_else(|e| panic!("{e}"));
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
fn unknown_names_are_refused_with_the_known_ones() {
    assert!(refusal("lateness.p98<5us").contains("did you mean 'lateness.p99'"));
    assert!(refusal("drops.lost=0").contains("did you mean 'drops.loss'"));
    assert!(refusal("faithfull").contains("did you mean 'faithful'"));
    assert!(refusal("Nearly-Faithful").contains("did you mean 'nearly-faithful'"));
    assert_eq!(
        refusal("jitter<5us"),
        "unknown name 'jitter'; `longwire exec --help` lists all names"
    );
    assert_eq!(
        refusal("loss<5%"),
        "unknown name 'loss'; did you mean 'drops.loss', 'drops.entry_loss' or 'artifacts-lost'? \
         `longwire exec --help` lists all names"
    );
    assert!(refusal("sideways.jitter=0").contains("unknown name"));
    assert!(refusal("ac.down.drops.lost=0").contains("did you mean 'drops.loss'"));
    assert!(refusal("lateness<5us").contains("lateness.p50"));
    assert!(refusal("artifacts.lat=0").contains("did you mean 'artifacts.late'"));
}

#[test]
fn values_need_their_units_and_nothing_else() {
    assert!(refusal("lateness.p99<50").contains("no unit"));
    assert!(refusal("lateness.p99<-1us").contains("negative"));
    assert!(refusal("artifacts=0us").contains("not a number"));
    assert!(refusal("artifacts=").contains("not a number"));
    assert!(refusal("artifacts").contains("not a comparison"));
    assert!(refusal("").contains("empty requirement"));
    assert!(refusal(" , ").contains("empty requirement"));
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
fn a_share_is_of_what_came_or_left_and_of_what_a_port_lost() {
    let share = |link: LinkReport| {
        let requirement: Requirement = "artifacts<50%".parse().unwrap_or_else(|e| panic!("{e}"));
        let report = RunReport {
            links: vec![link],
            ..RunReport::default()
        };
        requirement.unmet(&report, Grade::Faithful)
    };
    let sends_only = LinkReport {
        traffic: Traffic {
            packets_out: 100,
            ..Traffic::default()
        },
        artifacts: [("late", 49)].into(),
        ..LinkReport::default()
    };
    assert!(share(sends_only).is_empty());
    let loses_at_the_port = LinkReport {
        traffic: Traffic {
            packets_in: 40,
            packets_out: 40,
            ..Traffic::default()
        },
        artifacts: [("ring_full", 60)].into(),
        ..LinkReport::default()
    };
    assert_eq!(share(loses_at_the_port).len(), 1);
    let nothing_but_artifacts = LinkReport {
        artifacts: [("send_failed", 1)].into(),
        ..LinkReport::default()
    };
    assert_eq!(share(nothing_but_artifacts).len(), 1);
    let idle = LinkReport {
        artifacts: [("late", 0)].into(),
        ..LinkReport::default()
    };
    assert!(share(idle).is_empty());
}

#[test]
fn artifacts_own_excludes_those_of_the_machine() {
    let mut report = report();
    for link in &mut report.links {
        link.artifacts.insert("late_paused".into(), 10);
        link.artifacts.insert("late_start".into(), 1);
    }
    let unmet = |text: &str| {
        let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        requirement.unmet(&report, Grade::Faithful)
    };
    assert_eq!(unmet("artifacts=0").len(), 2);
    assert_eq!(
        unmet("artifacts-own=0"),
        ["artifacts-own=0: link.down had 3"]
    );
    assert!(unmet("up.artifacts-own<0.1%").is_empty());
    report.links[0].artifacts.insert("memory".into(), 2);
    let unmet = |text: &str| {
        let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        requirement.unmet(&report, Grade::Faithful)
    };
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
    assert!(refusal("up.pauses.max<1ms").contains("remove 'up.'"));
    assert!(refusal("pauses.longest<1ms").contains("pauses.max"));
}

#[test]
fn invalid_shares_are_refused() {
    assert!(refusal("lateness.p99<1%").contains("only artifacts and drops"));
    assert!(refusal("packets_out>50%").contains("only artifacts and drops"));
    assert!(refusal("artifacts<x%").contains("0.1%"));
    assert_eq!(
        refusal("artifacts-own<0.1"),
        "'artifacts-own<0.1': '0.1' is not a count; write a count such as 5, or a share such as 0.1%"
    );
    assert!(refusal("artifacts<-1%").contains("not a share"));
    assert!(refusal("artifacts<nan%").contains("not a share"));
}

#[test]
fn an_empty_condition_is_refused() {
    assert!(refusal("artifacts=0,").contains("remove the comma"));
    assert!(refusal(",artifacts=0").contains("remove the comma"));
    assert!(refusal("artifacts=0,,drops=0").contains("remove the comma"));
}
