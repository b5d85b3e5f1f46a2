//! Formats profile reports as tables.

use longwire_traffic::profile::{
    LatencyReport, Limit, Outcome, ProbeReport, ProfileReport, Rfc2544Report, Rfc2889Report,
    ServiceReport, SizeReport, StepReport, Trial,
};

use crate::Globals;
use crate::cli::Paint;
use crate::report::words::{count_of, micros, rate};
use crate::table::Table;

/// Returns the progress line of a finished trial.
pub(super) fn progress(trial: &Trial, outcome: &Outcome) -> String {
    let loss = outcome.loss() * 100.0;
    let remark = outcome.not_kept.as_ref().or(outcome.excuse.as_ref());
    let remark = remark.map_or(String::new(), |remark| format!(" ({remark})"));
    format!(
        "{}: {} sent, {} received, {loss:.4} % lost{remark}",
        trial.purpose, outcome.sent, outcome.received
    )
}

/// Formats a run's probe report as lines.
pub fn probe_lines(report: &ProbeReport) -> Vec<String> {
    let ProbeReport {
        sent,
        received,
        lost,
        loss,
        duplicates,
        reordered,
        unseen,
        delay_us,
        jitter_us,
    } = report;
    let counts = format!(
        "probes: {received} of {sent} received, {lost} lost ({:.4} %), {duplicates} duplicates, \
         {reordered} reordered",
        loss * 100.0
    );
    let unseen = (*unseen > 0).then(|| {
        let frames = count_of(*unseen, "frame");
        format!(
            "  {frames} arrived but could not be examined, for example because the receive ring \
             was full; counted as lost"
        )
    });
    let delay = format!(
        "  delay: min {}, median {}, p99 {}, max {}; jitter {} (RFC 3550)",
        micros(delay_us.min),
        micros(delay_us.p50),
        micros(delay_us.p99),
        micros(delay_us.max),
        micros(*jitter_us)
    );
    let lines = std::iter::once(counts).chain(unseen);
    lines.chain([delay]).collect()
}

pub(super) fn print(report: &ProfileReport, globals: &Globals) {
    let paint = Paint::new(globals, &std::io::stdout());
    match report {
        ProfileReport::Rfc2544(report) => print_rfc2544(report, paint),
        ProfileReport::Rfc2889(report) => print_rfc2889(report, paint),
        ProfileReport::Y1564(report) => {
            for service in &report.services {
                print_service(service, paint);
            }
        }
    }
    let verdict = if report.passed() {
        paint.good("passed")
    } else {
        paint.bad("failed")
    };
    println!("{verdict}");
}

fn print_rfc2544(report: &Rfc2544Report, paint: Paint) {
    let (rate, seconds) = (&report.rate, report.trial_s);
    println!("RFC 2544: 100 % is {rate}, trials of {seconds} s");
    print_throughput(&report.sizes, paint);
    print_loss(&report.sizes, paint);
    print_bursts(&report.sizes, paint);
}

/// Formats the cause that limited a throughput.
fn limit(found: &Limit) -> String {
    match (found.kind, found.reason.as_deref()) {
        ("none", _) => "all tested".to_owned(),
        ("device", _) => "device".to_owned(),
        (_, reason) => format!("unknown: {}", reason.unwrap_or("not tested")),
    }
}

fn print_throughput(sizes: &[SizeReport], paint: Paint) {
    let mut table = Table::headed(
        "bytes | share | frames/s | at 100 % | rate | delay p50 | p99 | max | jitter | limit",
    );
    for size in sizes {
        let Some(found) = &size.throughput else {
            continue;
        };
        let delay = |value: fn(&LatencyReport) -> f64| {
            let latency = size.latency.as_ref();
            latency.map_or("-".to_owned(), |latency| micros(value(latency)))
        };
        table.row(vec![
            size.frame_size.to_string(),
            format!("{:.2} %", found.share * 100.0),
            format!("{:.0}", found.frames_per_s),
            format!("{:.0}", size.whole_frames_per_s),
            rate(found.bits_per_s),
            delay(|latency| latency.delay_us.p50),
            delay(|latency| latency.delay_us.p99),
            delay(|latency| latency.delay_us.max),
            delay(|latency| latency.jitter_us),
            limit(&found.limit),
        ]);
    }
    table.print_under(paint.bold("Throughput (26.1) and latency at that rate (26.2)"));
}

