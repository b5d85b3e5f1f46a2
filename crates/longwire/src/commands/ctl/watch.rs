//! `ctl watch`: prints counters periodically.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;

use console::Term;
use longwire_client::{Client, StreamEnd};
use longwire_control::responses::{Rates, StatsEvent, Totals};
use longwire_units::count_of;
use serde_json::Value;

use super::{WatchArgs, encoded, read};
use crate::report::words::rate;
use crate::signals::stop_flag;
use crate::table::Table;
use crate::{Error, Globals};

/// Prints events until a signal arrives, the run ends, or `--count` events are printed.
pub(super) fn run(args: &WatchArgs, client: &mut Client, globals: &Globals) -> Result<(), Error> {
    let stop = stop_flag()?;
    let each = args.name.is_some() && !args.sum;
    let name = args.name.as_deref().unwrap_or("*");
    let path = format!(
        "/v1/stats/stream?match={}&every={}&links={}",
        encoded(name),
        encoded(&args.every.to_string()),
        if each { "each" } else { "sum" }
    );
    let mut screen = Screen {
        name,
        json: globals.json,
        terminal: io::stdout().is_terminal().then(Term::stdout),
        drawn: 0,
    };
    let mut left = args.count;
    let ended = client.stream(&path, &stop, |value| -> Result<ControlFlow<()>, Error> {
        screen.show(value)?;
        left = left.map(|left| left - 1);
        Ok(match left {
            Some(0) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    })?;
    match (ended, left) {
        (StreamEnd::Closed, Some(left)) => Err(Error::failed(format!(
            "the run ended {} early",
            count_of(left, "report")
        ))),
        (StreamEnd::Closed, None) => {
            if globals.talks() {
                writeln!(io::stderr(), "the run has ended")?;
            }
            Ok(())
        }
        (StreamEnd::Stopped, _) => Ok(()),
    }
}

/// Output for events.
struct Screen<'a> {
    name: &'a str,
    json: bool,
    /// Terminal, to query its size; `None` if the output is not a terminal.
    terminal: Option<Term>,
    /// Rows drawn for the previous event, to be overwritten.
    drawn: usize,
}

impl Screen<'_> {
    fn show(&mut self, value: Value) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{value}")?;
        } else {
            let event = read::<StatsEvent>(value)?;
            match &self.terminal {
                Some(terminal) => {
                    let (rows, columns) = terminal.size();
                    let text = page(self.name, &event, rows.into(), columns.into());
                    if self.drawn > 0 {
                        // Move up to the first row, and clear to the end of the screen.
                        write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
                    }
                    self.drawn = text.lines().count();
                    out.write_all(text.as_bytes())?;
                }
                None => write!(out, "{}", lines(self.name, &event))?,
            }
        }
        // Flush, so that a pipe receives each event immediately.
        Ok(out.flush()?)
    }
}

/// A row: name, counters, and rates since the previous event.
type WatchRow<'a> = (&'a str, &'a Totals, Option<&'a Rates>);

/// Returns the rows of an event: its links by name, or their total.
fn rows<'a>(name: &'a str, event: &'a StatsEvent) -> Vec<WatchRow<'a>> {
    match &event.each {
        Some(each) => each
            .iter()
            .map(|row| (row.name.as_str(), &row.totals, row.rates.as_ref()))
            .collect(),
        None => vec![(name, &event.totals, event.rates.as_ref())],
    }
}

