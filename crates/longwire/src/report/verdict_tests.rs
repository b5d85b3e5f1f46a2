use longwire_runtime::Spread;
use longwire_runtime::ledger::Traffic;

use super::*;

fn report(late: u64) -> RunReport {
    let link = |name: &str, late| LinkReport {
        name: name.to_owned(),
        traffic: Traffic {
            packets_in: 5_000,
            packets_out: 5_000,
            ..Traffic::default()
        },
        artifacts: [("late", late), ("memory", 0)].into(),
        lateness_us: Spread {
            p99: 12.0,
            max: 80.0,
            ..Spread::default()
        },
        ..LinkReport::default()
    };
    RunReport {
        links: vec![link("link.up", late), link("link.down", 0)],
        duration_s: 10.0,
        ..RunReport::default()
    }
}

#[test]
fn a_true_run_is_praised_in_one_line() {
    let verdict = Verdict::of(&report(0));
    assert!(verdict.faithful);
    assert_eq!(
        verdict.line,
        "the link was what was asked for: 10,000 frames delivered, 99% of them at most \
         12.0 us late and none more than 80.0 us, no artifacts"
    );
    assert!(verdict.hints.is_empty());
}

#[test]
fn one_frame_of_five_thousand_differs_from_a_fifth_of_them() {
    let one = Verdict::of(&report(1));
    assert!(one.faithful);
    assert_eq!(
        one.line,
        "the link was what was asked for, apart from link.up 1 late (0.02% of 5,000 frames): 10,000 \
         frames delivered, 99% of them at most 12.0 us late and none more than 80.0 us"
    );
    let fifth = Verdict::of(&report(1_000));
    assert!(!fifth.faithful);
    assert_eq!(
        fifth.line,
        "the link fell short of what was asked for: link.up 1,000 late (20.0% of 5,000 frames)"
    );
    assert_eq!(fifth.hints.len(), 1);
    assert!(fifth.hints[0].contains("--wait spin"));
}

#[test]
fn lateness_by_the_machine_and_the_start_is_shown_and_no_shortfall() {
    let mut report = report(0);
    report.links[0].artifacts.insert("late_paused".into(), 900);
    report.links[1].artifacts.insert("late_start".into(), 7);
    let verdict = Verdict::of(&report);
    assert!(verdict.faithful);
    assert!(
        verdict.line.contains("up 900 late_paused (18.0%"),
        "{verdict:?}"
    );
    assert!(verdict.line.contains("down 7 late_start"), "{verdict:?}");
    assert_eq!(verdict.hints.len(), 2);
}

#[test]
fn pauses_of_the_machine_are_separate_from_lateness() {
    let mut report = report(0);
    report.pauses = Pauses {
        count: 2,
        max_us: 1_500.0,
        total_us: 2_000.0,
    };
    // Nothing was late.
    assert_eq!(Verdict::of(&report).hints, Vec::<String>::new());
    assert!(!machine_was_busy(&report));
    report.links[0].artifacts.insert("late_paused".into(), 900);
    let verdict = Verdict::of(&report);
    assert!(verdict.faithful);
    assert!(verdict.hints[0].contains("stood still 2 times, 1.50 ms at the longest"));
    assert!(machine_was_busy(&report));
    report.stops.count = 1;
    assert!(!machine_was_busy(&report));
}

#[test]
fn equal_bounds_of_lateness_are_written_once() {
    let spread = |p99, max| Spread {
        p99,
        max,
        ..Spread::default()
    };
    let said = |p99, max| lateness([spread(p99, max)].into_iter());
    assert_eq!(
        said(3.9201, 3.9211).as_deref(),
        Some("none more than 3.92 us late")
    );
    assert_eq!(
        said(3.9, 4.0).as_deref(),
        Some("99% of them at most 3.90 us late and none more than 4.00 us")
    );
    assert_eq!(said(0.0, 0.0), None);
}

#[test]
fn a_replay_and_generated_traffic_are_named() {
    let input = |count| InputReport {
        counts: [(count, 5_000)].into(),
        ..InputReport::default()
    };
    let mut report = report(0);
    report.inputs = vec![input("generated")];
    let line = Verdict::of(&report).line;
    assert!(
        line.starts_with("the traffic was what was asked for: 10,000"),
        "{line}"
    );
    report.inputs = vec![input("filtered")];
    let line = Verdict::of(&report).line;
    assert!(
        line.starts_with("the replay was what was asked for"),
        "{line}"
    );
    report.links.clear();
    assert_eq!(
        Verdict::of(&report).line,
        "no frame was sent: there is no verdict on the replay"
    );
    report.inputs.clear();
    assert_eq!(
        Verdict::of(&report).line,
        "no frame arrived: there is no verdict on the link"
    );
}

