use longwire_runtime::counters::{NamedCounts, QueueLengths, Traffic};
use longwire_runtime::{InputReport, LinkReport, Spread};

use super::*;

fn link(name: &str, packets_in: u64, drops: NamedCounts) -> LinkReport {
    LinkReport {
        name: name.to_owned(),
        traffic: Traffic {
            packets_in,
            packets_out: packets_in - drops.total(),
            ..Traffic::default()
        },
        drops,
        queue: Some(QueueLengths::default()),
        lateness_us: Spread {
            p99: 38.9,
            max: 58.4,
            ..Spread::default()
        },
        ..LinkReport::default()
    }
}

fn written(report: &RunReport) -> Vec<String> {
    let mut out = Vec::new();
    let summary = Summary::of(&Ending::of(report), Verdict::of(report));
    assert!(summary.write(&mut out, Paint::PLAIN).is_ok());
    let text = String::from_utf8_lossy(&out);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_link_has_a_row_for_each_direction_and_a_sentence() {
    let drops = [("loss", 2), ("mtu", 0), ("queue_full", 10)];
    let mut up = link("link.up", 5_000, drops.into());
    up.traffic.packets_out -= 3;
    up.in_flight = 3;
    up.effects.corrupted = 7;
    let report = RunReport {
        links: vec![up, link("link.down", 300, NamedCounts::default())],
        ..RunReport::default()
    };
    assert_eq!(
        written(&report),
        [
            "frames        in    out  dropped",
            "link.up    5,000  4,985  12 (0.24%): 10 queue_full, 2 loss; 7 corrupted; 3 in flight",
            "link.down    300    300  none",
            "faithful: 5,285 frames delivered, 99% of them at most 38.9 us late, all at most \
             58.4 us, no artifacts",
        ]
    );
}

#[test]
fn the_busiest_of_many_links_are_shown_and_the_sum_of_the_others() {
    let name = |number: u64| format!("l{number}");
    let links = (1..=40).map(|number| link(&name(number), number, [("loss", 1)].into()));
    let report = RunReport {
        links: links.collect(),
        ..RunReport::default()
    };
    let lines = written(&report);
    assert_eq!(
        lines[..6],
        [
            "frames    in  out  dropped",
            "l37       37   36  1 (2.70%): 1 loss",
            "l38       38   37  1 (2.63%): 1 loss",
            "l39       39   38  1 (2.56%): 1 loss",
            "l40       40   39  1 (2.50%): 1 loss",
            "36 more  666  630  36 (5.41%): 36 loss",
        ]
    );
    assert_eq!(lines.len(), 7, "{lines:?}");
}

#[test]
fn a_summary_has_at_most_ten_lines() {
    let drops = [("a", 4), ("b", 3), ("c", 2), ("d", 1), ("e", 1)];
    let artifacts = [
        ("late", 100),
        ("memory", 100),
        ("ring_full", 100),
        ("too_long", 9),
    ];
    let late = |name: &str| LinkReport {
        artifacts: artifacts.into(),
        ..link(name, 1_000, drops.into())
    };
    let input = InputReport {
        name: "trace.pcap".to_owned(),
        notes: (0..20).map(|number| format!("note {number}")).collect(),
        ..InputReport::default()
    };
    let report = RunReport {
        links: (0..9).map(|number| late(&format!("l{number}"))).collect(),
        inputs: vec![input],
        ..RunReport::default()
    };
    let lines = written(&report);
    let line = "l0      1,000    989  11 (1.10%): 4 a, 3 b, 2 c, 2 others";
    assert_eq!(lines[1], line);
    assert_eq!(lines[6], "21 more lines: -v prints the full report");
    assert!(lines[7].contains("not faithful"), "{lines:#?}");
    assert_eq!(lines.len(), 8, "{lines:#?}");
    // Fewer messages leave room for the remarks and the first hint.
    let report = RunReport {
        links: vec![late("l0")],
        ..report
    };
    let lines = written(&report);
    assert_eq!(lines[2..6], ["trace.pcap", "note 0", "note 1", "note 2"]);
    assert_eq!(lines[6], "17 more lines: -v prints the full report");
    assert!(lines[7].contains("not faithful"), "{lines:#?}");
    // Causes of loss come before causes of lateness.
    assert!(lines[8].starts_with("  memory: "), "{lines:#?}");
    let height: usize = lines.iter().map(|line| height(line)).sum();
    assert_eq!(height, 10, "{lines:#?}");
}
