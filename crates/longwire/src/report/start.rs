//! Messages at the start of a run: link descriptions and warnings.

use std::io;

use longwire_engine::{LinkConfig, LinkSpec, NoLoader};
use longwire_runtime::LinkSetup;
use longwire_topology::Topology;
use longwire_units::words::count_of;

use super::output::{print_line, printable};
use crate::Globals;
use crate::cli::Paint;
use crate::table::joined;

/// Description of a run's links, printed once the run has started.
#[derive(Debug, Default)]
pub struct Announcement {
    lines: Vec<String>,
    /// Warnings and remarks already printed; the report repeats them.
    pub warnings: Vec<String>,
}

impl Announcement {
    /// Describes links in one line, or with `--verbose` in a line per link with all options. Prints
    /// warnings about the links.
    pub fn of_links<'a>(
        links: impl IntoIterator<Item = &'a LinkSetup>,
        globals: &Globals,
    ) -> Announcement {
        let links = links.into_iter();
        let mut announcement = Announcement::default();
        announcement.add_links(links.map(|link| (&*link.name, &link.config)), globals);
        announcement
    }

    /// Returns whether the links have not been described yet.
    pub fn lacks_links(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds named links; see [`Announcement::of_links`].
    pub fn add_links<'a>(
        &mut self,
        links: impl Iterator<Item = (&'a str, &'a LinkConfig)>,
        globals: &Globals,
    ) {
        let paint = Paint::new(globals, &io::stderr());
        let links: Vec<_> = links.collect();
        let named = links.iter().copied();
        let described = |(name, text): (String, String)| {
            let name = paint.bold(format_args!("{name}:"));
            format!("{name} {text}")
        };
        self.lines = if globals.verbose {
            let lines = named.clone();
            let lines = lines.map(|(name, config)| (name.to_owned(), line(config)));
            lines.map(described).collect()
        } else {
            let texts = named.clone().map(|(name, config)| (name, options(config)));
            vec![joined(together(texts).into_iter().map(described), "; ")]
        };
        let warnings = warnings(named);
        doubt(&warnings, globals);
        self.warnings.extend(warnings);
    }

    /// Describes a network of many links in a line: `6 links between 3 ports`.
    pub fn of_network(topology: &Topology, warnings: Vec<String>) -> Announcement {
        let links = count_of(topology.links.len() as u64, "link");
        let ports = count_of(topology.ports.len() as u64, "port");
        Announcement {
            lines: vec![format!("{links} between {ports}")],
            warnings,
        }
    }

    /// Describes the outputs, each with its link if there is one.
    pub fn sending(to: &[String], links: Announcement) -> Announcement {
        let lines = std::iter::once(format!("sending to {}", to.join(", "))).chain(links.lines);
        Announcement {
            lines: vec![joined(lines, "; ")],
            warnings: links.warnings,
        }
    }

    /// Prints the description.
    pub fn print(&self, globals: &Globals) {
        for line in self.lines.iter().filter(|_| globals.talks()) {
            print_line(format_args!("{line}"));
        }
    }
}

/// Groups the names of links with equal texts.
fn together<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Vec<(String, String)> {
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for (name, text) in texts {
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], text)),
        }
    }
    let named = groups.into_iter().map(|(names, text)| {
        let names = match names.as_slice() {
            [up, down] => match (up.strip_suffix(".up"), down.strip_suffix(".down")) {
                (Some(link), Some(same)) if link == same => format!("{link}, each direction"),
                _ => names.join(", "),
            },
            names => names.join(", "),
        };
        (names, text)
    });
    named.collect()
}

/// Formats a link's non-default options and its derived queue.
fn options(config: &LinkConfig) -> String {
    let default = LinkSpec::new().build(&NoLoader);
    let default = default.map_or_else(|_| Vec::new(), |link| link.describe());
    let text = described(config, "derived", |key, value| match key {
        "queue" => config.queue.is_some() || !config.rate.is_unlimited(),
        _ => !default
            .iter()
            .any(|(name, known)| *name == key && known == value),
    });
    match text.as_str() {
        "" => "unlimited rate, no delay, no loss".to_owned(),
        _ => text,
    }
}

/// Formats all values of a link, configured and derived, except unused rare features.
fn line(config: &LinkConfig) -> String {
    const RARE: [&str; 5] = ["corrupt", "duplicate", "reorder", "router", "rewrite"];
    described(config, "derived from rate and delay", |key, value| {
        !RARE.contains(&key) || value != "none"
    })
}

/// Formats the selected values of a link; `derived` marks a queue that is not configured.
fn described(config: &LinkConfig, derived: &str, chosen: impl Fn(&str, &str) -> bool) -> String {
    let is_derived = config.queue.is_none() && !config.rate.is_unlimited();
    let values = config.describe().into_iter();
    let values = values.filter(|(key, value)| chosen(key, value));
    let parts = values.map(|(key, value)| match key {
        "queue" if is_derived => format!("{key} {value} ({derived})"),
        _ => format!("{key} {value}"),
    });
    joined(parts, ", ")
}