#[test]
fn a_stop_is_named() {
    let mut report = report(3);
    report.stops = Pauses {
        count: 1,
        max_us: 4_950_000.0,
        total_us: 4_950_000.0,
    };
    let verdict = Verdict::of(&report);
    assert!(!verdict.faithful);
    assert_eq!(
        verdict.line,
        "the link fell short of what was asked for: link.up 3 late (0.06% of 5,000 frames)"
    );
    let stop = "stops: the process was stopped or not scheduled once, for 4.95 s in all (a signal \
                such as SIGSTOP, a debugger or a freezer)";
    assert_eq!(verdict.hints[0], stop);
    // Without an effect, it is a note of the whole report.
    report.links[0].artifacts.insert("late".into(), 0);
    let verdict = Verdict::of(&report);
    assert!(verdict.faithful && verdict.hints.is_empty(), "{verdict:?}");
    assert!(
        verdict.line.starts_with("the link was what was asked for"),
        "{verdict:?}"
    );
    let mut out = Vec::new();
    assert!(verdict.write_stops(&mut out, &report.stops).is_ok());
    assert_eq!(String::from_utf8_lossy(&out), format!("note: {stop}\n"));
}

#[test]
fn cores_that_others_had_are_named_with_what_was_late() {
    let mut report = report(1_000);
    report.core_wait_s = 2.5;
    let hints = Verdict::of(&report).hints;
    assert!(hints[0].contains("waited 2.50 s in all"), "{hints:?}");
    assert!(machine_was_busy(&report));
    // What lost frames comes before what made others late.
    report.links[0].artifacts.insert("memory".into(), 5);
    let hints = Verdict::of(&report).hints;
    assert!(hints[0].starts_with("memory: "), "{hints:?}");
    assert!(hints[1].starts_with("cores: "), "{hints:?}");
    assert!(hints[2].starts_with("late: "), "{hints:?}");
    // Lateness without a cause in the machine is no excuse.
    report.core_wait_s = 0.0;
    report.pauses.max_us = 150.0;
    assert!(!machine_was_busy(&report));
}

#[test]
fn a_peer_that_is_down_and_a_slow_receiver_are_named() {
    let mut report = report(0);
    report.links[0].artifacts.insert("port_down".into(), 100);
    report.links[1]
        .artifacts
        .insert("late_receiver".into(), 100);
    let verdict = Verdict::of(&report);
    assert!(!verdict.faithful);
    assert!(verdict.hints[0].contains("its receiver"), "{verdict:?}");
    assert!(
        verdict.hints[1].contains("its peer was down"),
        "{verdict:?}"
    );
    assert!(!verdict.hints[1].contains("receiver"), "{verdict:?}");
}

#[test]
fn frames_that_no_count_has_are_a_fault() {
    let mut report = report(0);
    for link in &mut report.links {
        link.traffic.packets_out = 0;
    }
    let verdict = Verdict::of(&report);
    assert!(!verdict.faithful);
    assert!(
        verdict
            .line
            .contains("up delivered none of 5,000 frames, and 5,000 of them are not"),
        "{verdict:?}"
    );
}

#[test]
fn a_link_that_drops_everything_reports_the_reasons() {
    let mut report = report(0);
    for link in &mut report.links {
        link.traffic.packets_out = 0;
        link.drops = [("loss", 4_990)].into();
        link.in_flight = 10;
    }
    let verdict = Verdict::of(&report);
    assert!(verdict.faithful);
    assert_eq!(
        verdict.line,
        "the link was what was asked for: none of 10,000 frames delivered: 9,980 dropped by \
         loss, 20 still on their way, no artifacts"
    );
}

#[test]
fn an_early_end_is_reported_first() {
    let mut report = report(3);
    report.error = Some("port A went away".to_owned());
    assert_eq!(
        Verdict::of(&report).line,
        "the run ended early: port A went away"
    );
}

#[test]
fn a_link_that_drops_all_for_what_is_sent_is_not_praised() {
    let mut report = report(0);
    for link in &mut report.links {
        link.traffic.packets_out = 0;
        link.drops = [("mtu", 4_990), ("loss", 10), ("aqm", 0)].into();
    }
    let verdict = Verdict::of(&report);
    assert!(!verdict.faithful);
    assert_eq!(
        verdict.line,
        "the link is not usable: none of 10,000 frames delivered: 20 dropped by loss, 9,980 \
         dropped by mtu"
    );
    assert!(verdict.hints[0].starts_with("mtu: frames are longer than --mtu"));
}
