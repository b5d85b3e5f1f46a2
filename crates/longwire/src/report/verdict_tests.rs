use longwire_engine::Nanos;
use longwire_runtime::InputReport;
use longwire_runtime::counters::{Handovers, Traffic};
use longwire_runtime::deciding::PortReport;
use longwire_runtime::report::HostsReport;

use super::super::require::{RECOMMENDED, Requirement};
use super::*;

fn spread(p99: f64, max: f64) -> Spread {
    Spread {
        p99,
        max,
        ..Spread::default()
    }
}

fn port(name: &str, frames: u64, late: u64) -> PortReport {
    PortReport {
        name: name.to_owned(),
        traffic: Traffic {
            packets_in: frames,
            packets_out: frames,
            ..Traffic::default()
        },
        artifacts: [("late", late), ("memory", 0)].into(),
        lateness_us: spread(12.0, 80.0),
        ..PortReport::default()
    }
}

/// Returns the report of a link between ports a and b, with late frames at b.
fn report(late: u64) -> RunReport {
    let link = |name: &str| LinkReport {
        name: name.to_owned(),
        traffic: port("", 5_000, 0).traffic,
        ..LinkReport::default()
    };
    RunReport {
        links: vec![link("link.up"), link("link.down")],
        ports: vec![port("a", 5_000, 0), port("b", 5_000, late)],
        duration_s: 10.0,
        tolerance: Nanos::from_millis(1),
        ..RunReport::default()
    }
}

/// Returns a report with one other host.
fn hosts(peer: PeerReport) -> Option<HostsReport> {
    Some(HostsReport {
        peers: vec![peer],
        receive_overflows: 2,
        ..HostsReport::default()
    })
}