/// Prints warnings about probable mistakes, even with --quiet. With --json, only the report
/// contains them.
pub fn doubt(warnings: &[String], globals: &Globals) {
    let paint = Paint::new(globals, &io::stderr());
    for warning in warnings.iter().filter(|_| !globals.json) {
        print_line(format_args!(
            "{} {}",
            paint.warn("warning:"),
            printable(warning)
        ));
    }
}

/// Prints warnings that are also in the report.
pub fn warn(warnings: &[String], globals: &Globals) {
    if globals.talks() {
        doubt(warnings, globals);
    }
}

/// Prints notes about the start with --verbose.
pub fn notes<'a>(notes: impl IntoIterator<Item = &'a String>, globals: &Globals) {
    for text in notes.into_iter().filter(|_| globals.verbose) {
        note(text, globals);
    }
}

/// Prints a note, except with --quiet.
pub fn note(text: &str, globals: &Globals) {
    let paint = Paint::new(globals, &io::stderr());
    if globals.talks() {
        let note = paint.dim(format_args!("note: {text}"));
        print_line(format_args!("{note}"));
    }
}

/// Returns warnings about links; a warning that applies to several links appears once.
fn warnings<'a>(links: impl Iterator<Item = (&'a str, &'a LinkConfig)>) -> Vec<String> {
    let found = links.flat_map(|(name, config)| {
        let texts = warnings_of(config).into_iter();
        texts.map(move |text| (name, text))
    });
    let found = together(found).into_iter();
    let warnings = found.map(|(names, text)| format!("{names}: {text}"));
    warnings.collect()
}

fn warnings_of(config: &LinkConfig) -> Vec<String> {
    let doubts = config.doubts.iter();
    let doubts = doubts.map(|doubt| format!("{}: {}", doubt.option, doubt.message));
    let undersized = config.queue.as_ref().and_then(|queue| {
        let enough = config.queue_undersized()?;
        Some(format!(
            "a queue of {queue} is too small for one TCP flow to fill this link; {enough} suffices"
        ))
    });
    doubts.chain(undersized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(options: &str) -> LinkConfig {
        let spec: LinkSpec = options.parse().unwrap_or_else(|error| panic!("{error}"));
        let built = spec.build(&NoLoader);
        built.unwrap_or_else(|error| panic!("{error}"))
    }

    fn brief(links: &[(&str, &LinkConfig)]) -> Vec<(String, String)> {
        together(links.iter().map(|(name, config)| (*name, options(config))))
    }

    #[test]
    fn one_line_has_both_directions_and_the_derived_queue() {
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let one = link("rate=10mbit delay=20ms");
        let same = [("link.up", &one), ("link.down", &one)];
        let text = "rate 10mbit, queue 125000b (derived), delay 20ms";
        assert_eq!(brief(&same), [pair("link, each direction", text)]);
        let slow = link("rate=1mbit queue=20p delay=20ms");
        let plain = link("rate=unlimited delay=0");
        let apart = [("link.up", &slow), ("link.down", &plain), ("out1", &one)];
        assert_eq!(
            brief(&apart),
            [
                pair("link.up", "rate 1mbit, queue 20p, delay 20ms"),
                pair("link.down", "unlimited rate, no delay, no loss"),
                pair("out1", text),
            ]
        );
    }

    #[test]
    fn a_derived_queue_is_marked_as_derived() {
        let derived = line(&link("rate=10mbit delay=20ms"));
        assert!(derived.contains("rate 10mbit"), "{derived}");
        let mark = "(derived from rate and delay)";
        assert!(derived.contains(mark), "{derived}");
        let given = line(&link("rate=10mbit queue=100p delay=20ms"));
        assert!(given.contains("queue 100p,"), "{given}");
        assert!(!given.contains("derived"), "{given}");
    }

    #[test]
    fn a_warning_about_an_undersized_queue_has_a_sufficient_size() {
        // 10 Mbit/s for 40 ms: 50,000 bytes, 34 full frames.
        let up = |options: &str| warnings(std::iter::once(("up", &link(options))));
        let said = up("rate=10mbit queue=10p delay=20ms");
        assert_eq!(said.len(), 1);
        let text = "up: a queue of 10p is too small";
        assert!(said[0].starts_with(text), "{said:?}");
        assert!(said[0].ends_with("34p suffices"), "{said:?}");
        assert!(up("rate=10mbit queue=34p delay=20ms").is_empty());
        let jitter = "rate=10mbit delay=uniform:min=10ms,max=20ms order=";
        assert_eq!(up(&format!("{jitter}in-order")).len(), 1);
        assert_eq!(up(&format!("{jitter}reorder")).len(), 0);
    }

    #[test]
    fn doubtful_values_are_warned_of_once() {
        let doubtful = link("rate=10mbps delay=20ms");
        let plain = link("rate=10mbit delay=20ms");
        for (up, text) in [
            (&doubtful, "link, each direction: rate: 10mbps is 80mbit"),
            (&plain, "link.down: rate: 10mbps is 80mbit"),
        ] {
            let said = warnings([("link.up", up), ("link.down", &doubtful)].into_iter());
            assert!(said.len() == 1 && said[0].starts_with(text), "{said:?}");
        }
    }
}