fn print_loss(sizes: &[SizeReport], paint: Paint) {
    let mut table = Table::headed("bytes | load | sent | received | lost | forwarded/s | ");
    for size in sizes {
        for step in &size.loss {
            let void = step.void.as_ref();
            table.row(vec![
                size.frame_size.to_string(),
                format!("{:.0} %", step.share * 100.0),
                step.sent.to_string(),
                step.received.to_string(),
                format!("{:.4} %", step.loss * 100.0),
                format!("{:.0}", step.forwarding_per_s),
                void.map_or(String::new(), |reason| format!("void: {reason}")),
            ]);
        }
    }
    table.print_under(paint.bold("Frame loss rate (26.3), forwarding rate (RFC 2889)"));
}

fn print_bursts(sizes: &[SizeReport], paint: Paint) {
    let mut table = Table::headed("bytes | frames | shortest | tries | limit");
    for size in sizes {
        let Some(found) = &size.bursts else { continue };
        table.row(vec![
            size.frame_size.to_string(),
            format!("{:.0}", found.frames_mean),
            found.frames_min.to_string(),
            found.tries.to_string(),
            limit(&found.limit),
        ]);
    }
    table.print_under(paint.bold("Back-to-back frames (26.4)"));
}

fn print_rfc2889(report: &Rfc2889Report, paint: Paint) {
    let (rate, seconds) = (&report.rate, report.trial_s);
    println!("RFC 2889: 100 % is {rate}, trials of {seconds} s");
    let mut table = Table::headed("bytes | maximum offered | forwarded | maximum | at load");
    for found in &report.forwarding {
        let number = |value: Option<f64>| value.map_or("void".to_owned(), |n| format!("{n:.0}"));
        let at = found.maximum_at.map(|at| format!("{:.0} %", at * 100.0));
        table.row(vec![
            found.frame_size.to_string(),
            format!("{:.0}", found.whole_frames_per_s),
            number(found.at_maximum_load_per_s),
            number(found.maximum_per_s),
            at.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.print_under(paint.bold("Forwarding rates (5.1, 5.2), in frames/s"));
    if let Some(found) = &report.caching {
        println!(
            "\n{}: {} of {} addresses ({})",
            paint.bold("Address caching capacity (5.7)"),
            found.addresses,
            found.addresses_tried,
            limit(&found.limit)
        );
    }
    if let Some(found) = &report.learning {
        println!(
            "\n{}: {:.0}/s, {} addresses ({})",
            paint.bold("Address learning rate (5.8)"),
            found.frames_per_s,
            found.addresses,
            limit(&found.limit)
        );
    }
}

fn print_service(report: &ServiceReport, paint: Paint) {
    let eir = report.eir.as_deref().unwrap_or("none");
    println!("Y.1564, {}: CIR {}, EIR {eir}", report.name, report.cir);
    println!(
        "limits: loss {:.4} %, delay {}, jitter {}\n",
        report.limits.loss * 100.0,
        micros(report.limits.delay_us),
        micros(report.limits.jitter_us)
    );
    let mut table = Table::headed("step | sent | received | lost | delay max | jitter | ");
    for step in &report.steps {
        table.row(vec![
            step.name.clone(),
            rate(step.sent_bits_per_s),
            rate(step.received_bits_per_s),
            format!("{:.4} %", step.loss * 100.0),
            micros(step.delay_max_us),
            micros(step.jitter_us),
            outcome(step, paint),
        ]);
    }
    table.print();
    println!();
}

fn outcome(step: &StepReport, paint: Paint) -> String {
    match (step.passed, step.void) {
        (true, _) => paint.good("passed"),
        (false, true) => paint.warn(format_args!("void: {}", step.reasons.join(", "))),
        (false, false) => paint.bad(step.reasons.join(", ")),
    }
}
