use std::collections::BTreeMap;

use longwire_runtime::{Lateness, LinkReport, RunReport};

use super::*;

fn report() -> RunReport {
    let link = |name: &str, late: u64, p99: f64| LinkReport {
        name: name.to_owned(),
        packets_in: 100,
        packets_out: 97,
        drops: BTreeMap::from([("loss", 2), ("queue_full", 1)]),
        artifacts: BTreeMap::from([("late", late), ("memory", 0)]),
        lateness_us: Lateness {
            p50: 1.5,
            p99,
            max: 900.0,
            ..Lateness::default()
        },
        ..LinkReport::default()
    };
    RunReport {
        links: vec![link("up", 0, 12.0), link("down", 3, 49.999)],
        ..RunReport::default()
    }
}

fn unmet(text: &str) -> Vec<String> {
    let requirement: Requirement = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    requirement.unmet(&report())
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
    assert_eq!(unmet("artifacts=0"), ["artifacts=0: down had 3"]);
    assert_eq!(
        unmet("lateness.p99<10us"),
        [
            "lateness.p99<10us: up had 12us",
            "lateness.p99<10us: down had 49.999us"
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
        requirement.unmet(&one_way),
        ["down.artifacts=0: the run had no such link"]
    );
}

#[test]
fn what_is_unknown_is_refused_with_what_is_known() {
    assert!(refusal("lateness.p98<5us").contains("lateness.p99, lateness.p999"));
    assert!(refusal("drops.lost=0").contains("drops.queue_full"));
    assert!(refusal("jitter<5us").contains("packets_in"));
    assert!(refusal("sideways.artifacts=0").contains("not known"));
    assert!(refusal("lateness<5us").contains("lateness.p50"));
    assert!(refusal("artifacts.lat=0").contains("artifacts.late, artifacts.memory"));
}

#[test]
fn values_need_their_units_and_nothing_else() {
    assert!(refusal("lateness.p99<50").contains("no unit"));
    assert!(refusal("lateness.p99<-1us").contains("negative"));
    assert!(refusal("artifacts=0us").contains("not a number"));
    assert!(refusal("artifacts=").contains("not a number"));
    assert!(refusal("artifacts").contains("compares nothing"));
    assert!(refusal("").contains("nothing is required"));
    assert!(refusal(" , ").contains("nothing is required"));
}