/// Returns the report of a run without deliveries.
fn report_of_nothing(drops: &[(&'static str, u64)]) -> RunReport {
    let mut report = report(0);
    for port in &mut report.ports {
        port.traffic.packets_out = 0;
    }
    for link in &mut report.links {
        link.traffic.packets_out = 0;
        link.drops = drops.iter().copied().collect();
    }
    report
}

/// Returns the report of frames sent at b with these latenesses, in microseconds.
fn injected(lateness_us: &[u64]) -> RunReport {
    let mut late: Vec<f64> = lateness_us.iter().map(|micros| *micros as f64).collect();
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    let beyond = late.iter().filter(|micros| **micros > 1_000.0).count();
    let frames = late.len() as u64;
    let mut report = report(0);
    report.ports = vec![port("a", frames, 0), port("b", frames, beyond as u64)];
    let spread = Spread {
        count: frames,
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
        mean: late.iter().sum::<f64>() / frames as f64,
        ..Spread::default()
    };
    report.ports[1].lateness_us = spread;
    report.ports[1].lateness_own_us = spread;
    report
}

fn assert_line(report: &RunReport, grade: Grade, line: &str) {
    let verdict = Verdict::of(report);
    assert_eq!((verdict.grade, verdict.line.as_str()), (grade, line));
}

#[test]
fn a_true_run_is_faithful() {
    let line = "faithful: 10,000 frames delivered, 99% of them at most 12.0 us late, all at most \
                80.0 us, no artifacts";
    assert_line(&report(0), Grade::Faithful, line);
    assert!(Verdict::of(&report(0)).hints.is_empty());
    let line = "faithful: 10,000 frames delivered, 99% of them at most 12.0 us late, all at most \
                80.0 us, b 20 late (0.40% of 5,000 frames)";
    assert_line(&report(20), Grade::Faithful, line);
}

#[test]
fn the_share_of_late_frames_makes_the_grade() {
    let mut some = report(50);
    some.ports[1].lateness_own_us = Spread {
        mean: 31.0,
        p99: 1_200.0,
        ..Spread::default()
    };
    let line = "faithful but for 1.00% of the frames: b 50 late (1.00% of 5,000 frames); added \
                delay: mean 31.0 us, p99 1.20 ms";
    assert_line(&some, Grade::NearlyFaithful, line);
    let verdict = Verdict::of(&some);
    assert_eq!(verdict.share, 0.01);
    assert_eq!(verdict.added_delay_us.p99, 1_200.0);
    assert!(verdict.hints[0].contains("--wait spin"));
    let line = "not faithful: frames were late; b 1,000 late (20.0% of 5,000 frames)";
    assert_line(&report(1_000), Grade::NotFaithful, line);
}

/// Returns the latenesses of 20 pings, `late` of which are late by `micros`.
fn pings(late: usize, micros: u64) -> Vec<u64> {
    let on_time = std::iter::repeat_n(60, 20 - late);
    on_time.chain(std::iter::repeat_n(micros, late)).collect()
}

/// Each documentation page that shows a ping sends at least 20 requests.
#[test]
fn the_lines_of_the_documents_survive_a_busy_core_and_no_late_link() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut required: Vec<String> = vec![RECOMMENDED.to_owned()];
    let docs = ["ci", "tutorial", "explanation/fidelity", "howto/research"];
    let docs = docs.map(|page| format!("docs/{page}.md"));
    for page in ["README.md".to_owned()].into_iter().chain(docs) {
        let text = std::fs::read_to_string(format!("{root}/{page}")).expect("a page");
        let before = required.len();
        for line in text
            .lines()
            .filter_map(|line| line.split("--require '").nth(1))
        {
            let (line, _) = line.split_once('\'').unwrap_or((line, ""));
            required.extend(line.contains("faithful").then(|| line.to_owned()));
        }
        assert!(required.len() > before, "{page} has no line");
    }
    for text in required {
        let line: Requirement = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let unmet = |lateness_us: &[u64]| {
            let report = injected(lateness_us);
            line.unmet(&report, Verdict::of(&report).grade)
        };
        // A time slice of another program, up to 4 ms, delays some of the 20 pings.
        for late in 0..=4 {
            assert_eq!(unmet(&pings(late, 4_000)), [""; 0], "{text}: {late} late");
        }
        // Late frames exceed a limit by their fraction, by their lateness, or because every frame
        // is late.
        for late in [pings(5, 1_500), pings(1, 30_000), pings(20, 2_000)] {
            assert_eq!(unmet(&late), ["nearly-faithful: the run was not-faithful"]);
        }
    }
    let mut lost = injected(&pings(0, 0));
    lost.ports[1].artifacts.insert("memory".into(), 1);
    assert_eq!(Verdict::of(&lost).grade, Grade::NotFaithful);
}

#[test]
fn small_samples_exceed_the_share_later() {
    assert!(!exceeds(4.0, 20.0) && exceeds(5.0, 20.0));
    assert!(!exceeds(70.0, 1_000.0) && exceeds(80.0, 1_000.0));
    assert!(!exceeds(50_000.0, 1e6) && exceeds(51_000.0, 1e6));
    assert!(!exceeds(0.0, 1.0) && !exceeds(1.0, 2.0));
}

#[test]
fn stalls_of_a_few_frames_are_named() {
    let mut lateness = vec![60; 10_000];
    lateness[..20].fill(300_000);
    let verdict = Verdict::of(&injected(&lateness));
    assert_eq!(verdict.grade, Grade::NearlyFaithful, "{}", verdict.line);
}

#[test]
fn lateness_by_the_machine_and_the_start_is_apart() {
    let mut report = report(0);
    report.ports[0].artifacts.insert("late_paused".into(), 900);
    report.ports[1].artifacts.insert("late_start".into(), 7);
    report.pauses = Pauses {
        count: 2,
        max_us: 1_500.0,
        total_us: 2_000.0,
    };
    let verdict = Verdict::of(&report);
    assert_eq!(verdict.grade, Grade::Faithful);
    let text = "no artifacts; excused (machine pauses, start of the run): a 900 late_paused (18.0% \
                of 5,000 frames); b 7 late_start (0.14% of 5,000 frames)";
    assert!(verdict.line.ends_with(text), "{verdict:?}");
    assert!(verdict.hints[0].contains("paused 2 times, for at most 1.50 ms"));
    assert!(machine_was_busy(&report));
    report.stops.count = 1;
    assert!(!machine_was_busy(&report));
    report.ports.clear();
    assert_eq!(Verdict::of(&report).hints, Vec::<String>::new());
}

#[test]
fn equal_bounds_of_lateness_are_written_once() {
    let said = |p99, max| lateness([spread(p99, max)].into_iter());
    let equal = said(3.9201, 3.9211);
    assert_eq!(equal.as_deref(), Some("at most 3.92 us late"));
    let different = "99% of them at most 3.90 us late, all at most 4.00 us";
    assert_eq!(said(3.9, 4.0).as_deref(), Some(different));
    assert_eq!(said(0.0, 0.0), None);
}

#[test]
fn no_frames_yield_no_verdict() {
    let mut report = RunReport::default();
    assert_line(&report, Grade::NoFrames, "no verdict: no frame arrived");
    report.inputs = vec![InputReport::default()];
    assert_line(&report, Grade::NoFrames, "no verdict: no frame was sent");
}

fn expect_cause(report: &RunReport, text: &str) {
    let verdict = Verdict::of(report);
    assert_eq!(verdict.grade, Grade::NotFaithful, "{}", verdict.line);
    let line = verdict.line.strip_prefix("not faithful: ");
    let is_named = line.is_some_and(|line| line.starts_with(text));
    assert!(is_named, "{text}: {verdict:?}");
}

#[test]
fn causes_are_named_in_the_order_of_repair() {
    let mut report = report(0);
    report.ports[1].artifacts.insert("late".into(), 4_000);
    expect_cause(&report, "frames were late; b 4,000 late");
    report.ports[1].artifacts.insert("memory".into(), 100);
    let lost = "the emulator lost frames; b 4,000 late, 100 memory";
    expect_cause(&report, lost);
    report.links[0].handovers = Handovers {
        overload: 4_800,
        late_max_ns: 3_000_000_000,
        ..Handovers::default()
    };
    let overload = "overload: 1 of 2 links fell behind; the worst is link.up with 4,800 of 5,000 \
                    frames late (96.0%), by up to 3.00 s; b 4,000 late";
    expect_cause(&report, overload);
    report.stops = Pauses {
        count: 1,
        max_us: 4_950_000.0,
        total_us: 4_950_000.0,
    };
    let stopped = "the process was stopped or not scheduled once, for 4.95 s in total; b";
    expect_cause(&report, stopped);
    let hints = Verdict::of(&report).hints;
    let has = |hints: &[String], text: &str| hints.iter().any(|hint| hint.contains(text));
    assert!(has(&hints, "a debugger or a freezer"));
    report.hosts = hosts(PeerReport {
        name: "east".to_owned(),
        outages: 2,
        frames_unsent: 3,
        frames_unconfirmed: 7,
        ..PeerReport::default()
    });
    let silent = "host east stopped responding 2 times; 3 frames for that host not sent; b 4,000";
    expect_cause(&report, silent);
    let verdict = Verdict::of(&report);
    let lost = "; host east 7 underlay_lost";
    assert!(verdict.line.contains(lost), "{verdict:?}");
    assert!(has(&verdict.hints, "dropped 2 buffers"));
    report.stopped_early = true;
    let early = "the replay was stopped: 10,000 frames sent, 0 read but not sent";
    expect_cause(&report, early);
    report.error = Some("port A went away".to_owned());
    expect_cause(&report, "the run failed: port A went away");
}

#[test]
fn a_stop_without_an_effect_is_a_note() {
    let mut report = report(0);
    report.stops.count = 1;
    let verdict = Verdict::of(&report);
    assert!(verdict.grade == Grade::Faithful && verdict.hints.is_empty());
    let mut out = Vec::new();
    assert!(verdict.write_stops(&mut out, &report.stops).is_ok());
    assert!(String::from_utf8_lossy(&out).starts_with("note: stops: the process was stopped"));
    // 0.4 % of the frames are late: within the grade, regardless of the cause.
    report.ports[1].artifacts.insert("late".into(), 20);
    assert_eq!(Verdict::of(&report).grade, Grade::Faithful);
    report.ports[1].artifacts.insert("late".into(), 1_000);
    expect_cause(&report, "the process was stopped");
}

#[test]
fn runs_without_deliveries_have_a_cause() {
    let mut report = report_of_nothing(&[("ttl", 5_000)]);
    // A router's ICMP errors are not deliveries.
    report.ports[0].traffic.packets_out = 5_000;
    expect_cause(&report, "the configuration passes no frame");
    let lost = "link.up delivered none of 5,000 frames, and 5,000 of them are unaccounted for";
    expect_cause(&report_of_nothing(&[]), lost);
}

#[test]
fn one_of_few_frames_makes_no_stall() {
    let mut report = injected(&[10, 15, 338]);
    for link in &mut report.links {
        link.traffic.packets_in = 3;
    }
    for port in &mut report.ports {
        port.traffic.packets_in = 0;
    }
    assert_eq!(Verdict::of(&report).grade, Grade::Faithful);
}

#[test]
fn cores_that_others_had_are_named_with_what_was_late() {
    let mut report = report(1_000);
    report.core_wait_s = 2.5;
    let hints = Verdict::of(&report).hints;
    assert!(hints[0].contains("waited for 2.50 s in total"), "{hints:?}");
    assert!(machine_was_busy(&report));
    // Causes of loss come before causes of lateness.
    report.ports[1].artifacts.insert("memory".into(), 5);
    let hints = Verdict::of(&report).hints;
    assert!(hints[0].starts_with("memory: "), "{hints:?}");
    assert!(hints[1].starts_with("cores: "), "{hints:?}");
    assert!(hints[2].starts_with("late: "), "{hints:?}");
    // Lateness that the machine did not cause is not excused.
    report.core_wait_s = 0.0;
    report.pauses.max_us = 150.0;
    assert!(!machine_was_busy(&report));
}

#[test]
fn frames_lost_between_hosts_and_events_not_recorded_have_places() {
    let mut report = report(0);
    report.hosts = hosts(PeerReport {
        name: "east".to_owned(),
        frames_received: 100_000,
        frames_dropped: 5,
        ..PeerReport::default()
    });
    report.counts.unrecorded = 200;
    let verdict = Verdict::of(&report);
    assert_eq!(verdict.grade, Grade::NearlyFaithful);
    let text = ": host east 5 memory (0.0050% of 100,005 frames); recording 200 unrecorded (2.00% of \
                10,000 frames)";
    assert!(verdict.line.contains(text), "{}", verdict.line);
    let has = |text: &str| verdict.hints.iter().any(|hint| hint.contains(text));
    assert!(has("a faster disk") && has("raise --memory"));
}

#[test]
fn a_link_that_drops_everything_has_the_reasons() {
    let mut report = report_of_nothing(&[("loss", 4_990)]);
    report.links.iter_mut().for_each(|link| link.in_flight = 10);
    report.in_flight = 20;
    let line = "faithful: none of 10,000 frames delivered: 9,980 dropped by loss, 20 in flight, \
                no artifacts";
    assert_line(&report, Grade::Faithful, line);
    let report = report_of_nothing(&[("mtu", 4_990), ("loss", 10), ("aqm", 0)]);
    let line = "not faithful: the configuration passes no frame: none of 10,000 frames \
                delivered: 20 dropped by loss, 9,980 dropped by mtu";
    assert_line(&report, Grade::NotFaithful, line);
    let hints = Verdict::of(&report).hints;
    assert!(hints[0].starts_with("mtu: frames exceed --mtu"));
}
