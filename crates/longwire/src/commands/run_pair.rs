//! `longwire run A B --control …` and `longwire exec --control …`: a link
//! between two ports as a network of one link, which can be changed while it
//! runs.

use std::path::Path;

use super::run::RunArgs;
use super::run_network;
use crate::cli::DuplexArgs;
use crate::report::start::Announcement;
use crate::{Error, Globals};
use longwire_packet::bridge::PortIndex;
use longwire_runtime::LinkSetup;
use longwire_topology::{CarrierPlan, PortPlan, Topology};

/// Returns the topology of `run A B` with these options: ports `a` and `b`,
/// and one link between them for all frames.
///
/// # Errors
/// If the options do not fit together, or a link that can be controlled does
/// not take them.
pub(super) fn topology(b: &str, args: &RunArgs) -> Result<Topology, Error> {
    refuse_what_networks_lack(args)?;
    let ports = [("a", args.a.as_str()), ("b", b)];
    between(ports, (&args.link, args.carrier), None)
}

/// Returns the topology of one link for all frames between two ports, each
/// with its name and what to open, up from the first to the second. Events
/// come from the scenario's file. With `carrier`, a direction that is down takes the
/// carrier of the interface that it leads to.
///
/// # Errors
/// If the options do not fit together, or the scenario is refused.
pub(super) fn between(
    ports: [(&str, &str); 2],
    (link, carrier): (&DuplexArgs, bool),
    scenario: Option<&Path>,
) -> Result<Topology, Error> {
    let ports = ports.map(|(name, opens)| PortPlan {
        name: name.to_owned(),
        opens: opens.to_owned(),
    });
    let read = Topology::pair(ports, link.specs()?, scenario);
    let mut topology = read.map_err(|problems| {
        let problems = problems.iter();
        let problems = problems.map(|problem| match problem.remedy.as_str() {
            _ if scenario.is_some() => problem.to_string(),
            "" => problem.reason.clone(),
            remedy => format!("{}; {remedy}", problem.reason),
        });
        Error::Usage(problems.collect::<Vec<_>>().join("\n"))
    })?;
    if carrier {
        let toward = [(0, "down"), (1, "up")];
        let plan = |(port, way)| CarrierPlan {
            port: PortIndex(port),
            links: vec![format!("{LINK}.{way}")],
        };
        topology.carriers = toward.map(plan).into();
    }
    Ok(topology)
}

/// The name of the only link of a run.
const LINK: &str = "link";

/// Returns both directions of the link `name`, as the report of such a run names them.
///
/// # Errors
/// As [`DuplexArgs::links`].
pub(super) fn directions(name: &str, link: &DuplexArgs) -> Result<[LinkSetup; 2], Error> {
    let (up, down) = link.links()?;
    Ok([
        LinkSetup::new(format!("{name}.up"), up),
        LinkSetup::new(format!("{name}.down"), down),
    ])
}

/// Describes the link of such a run, with the warnings of its topology.
///
/// # Errors
/// As [`DuplexArgs::links`], and if stderr cannot be written.
pub(super) fn announce(
    link: &DuplexArgs,
    topology: &Topology,
    globals: &Globals,
) -> Result<Announcement, Error> {
    let mut announcement = Announcement::of_links(&directions(LINK, link)?, globals)?;
    let warnings = run_network::warn(topology, globals)?;
    announcement.warnings.extend(warnings);
    Ok(announcement)
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
        assert_eq!(&*link.name, "link");
        assert_eq!(
            link.up.to_string(),
            "rate=1mbit loss=1% loss=nth:10 delay=20ms"
        );
        let down = link.down.as_ref().expect("its directions are apart");
        assert_eq!(down.to_string(), "loss=1% loss=nth:10 delay=20ms");
        assert_eq!(topology.rules.len(), 2, "all frames, either way");
        assert_eq!(topology.warnings, []);
    }

    #[test]
    fn presets_lie_under_options() {
        let topology = of("null packet:y --preset lte --delay 7ms --control x.sock");
        let topology = topology.expect("it is right");
        let up = &topology.links[0].up;
        assert_eq!(up.texts("delay"), ["7ms"]);
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
