use longwire_runtime::counters::{NamedCounts, Traffic};
use longwire_runtime::deciding::PortReport;
use longwire_runtime::{LinkReport, Pauses, RunReport, Spread};
use longwire_testbed::support::rows;

use super::*;

fn traffic(packets_in: u64, packets_out: u64) -> Traffic {
    Traffic {
        packets_in,
        packets_out,
        ..Traffic::default()
    }
}

fn report() -> RunReport {
    let spread = |p99, max| Spread {
        p50: 1.5,
        p99,
        max,
        ..Spread::default()
    };
    let link = |name: &str, late: u64, p99: f64| LinkReport {
        name: name.to_owned(),
        traffic: traffic(100, 97),
        drops: NamedCounts::from([("loss", 2), ("queue_full", 1)]),
        artifacts: NamedCounts::from([("late", late), ("memory", 0)]),
        lateness_us: spread(p99, 900.0),
        lateness_own_us: spread(p99, 90.0),
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

fn refusal(text: &str) -> String {
    match text.parse::<Requirement>() {
        Ok(parsed) => panic!("{text} was read as {parsed:?}"),
        Err(error) => error.to_string(),
    }
}

/// Checks requirements. Each row has a requirement and the expected message, without the clause, or
/// nothing if the requirement is met. A message that ends with an ellipsis is a prefix.
fn check(report: &RunReport, table: &str) {
    for [text, expected] in rows(table) {
        let clause = format!("{text}: ");
        let unmet = unmet_of(report, text);
        let unmet = unmet
            .iter()
            .map(|said| said.strip_prefix(&clause).unwrap_or(said));
        let unmet = unmet.collect::<Vec<_>>().join("; ");
        match expected.strip_suffix('…') {
            Some(start) => assert!(unmet.starts_with(start), "{text}: {unmet}"),
            None => assert_eq!(unmet, expected, "{text}"),
        }
    }
}

#[test]
fn clauses_are_met_or_name_link_and_value() {
    check(
        &report(),
        "
        packets_out<98 |
        packets_out<97 | link.up had 97; link.down had 97
        packets_out<=97 |
        packets_out=97 |
        packets_out=98 | link.up had 97; link.down had 97
        packets_out>=97 |
        packets_out>97 | link.up had 97; link.down had 97
        packets_out>96 |
        drops=3 |
        drops.loss=2 |
        drops.queue_full>1 | link.up had 1; link.down had 1
        up.artifacts=0 |
        artifacts=0 | link.down had 3
        artifacts.memory=0 |
        lateness.p50<=1.5us |
        lateness.p50<1500ns | link.up had 1.5us; link.down had 1.5us
        lateness.p99<10us | link.up had 12us; link.down had 49.999us
        lateness.p99<50us, up.artifacts=0 |
        lateness.p99<50us,artifacts=0,drops=0 | artifacts=0: link.down had 3; \
            drops=0: link.up had 3; drops=0: link.down had 3
        up.lateness.p99<13us |
        ab.lateness.p99<13us |
        down.lateness.p99<13us | link.down had 49.999us
        ba.lateness.p99<13us | link.down had 49.999us
        artifacts<3.1% |
        artifacts<3% | link.down had 3.00%, 3 of 100 frames
        artifacts<=3% |
        up.artifacts=0% |
        artifacts.late<5% |
        artifacts.memory<0.1% |
        drops.loss=2% |
        drops<2.9% | link.up had 3.00%, 3 of 100 frames; link.down had 3.00%, 3 of 100 frames
        artifacts<0.1% | link.down had 3.00%, 3 of 100 frames
        pauses.max<2ms,pauses.total<=2ms,pauses.count<3,stops.count=0 |
        pauses.max<1ms | the run had 1.5ms
        ",
    );
    let mut one_way = report();
    one_way.links.truncate(1);
    let missing = "down.artifacts=0 | no link named 'down'; there were link.up";
    check(&one_way, missing);
    one_way.links[0] = LinkReport {
        name: "link.up".to_owned(),
        ..LinkReport::default()
    };
    let unmet = unmet_of(&one_way, RECOMMENDED);
    assert_eq!(unmet, ["packets_in>0: link.up had 0"]);
}

/// Returns a network report with links of these names.
fn network(names: &[&str]) -> RunReport {
    let traffic = traffic(10, 0);
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
fn links_are_named_as_in_the_control_api() {
    let mut run = network(&["link.up", "link.down"]);
    check(&run, "up.drops=0,ba.drops=0 | ba.drops=0: link.down had 1");
    run.ports.clear();
    check(
        &run,
        "
        link.up.drops=0,ab.drops=0 |
        link.down.drops=0 | link.down had 1
        link.drops=0 | link.down had 1
        link.sideways.drops=0 | no link named…
        ",
    );
    // Ports have no drops, so clauses on all drops apply only to links. A link's name selects both
    // directions.
    check(
        &network(&["ac.up", "ac.down", "b.c.up", "b.c.down"]),
        "
        ac.up.drops=0,ac.up.drops.loss=0,b.c.up.drops=0 |
        ac.down.drops=0 | ac.down had 1
        b.c.down.drops.loss<5% | b.c.down had 1…
        drops.loss>0 | ac.up had 0; b.c.up had 0
        duplicated>0 | ac.up had 0; ac.down had 0; b.c.up had 0; b.c.down had 0
        far.drops=0 | ports count no drops or model effects; name a link instead of far
        ac.drops=0 | ac.down had 1
        down.drops=0 | no link named 'down'; there were ac.up, ac.down, b.c.up, b.c.down, far
        ac.dwn.drops=0 | no link named 'ac.dwn'; did you mean 'ac.down'?
        ",
    );
}

#[test]
fn unmeetable_conditions_are_found_before_the_run() {
    let unmeetable = |text: &str, kind| {
        let requirement: Requirement = text.parse().expect("a valid requirement");
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
    for [text, why] in rows(
        "
        down.drops=0 |
        drops=0 |
        stops.count=0 |
        far.packets_in>0 |
        far.lateness.p99<1ms |
        ac.dwn.drops=0 | no link named 'ac.dwn'; did you mean 'ac.down'?
        far.drops=0 | ports count no drops
        gap.p99<1us | only replays measure gaps
        ac.up.sent.p99<1us | only replays take send stamps
        received.lost=0 | no receiver
        ",
    ) {
        let found = unmeetable(text, fixed);
        assert_eq!(found.is_empty(), why.is_empty(), "{text}: {found:?}");
        let start = format!("{text}: {why}");
        if let Some(found) = found.first() {
            assert!(found.starts_with(&start), "{found}");
        }
        assert!(found.len() <= 1, "{found:?}");
        let of_place = usize::from(text.starts_with("ac.dwn"));
        assert_eq!(unmeetable(text, all).len(), of_place, "{text}");
    }
    // Clients may add this link later.
    assert!(unmeetable("ac.dwn.drops=0", RunKind::default()).is_empty());
}

#[test]
fn artifacts_and_lateness_are_measured_at_ports() {
    const AT_PORTS: &str = "artifacts and lateness are counted at ports; name the output port of";
    check(
        &network(&["link.up"]),
        &"
        lateness.p99<1ms,far.lateness.p99<1ms |
        up.lateness.p99<1ms | AT_PORTS link.up
        up.artifacts=0 | AT_PORTS link.up
        up.artifacts-lost<1% | AT_PORTS link.up
        up.artifacts.late=0 |
        gap.p99<1ns | link.up has no gaps; only replays measure them
        "
        .replace("AT_PORTS", AT_PORTS),
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
    for (grade, said) in [
        (Grade::NearlyFaithful, "was nearly-faithful"),
        (Grade::NoFrames, "had no frames"),
    ] {
        let unmet = parsed("faithful,drops=3").unmet(&report(), grade);
        assert_eq!(unmet, [format!("faithful: the run {said}")]);
    }
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
            traffic: traffic(packets_in, packets_out),
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
    check(
        &report,
        "
        artifacts=0 | link.up had 11; link.down had 14
        artifacts-own=0 | link.down had 3
        up.artifacts-own<0.1% |
        artifacts.late_paused=0 | link.up had 10; link.down had 10
        lateness.max<100us | link.up had 900us; link.down had 900us
        lateness-own.max<100us |
        ",
    );
    report.links[0].artifacts.insert("memory".into(), 2);
    check(&report, "artifacts-lost=0 | link.up had 2");
}

#[test]
fn every_refusal_says_what_is_wrong() {
    for [text, said] in rows(
        "
        lateness.p98<5us | did you mean 'lateness.p99'
        drops.lost=0 | did you mean 'drops.loss'
        faithfull | did you mean 'faithful'
        Nearly-Faithful | did you mean 'nearly-faithful'
        sideways.jitter=0 | unknown name
        ac.down.drops.lost=0 | did you mean 'drops.loss'
        lateness<5us | lateness.p50
        artifacts.lat=0 | did you mean 'artifacts.late'
        lateness.p99<50 | no unit
        lateness.p99<-1us | negative
        artifacts=0us | not a number
        artifacts= | not a number
        artifacts | not a comparison
        | empty requirement
        , | empty requirement
        lateness.p99<1% | only artifacts and drops
        packets_out>50% | only artifacts and drops
        artifacts<x% | 0.1%
        artifacts<-1% | not a share
        artifacts<nan% | not a share
        artifacts=0, | remove the extra comma
        ,artifacts=0 | remove the extra comma
        artifacts=0,,drops=0 | remove the extra comma
        up.pauses.max<1ms | remove 'up.'
        pauses.longest<1ms | pauses.max
        ",
    ) {
        let refusal = refusal(text);
        assert!(refusal.contains(said), "{text}: {refusal}");
    }
    assert!(refusal(" , ").contains("empty requirement"));
    for [text, refused] in rows(
        "
        jitter<5us | unknown name 'jitter'; `longwire exec --help` lists all names
        loss<5% | unknown name 'loss'; did you mean 'drops.loss', 'drops.entry_loss' or \
            'artifacts-lost'? `longwire exec --help` lists all names
        artifacts-own<0.1 | 'artifacts-own<0.1': '0.1' is not a count; write a count such as 5, \
            or a share such as 0.1%
        ",
    ) {
        assert_eq!(refusal(text), refused);
    }
}
