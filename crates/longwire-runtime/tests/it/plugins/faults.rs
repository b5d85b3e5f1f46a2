//! A failing plugin is reported once, with its message, and never called again. Invalid results do
//! no harm.

use longwire_engine::{Link, LinkId, Verdict};
use longwire_runtime::Faults;
use longwire_testbed::support::{Folder, rows};

use crate::plugins::tools::{link, offer, parse, release};

/// Offers 20 frames to a link whose plugin fails at the 11th call, and returns the report.
fn report_of(option: &str, fault: &str, rest: &str) -> String {
    let line = format!("{option}=plugin:probe,after=10,fault={fault}{rest}");
    let (mut link, faults) = link(&line, 1);
    let mut last = 0;
    let mut found_at = None;
    for frame in 0..20 {
        let mut bytes = [0; 60];
        let verdict = offer(&mut link, 1000 + frame * 1000, &bytes);
        if let Verdict::Deliver(delivery) = verdict {
            link.edit(&delivery, &mut bytes);
            assert!(release(verdict) >= last, "time went back");
            last = release(verdict);
        }
        if faults.any() && found_at.is_none() {
            found_at = Some(frame);
        }
    }
    // A rate makes two calls per frame.
    let expected = if option == "rate" { 5 } else { 10 };
    assert_eq!(found_at, Some(expected), "{fault}: {:?}", faults.first());
    faults.first().unwrap()
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    assert!(
        message.starts_with("plugin ") && message.contains("/probe.so"),
        "{message}"
    );
    for part in parts {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
}

#[test]
fn an_error_in_any_hook_is_reported_with_its_message() {
    for (option, hook) in [
        ("loss", "lose"),
        ("delay", "delay"),
        ("rate", "ready"),
        ("rewrite", "rewrite"),
    ] {
        let message = report_of(option, "hook", "");
        assert_says(&message, &[&format!(": {hook}: no more of this")]);
    }
}

#[test]
fn results_out_of_range_are_reported() {
    for [option, fault, rest, parts] in rows(
        "
        loss | fate | | lose: for a packet of 60 bytes; 7 is not a fate
        loss | unfilled | | no fate was set
        loss | chance | ,real=1.5 | chance: probability 1.5 is outside 0..1
        delay | negative | | for a packet of 60 bytes at 11000 ns; -5 ns is negative
        delay | nan | ,real=2 | or it is NaN
        delay | unfilled | | no time was set
        delay | exponential | | mean -1 ns is negative
        delay | below | | 799 ns is below the plugin's delay_least_ns, 800
        rate | early | | ready: ; before the requested time
        rate | past | | depart: ; is before service begins
        ",
    ) {
        let parts: Vec<&str> = parts.split("; ").collect();
        assert_says(&report_of(option, fault, rest), &parts);
    }
}

#[test]
fn a_plugin_that_has_failed_is_not_called_again() {
    let folder = Folder::new();
    let path = folder.file("calls");
    let (mut link, _) = link(
        &format!("loss=plugin:probe,after=3,fault=hook,trace={path}"),
        1,
    );
    for frame in 0..100 {
        offer(&mut link, 1000 * frame, &[0; 60]);
    }
    drop(link);
    let traced = std::fs::read_to_string(&path).unwrap();
    assert_eq!(traced, "create call call call call destroy ");
}

#[test]
fn the_other_direction_sees_the_fault_too() {
    let faults = Faults::new();
    let config = || parse("loss=plugin:probe,after=1,fault=hook", &faults);
    let [mut up, mut down] = [0, 1].map(|id| Link::new(config().expect("a link"), 1, LinkId(id)));
    offer(&mut up, 1000, &[0; 60]);
    assert!(!faults.any());
    offer(&mut up, 2000, &[0; 60]);
    assert!(faults.any());
    // The first byte requests a loss, but the plugin is not called.
    assert_eq!(release(offer(&mut down, 3000, &[1; 60])), 3000);
}
