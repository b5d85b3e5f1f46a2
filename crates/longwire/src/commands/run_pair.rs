//! `longwire run A B --control …` and `longwire exec --control …`: a link
//! between two ports as a network of one link, which can be changed while it
//! runs.

use std::path::Path;

use longwire_engine::LinkOptions;

use super::run::RunArgs;
use crate::Error;
use crate::cli::DuplexArgs;
use longwire_engine::options::LINK_OPTIONS;
use longwire_topology::Topology;

/// The link's name.
const LINK: &str = "link";

/// Returns the topology of `run A B` with these options: ports `a` and `b`,
/// and one link between them for all frames.
///
/// # Errors
/// If the options do not fit together, or a link that can be controlled does
/// not take them.
pub(super) fn topology(b: &str, args: &RunArgs) -> Result<Topology, Error> {
    refuse_what_networks_lack(args)?;
    between([("a", args.a.as_str()), ("b", b)], &args.link, None)
}

/// Returns the topology of one link for all frames between two ports, each
/// with its name and what to open, up from the first to the second. Events
/// come from the scenario's file.
///
/// # Errors
/// If the options do not fit together, or the scenario is refused.
pub(super) fn between(
    ports: [(&str, &str); 2],
    link: &DuplexArgs,
    scenario: Option<&Path>,
) -> Result<Topology, Error> {
    // So that options that do not fit together cause the same message as
    // without --control.
    link.links()?;
    let options = link.options()?;
    let [(a, opens_a), (b, opens_b)] = ports;
    let text = format!(
        "[ports]\n{a} = {}\n{b} = {}\n\n[switching]\nmode = \"pairs\"\nreserved = \"pass\"\n\n\
         [[link]]\nname = \"{LINK}\"\nmatch = \"in-port={a}\"\n\n[link.up]\n{}\n[link.down]\n{}",
        quoted(opens_a),
        quoted(opens_b),
        lines(&options.up),
        lines(&options.down)
    );
    let read = Topology::parse_with_file("the command line", &text, scenario);
    read.map_err(|problems| {
        let problems = problems.iter();
        let problems = problems.map(|problem| match problem.remedy.as_str() {
            _ if scenario.is_some() => problem.to_string(),
            "" => problem.reason.clone(),
            remedy => format!("{}; {remedy}", problem.reason),
        });
        Error::Usage(problems.collect::<Vec<_>>().join("\n"))
    })
}

fn refuse_what_networks_lack(args: &RunArgs) -> Result<(), Error> {
    let given = [
        (args.one_way, "--one-way"),
        (args.gap_frames.is_some(), "--gap-frames"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Error::Usage(format!(
            "a link with --control runs as a network of one link (docs/control.md), which does \
             not take {option}: leave one of both out"
        ))),
        None => Ok(()),
    }
}

/// Returns options as lines of a TOML table.
fn lines(options: &LinkOptions) -> String {
    let given = options.given();
    let mut lines = String::new();
    for option in &LINK_OPTIONS {
        let texts = given.iter().filter(|(name, _)| *name == option.name);
        let texts: Vec<String> = texts.map(|(_, text)| quoted(text)).collect();
        match texts.as_slice() {
            [] => {}
            [text] => lines += &format!("{} = {text}\n", option.name),
            texts => lines += &format!("{} = [{}]\n", option.name, texts.join(", ")),
        }
    }
    lines
}

/// Quotes a text. JSON and TOML escape the same characters in the same way.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{Cli, Command};

    fn of(arguments: &str) -> Result<Topology, String> {
        let arguments = ["longwire", "run"].into_iter().chain(arguments.split(' '));
        let cli = Cli::try_parse_from(arguments).map_err(|error| error.to_string())?;
        let Command::Run(args) = &cli.command else {
            panic!("no run");
        };
        let b = args.b.as_deref().expect("two ports");
        topology(b, args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_options_are_those_of_the_link() {
        let found = of(
            "packet:x null --delay 20ms --up-rate 1mbit --loss 1% --loss nth:10 \
                        --control x.sock",
        );
        let topology = found.expect("it is right");
        assert_eq!(topology.links.len(), 1);
        let link = &topology.links[0];
        assert_eq!(&*link.name, LINK);
        assert_eq!(link.up.rate.as_deref(), Some("1mbit"));
        assert_eq!(link.up.loss, ["1%", "nth:10"]);
        let down = link.down.as_ref().expect("its directions are apart");
        assert_eq!(
            (down.rate.as_deref(), down.delay.as_deref()),
            (None, Some("20ms"))
        );
        assert_eq!(topology.rules.len(), 2, "all frames, either way");
        assert_eq!(topology.warnings, []);
    }

    #[test]
    fn presets_lie_under_options() {
        let topology = of("null packet:y --preset lte --delay 7ms --control x.sock");
        let topology = topology.expect("it is right");
        let up = &topology.links[0].up;
        assert_eq!(up.delay.as_deref(), Some("7ms"));
        assert!(up.rate.is_some());
    }

    #[test]
    fn options_that_networks_lack_are_refused() {
        let error = of("packet:x packet:y --one-way --control x.sock");
        let error = error.expect_err("it is refused");
        assert!(error.contains("--one-way"), "{error}");
        let error = of("packet:x packet:x --control x.sock");
        let error = error.expect_err("it is refused");
        assert!(error.contains("already"), "{error}");
    }
}
