//! `longwire attach` without a node: a run with the attachment's links.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use longwire_attach::FoundTarget;
use longwire_fabric::NetworkReport;
use longwire_io::attach::{Engage, PreparedLink};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_node::attached::AttachedLinks;
use longwire_node::open_files::raise_limit;
use longwire_node::store::Facts;
use longwire_node::{place, short_end};
use longwire_runtime::RunningNetwork;

use super::registry::Registration;
use super::{AttachArgs, announce, find};
use crate::commands::run_network::{self, NetworkSetup};
use crate::commands::topologies;
use crate::report::finish::ReportStream;
use crate::report::start;
use crate::report::stderr::print_line;
use crate::signals::stop_flag;
use crate::watch::until_stopped;
use crate::{Error, Globals};

/// Attaches a link until a signal, the end of `--time` or of the interfaces.
pub(super) fn attach(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (spec, place, found) = find(args)?;
    let FoundTarget {
        namespace,
        label,
        description,
        ..
    } = found;
    raise_limit();
    let prepared = place.prepare(&namespace, &BTreeMap::new(), 0)?;
    // An open handle would keep the namespace alive after its last process.
    drop(namespace);
    let interfaces = prepared.iter().map(PreparedLink::interface);
    let interfaces: Vec<String> = interfaces.map(str::to_owned).collect();
    let topology = place::topology(
        &interfaces,
        args.live.link.specs()?,
        args.live.scenario.as_deref(),
    );
    let topology = topology.map_err(topologies::refused)?;
    let mut announcement = announce(&interfaces, args, globals)?;
    announcement
        .warnings
        .extend(topologies::warn(&topology, globals));
    let stop = stop_flag()?;
    let claims = prepared.iter().map(PreparedLink::claim);
    let facts = Facts::new(None, &interfaces, claims);
    let place = [label, description];
    let registration =
        Registration::create(args.name.as_deref(), place, (interfaces, facts), spec)?;
    let mut control = args.live.control.config();
    control.addresses.push(registration.address().clone());
    let control = longwire_control::bind(&control)?;
    let (ports, engages) = place::split(prepared);
    let setup = NetworkSetup {
        hosts: None,
        topology,
        announcement,
        stop: &stop,
        args: &args.live,
        gives_up: false,
        shows_progress: false,
    };
    let mut links = RunLinks::new(engages, registration);
    let mut until = until_stopped(&stop, args.time);
    let mut report = run_network::carry(setup, ports, control, globals, &mut |running, pause| {
        links.turn(running, pause, &mut until, globals)
    });
    if let Ok(report) = &mut report {
        links.explain(report);
    }
    links.end(globals);
    run_network::finish(&report?, &args.live.report, globals, ReportStream::Stdout)
}

/// The links of a run: from its first turn until before its end.
struct RunLinks {
    engages: Vec<Engage>,
    registration: Registration,
    attached: Option<AttachedLinks>,
    /// Notes about interfaces that went away.
    gone: Vec<String>,
}

/// Number of links above which the end of a killed process is shortened.
const FEW: usize = 4;

fn gone_note(interface: &str) -> String {
    format!("'{interface}' went away, or the link was removed from it")
}

impl RunLinks {
    fn new(engages: Vec<Engage>, registration: Registration) -> RunLinks {
        RunLinks {
            engages,
            registration,
            attached: None,
            gone: Vec::new(),
        }
    }

    /// Handles one pause of the run. Returns whether the run is over.
    fn turn(
        &mut self,
        running: &RunningNetwork,
        pause: Duration,
        until: &mut impl FnMut(&RunningNetwork, Duration) -> Result<bool, Error>,
        globals: &Globals,
    ) -> Result<bool, Error> {
        let Some(links) = &mut self.attached else {
            return self.begin(globals).map(|()| false);
        };
        let lost_port = running
            .handle()
            .is_some_and(|run| !run.lost_ports().is_empty());
        let over = until(running, pause)? || lost_port;
        let lost = links.drop_lost();
        if lost > 0 {
            let before = self.gone.len();
            let all = links.lost();
            let lost = all[all.len() - lost..].iter();
            self.gone.extend(lost.map(|interface| gone_note(interface)));
            start::warn(&self.gone[before..], globals)?;
        }
        if over || links.interfaces().is_empty() {
            // New frames bypass the link; frames on it are still delivered.
            links.drain(running);
            return Ok(true);
        }
        Ok(false)
    }

    fn begin(&mut self, globals: &Globals) -> Result<(), Error> {
        let _hurry = ExpeditedGrace::begin();
        // First, so that a closed interface has an entry even if the process is killed
        // here.
        self.registration.write()?;
        if self.engages.len() > FEW {
            // Best effort: without it, the end of a killed process takes longer.
            let _ = short_end::start();
        }
        let links = AttachedLinks::engage(std::mem::take(&mut self.engages))?;
        let (list, name) = (links.interfaces().join(", "), self.registration.name());
        // With --json too: scripts that start it in the background wait for this line.
        if !globals.quiet {
            print_line(format_args!("attached to {list} as '{name}'"));
        }
        self.attached = Some(links);
        Ok(())
    }

    /// Adds notes about interfaces that went away. The ports are lost with their
    /// namespace, which is not an error.
    fn explain(&mut self, report: &mut NetworkReport) {
        if let Some(links) = &self.attached
            && links.forgive_lost_ports(&mut report.run)
        {
            let interfaces = links.interfaces().into_iter();
            self.gone.extend(interfaces.map(gone_note));
        }
        report.run.add_closing_notes(std::mem::take(&mut self.gone));
    }

    /// Ends the links. After a failed run, those that fail closed stay closed.
    fn end(mut self, globals: &Globals) {
        let Some(links) = self.attached else {
            return;
        };
        let closed = links.closed();
        if !closed.is_empty() {
            self.registration.keep();
            if !globals.quiet {
                let name = self.registration.name();
                print_line(format_args!(
                    "{} stays closed: `longwire attach detach {name}` opens it",
                    closed.join(", ")
                ));
            }
        } else if links.interfaces().len() <= FEW {
            links.remove();
        }
    }
}
