//! Prints a run's counters, ports, paths, rules, report and changes.

use std::io::{self, Write};

use longwire_client::Client;
use longwire_control::responses::{Changes, Overview, Paths, Ports, Report, Stats, Totals};
use longwire_network::RuleView;
use longwire_runtime::counters::Traffic;
use longwire_runtime::deciding::PortReport;
use longwire_units::count_of;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{encoded, read};
use crate::report::{change_line, print_json};
use crate::table::Table;
use crate::{Error, Globals};

/// Rules per request.
const PAGE: usize = 10_000;

/// Prints counter totals.
pub(super) fn stats(
    name: Option<&str>,
    client: &mut Client,
    globals: &Globals,
) -> Result<(), Error> {
    let path = format!("/v1/stats?match={}", encoded(name.unwrap_or("*")));
    show(client.get(&path)?, globals, |sums: Stats| {
        let directions = count_of(sums.links as u64, "direction");
        let mut text = format!("{:.3} s, {directions}\n", sums.elapsed_s);
        for (name, count) in named(&sums.totals) {
            text += &format!("{name:>20}  {count}\n");
        }
        text
    })
}

/// Prints the state of the run.
pub(super) fn status(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let address = client.address().clone();
    show(client.get("/v1")?, globals, |run: Overview| {
        format!(
            "{address}: longwire {}, running for {:.3} s, seed {}, {}, {}\n",
            run.version,
            run.elapsed_s,
            run.seed,
            count_of(run.links as u64, "link"),
            count_of(run.paths as u64, "path")
        )
    })
}

pub(super) fn ports(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    show(client.get("/v1/ports")?, globals, |ports: Ports| {
        ports_table(ports.ports).text()
    })
}

fn ports_table(ports: Vec<PortReport>) -> Table {
    let mut table = Table::headed("port | in | out | late p50 us | p99 | max | artifacts");
    for port in ports {
        let artifacts = port.artifacts.nonzero();
        let artifacts = artifacts.map(|(kind, count)| format!("{kind} {count}"));
        let artifacts = artifacts.collect::<Vec<_>>().join(", ");
        table.row(vec![
            match port.lost {
                None => port.name,
                Some(lost) => format!("{} (gone after {:.1} s)", port.name, lost.after_s),
            },
            port.traffic.packets_in.to_string(),
            port.traffic.packets_out.to_string(),
            format!("{:.1}", port.lateness_us.p50),
            format!("{:.1}", port.lateness_us.p99),
            format!("{:.0}", port.lateness_us.max),
            match artifacts.as_str() {
                "" => "none".to_owned(),
                _ => artifacts,
            },
        ]);
    }
    table
}

pub(super) fn paths(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    show(client.get("/v1/paths")?, globals, |paths: Paths| {
        let mut table = Table::headed("path | via | match | moved to");
        for path in paths.paths {
            table.row(vec![
                path.name,
                path.via.join(" "),
                path.matchers.join(" "),
                path.moved_to.unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        table.text()
    })
}

/// Fetches all rules in pages and prints them.
pub(super) fn rules(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct RulePage {
        rules: Vec<Value>,
        next: Option<usize>,
    }
    let mut rules = Vec::new();
    let mut skip = Some(0);
    while let Some(from) = skip {
        let page: RulePage = read(client.get(&format!("/v1/rules?skip={from}&limit={PAGE}"))?)?;
        rules.extend(page.rules);
        skip = page.next.filter(|next| *next > from);
    }
    show(Value::Array(rules), globals, |rules: Vec<RuleView>| {
        let mut table = Table::headed("rule | match | leads to");
        for rule in rules {
            table.row(vec![rule.rule.to_string(), rule.matcher, rule.leads_to]);
        }
        table.text()
    })
}

/// Prints the current report.
pub(super) fn report(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    show(client.get("/v1/report")?, globals, |report: Report| {
        let mut text = ports_table(report.ports).text();
        text += &format!(
            "switch: {} forwarded, {} flooded, {} learnt; {} passed without a link, {} dropped \
             without a rule\n{:.3} s, seed {}, {} in flight\n",
            report.switch.forwarded,
            report.switch.flooded.iter().sum::<u64>(),
            count_of(report.switch.learnt, "station"),
            report.counts.passed,
            report.counts.unmatched_dropped,
            report.duration_s,
            report.seed,
            report.in_flight
        );
        for note in report.notes {
            text += &format!("note: {note}\n");
        }
        text
    })
}

/// Prints past and scheduled changes.
pub(super) fn changes(client: &mut Client, globals: &Globals) -> Result<(), Error> {
    show(client.get("/v1/changes")?, globals, |changes: Changes| {
        let mut text = String::new();
        if changes.forgotten > 0 {
            let older = count_of(changes.forgotten, "older change");
            text += &format!("{older} no longer stored\n");
        }
        for done in changes.changes {
            text += &format!("{}\n", change_line(&done));
        }
        text
    })
}

/// Prints a response as JSON or as text.
fn show<T: DeserializeOwned>(
    response: Value,
    globals: &Globals,
    words: impl FnOnce(T) -> String,
) -> Result<(), Error> {
    if globals.json {
        return print_json(&response).map(drop);
    }
    let text = words(read(response)?);
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the counters to show, by name: traffic and queue always, others only if nonzero.
pub(super) fn named(counted: &Totals) -> Vec<(String, u64)> {
    let totals = &counted.totals;
    let mut shown: Vec<(String, u64)> = Vec::new();
    let mut rare = Vec::new();
    let labelled = totals.counted();
    for (counter, count) in labelled.filter(|(counter, _)| !counter.label.is_empty()) {
        if Traffic::COUNTERS.contains(counter) {
            shown.push((counter.label.to_owned(), count));
        } else if count > 0 {
            rare.push((counter.label.to_owned(), count));
        }
    }
    shown.push(("queued".to_owned(), counted.queued));
    let dropped = counted.dropped.iter();
    shown.extend(dropped.map(|(reason, count)| (format!("dropped: {reason}"), *count)));
    shown.append(&mut rare);
    shown
}