/// Returns the lines that fit in the terminal.
fn page(name: &str, event: &StatsEvent, rows_max: usize, columns_max: usize) -> String {
    /// Lines around the rows: title, header, omission note and cursor.
    const AROUND: usize = 4;
    let rows = rows(name, event);
    let shown = rows.len().min(rows_max.saturating_sub(AROUND).max(1));
    let mut table = Table::headed("link | packets in/s | in | out | dropped/s | dropped | queued");
    for (name, counted, rates) in &rows[..shown] {
        let of = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            (*name).to_owned(),
            of(rates.map(|rates| format!("{:.0}", rates.packets_in_per_s))),
            of(rates.map(|rates| rate(rates.bits_in_per_s))),
            of(rates.map(|rates| rate(rates.bits_out_per_s))),
            of(rates.map(|rates| format!("{:.0}", rates.drops_per_s))),
            counted.dropped.total().to_string(),
            counted.queued.to_string(),
        ]);
    }
    let links = count_of(event.links as u64, "link");
    let mut text = format!("{:.1} s, {links}\n", event.elapsed_s);
    text += &table.text();
    if rows.len() > shown {
        let more = count_of((rows.len() - shown) as u64, "more link");
        text += &format!("and {more}\n");
    }
    // A longer line would wrap, and the next event would not overwrite it completely.
    let cut = |line: &str| line.chars().take(columns_max.saturating_sub(1)).collect();
    let lines: Vec<String> = text.lines().map(cut).collect();
    lines.join("\n") + "\n"
}

/// Formats one line per link.
fn lines(name: &str, event: &StatsEvent) -> String {
    let rows = rows(name, event).into_iter().map(|(name, counted, rates)| {
        let traffic = &counted.totals.traffic;
        let rates = match rates {
            None => format!(
                "in {}, out {}",
                count_of(traffic.packets_in, "packet"),
                traffic.packets_out
            ),
            Some(rates) => format!(
                "in {:.0}/s {}, out {:.0}/s {}, dropped {:.0}/s",
                rates.packets_in_per_s,
                rate(rates.bits_in_per_s),
                rates.packets_out_per_s,
                rate(rates.bits_out_per_s),
                rates.drops_per_s
            ),
        };
        format!(
            "{:.3} s  {name}: {rates}; dropped {}, queued {}\n",
            event.elapsed_s,
            counted.dropped.total(),
            counted.queued
        )
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event() -> StatsEvent {
        let totals = json!({
            "packets_in": 10, "bytes_in": 1000, "packets_out": 8, "bytes_out": 800,
            "drops": { "loss": 2, "mtu": 0 }, "dropped": { "loss": 2 }, "raised": 0, "ecn_marked": 0,
            "corrupted": 0, "duplicated": 0, "late": 0, "queued": 0,
        });
        let rates = json!({
            "packets_in_per_s": 10.0, "bits_in_per_s": 8000.0, "packets_out_per_s": 8.0,
            "bits_out_per_s": 6400.0, "drops_per_s": 2.0,
        });
        let row =
            |name: &str, rates: &Value| json!({ "name": name, "totals": totals, "rates": rates });
        let each = [row("a.down", &rates), row("a.up", &Value::Null)];
        read::<StatsEvent>(json!({
            "elapsed_s": 12.5, "interval_s": 1.0, "links": 2, "totals": totals,
            "rates": rates, "each": each,
        }))
        .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_line_shows_the_traffic_of_a_link() {
        assert_eq!(
            lines("a*", &event()),
            "12.500 s  a.down: in 10/s 8.00 kbit/s, out 8/s 6.40 kbit/s, dropped 2/s; dropped 2, \
             queued 0\n12.500 s  a.up: in 10 packets, out 8; dropped 2, queued 0\n"
        );
    }

    #[test]
    fn a_page_is_no_larger_than_the_terminal() {
        let small = page("a*", &event(), 5, 20);
        let rows: Vec<&str> = small.lines().collect();
        assert_eq!(rows.len(), 4, "{small}");
        assert_eq!(rows[3], "and 1 more link");
        assert!(rows.iter().all(|row| row.chars().count() < 20), "{small}");
        let large = page("a*", &event(), 50, 200);
        assert_eq!(large.lines().count(), 4, "{large}");
        assert!(large.contains("8.00 kbit/s"), "{large}");
    }
}
