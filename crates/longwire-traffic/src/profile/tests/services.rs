//! Services on a link with a known rate and delay.

use std::sync::Arc;

use longwire_engine::Nanos;
use longwire_testbed::support::rows;

use super::{Emulated, emulated};
use crate::ARRIVALS;
use crate::profile::trial::Headers;
use crate::profile::y1564::{Limits, Service, Y1564};

fn one(name: &str, cir: &str, eir: Option<&str>) -> Service {
    Service {
        name: name.to_owned(),
        cir: cir.parse().expect("a rate"),
        eir: eir.map(|eir| eir.parse().expect("a rate")),
        limits: Limits {
            loss: 0.001,
            delay_us: 20_000.0,
            jitter_us: 5_000.0,
        },
        sizes: None,
        committed: Headers::default(),
        excess: None,
    }
}

fn service(cir: &str, eir: Option<&str>) -> Y1564 {
    Y1564 {
        services: vec![one("service", cir, eir)],
        step: Nanos::from_secs(1),
        performance: Nanos::from_secs(5),
        arrivals: Arc::from(ARRIVALS.parse("constant").expect("constant")),
    }
}

/// Framing of the information rate: 4 bytes of FCS per frame.
const INFORMATION: &str = "bytes:overhead=4";

#[test]
fn a_conforming_service_passes() {
    let mut device = emulated("120mbit", "10p", INFORMATION);
    let report = service("100mbit", Some("20mbit")).run(&mut device);
    let report = report.expect("a report");
    assert!(report.passed, "{report:?}");
    assert_eq!(report.services[0].steps.len(), 7);
    let policing = &report.services[0].steps[5];
    assert!(policing.name.contains("125 % of EIR"), "{}", policing.name);
    assert!((policing.received_bits_per_s / 120e6 - 1.0).abs() < 0.01);
    assert!(policing.loss > 0.03);
    assert!(report.services[0].steps[6].name.starts_with("performance"));
}

#[test]
fn each_limit_can_fail_a_service() {
    let failed = |device: &mut Emulated, service: Y1564| {
        let report = service.run(device).expect("a report");
        assert!(!report.passed);
        let steps = report.services.into_iter().flat_map(|it| it.steps);
        let failed = steps.filter(|step| !step.passed);
        let failed = failed.map(|step| (step.name, step.reasons.join(", ")));
        failed.collect::<Vec<_>>()
    };
    // The first link is too slow, so 5 % are lost at the committed rate. Without policing, 137.5
    // Mbit/s pass, but only 120 are allowed. The delay is too long in every step, the jitter at
    // least in one.
    for [rate, change, cir, eir, count, step, why] in rows(
        "
        95mbit | | 100mbit | | 1 | 100 % | loss
        1gbit | | 50mbit | 70mbit | 1 | | received more than CIR + EIR
        1gbit | delay=30ms | 100mbit | | 4 | | delay
        1gbit | delay=uniform:min=1ms,max=9ms order=reorder | 100mbit | | | | jitter
        ",
    ) {
        let mut device = emulated(rate, "10p", INFORMATION);
        device.change(change);
        let eir = (!eir.is_empty()).then_some(eir);
        let found = failed(&mut device, service(cir, eir));
        let is_all = count.is_empty() || found.len().to_string() == count;
        assert!(is_all, "{found:?}");
        for (name, reasons) in &found {
            assert!(name.starts_with(step), "{why}: {found:?}");
            assert!(reasons.starts_with(why), "{found:?}");
        }
    }
}

/// Services of 60 and 50 Mbit/s on a 100 Mbit/s link: each passes alone, but not both together.
#[test]
fn services_that_exceed_the_link_fail_together() {
    let mut test = service("60mbit", None);
    test.services.push(one("other", "50mbit", None));
    let mut device = emulated("100mbit", "10p", INFORMATION);
    let report = test.run(&mut device).expect("a report");
    assert!(!report.passed);
    for found in &report.services {
        let (last, steps) = found.steps.split_last().expect("steps");
        assert!(steps.iter().all(|step| step.passed), "{found:?}");
        assert_eq!(last.name, "performance at CIR");
    }
    // Check the sum, because with even spacing, a full queue may always drop frames of the same
    // service.
    let lost = report.services.iter().map(|found| found.steps[4].loss);
    assert!(lost.sum::<f64>() > 0.1);
    let out = report.services.iter();
    let out: f64 = out.map(|found| found.steps[4].received_bits_per_s).sum();
    assert!((out / 100e6 - 1.0).abs() < 0.01, "{out}");
    // On a faster link, both pass at their full rates.
    let mut device = emulated("115mbit", "10p", INFORMATION);
    let report = test.run(&mut device).expect("a report");
    assert!(report.passed, "{report:?}");
    for (found, cir) in report.services.iter().zip([60e6, 50e6]) {
        let rate = found.steps[4].received_bits_per_s;
        assert!((rate / cir - 1.0).abs() < 0.01, "{rate} of {cir}");
    }
}

/// A colour-aware policer drops excess frames and passes committed ones.
#[test]
fn marked_excess_is_a_separate_stream() {
    let mut test = service("50mbit", Some("20mbit"));
    test.services[0].excess = Some(Headers {
        dscp: Some(12),
        ..Headers::default()
    });
    let mut device = emulated("1gbit", "10p", INFORMATION);
    device.dropped_dscp = Some(12);
    let report = test.run(&mut device).expect("a report");
    assert!(report.passed, "{report:?}");
    let steps = &report.services[0].steps;
    let losses = steps[4..].iter();
    let losses = losses.map(|step| (step.name.as_str(), step.loss));
    let losses: Vec<(&str, f64)> = losses.collect();
    let expected = [
        ("CIR + EIR, committed", 0.0),
        ("CIR + EIR, excess", 1.0),
        ("policing: CIR + 125 % of EIR, committed", 0.0),
        ("policing: CIR + 125 % of EIR, excess", 1.0),
        ("performance at CIR", 0.0),
    ];
    assert_eq!(losses, expected);
    // A device that passes all frames does not police: 75 Mbit/s exceed the allowed 70 by more than
    // 5 %.
    let mut open = emulated("1gbit", "10p", INFORMATION);
    let report = test.run(&mut open).expect("a report");
    assert!(!report.passed);
    let failed = report.services[0].steps.iter().find(|step| !step.passed);
    assert!(failed.is_some_and(|step| step.name.ends_with("excess")));
}
