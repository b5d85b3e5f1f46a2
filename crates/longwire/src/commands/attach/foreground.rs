//! `longwire attach` without a node: runs the attachment's links in the foreground.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use longwire_attach::FoundTarget;
use longwire_io::attach::{Engage, PreparedLink};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_network::NetworkReport;
use longwire_node::attached::AttachedLinks;
use longwire_node::store::Facts;
use longwire_node::{place, process};
use longwire_runtime::RunningNetwork;

use super::registry::Registration;
use super::{AttachArgs, announce, find};
use crate::commands::run_attached::Until;
use crate::commands::run_network::{self, Lifecycle, NetworkSetup};
use crate::commands::topologies;
use crate::report::{ReportStream, print_line, start};
use crate::signals::stop_flag;
use crate::watch::until_stopped;
use crate::{Error, Globals};

/// Attaches a link until a signal arrives, `--time` elapses or the interfaces disappear.
pub(super) fn attach(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let (spec, place, found) = find(args)?;
    let FoundTarget {
        namespace,
        label,
        description,
        ..
    } = found;
    process::raise_open_files();
    let prepared = place.prepare(&namespace, &BTreeMap::new(), 0)?;
    // An open handle would keep the namespace alive after its last process.
    drop(namespace);
    let interfaces = prepared.iter().map(PreparedLink::interface);
    let interfaces: Vec<String> = interfaces.map(str::to_owned).collect();
    let scenario = args.live.scenario.as_deref();
    let topology = place::topology(&interfaces, args.live.link.specs()?, scenario);
    let topology = topology.map_err(topologies::refused)?;
    let mut announcement = announce(&interfaces, args, globals)?;
    let warnings = topologies::warn(&topology, globals);
    announcement.warnings.extend(warnings);
    let stop = stop_flag()?;
    let facts = Facts::new(None, &interfaces, prepared.iter().map(PreparedLink::claim));
    let place = [label, description];
    let registration =
        Registration::create(args.name.as_deref(), place, (interfaces, facts), spec)?;
    let mut control = args.live.control.config();
    control.addresses.push(registration.address.clone());
    let control = longwire_control::bind(&control)?;
    let (ports, engages) = place::split(prepared);
    let setup = NetworkSetup::new((topology, announcement), &stop, &args.live);
    let mut links = RunLinks {
        until: Box::new(until_stopped(&stop, args.time)),
        globals,
        engages,
        registration,
        attached: None,
        is_announced: false,
        gone: Vec::new(),
    };
    let mut report = run_network::carry(setup, ports, control, globals, &mut links);
    if let Ok(report) = &mut report {
        links.explain(report);
    }
    links.end();
    let args = &args.live.report;
    run_network::finish(None, &report?, args, globals, ReportStream::Stdout)
}

/// The links of a run while it is active.
struct RunLinks<'a> {
    until: Until<'a>,
    globals: &'a Globals,
    engages: Vec<Engage>,
    registration: Registration,
    attached: Option<AttachedLinks>,
    /// Whether the links have been announced.
    is_announced: bool,
    /// Notes about interfaces that disappeared.
    gone: Vec<String>,
}

/// Number of links above which a helper process shortens the exit of a killed run.
const FEW: usize = 4;

fn gone_note(interface: &str) -> String {
    format!("'{interface}' is gone, or its link was removed")
}

impl RunLinks<'_> {
    /// Adds notes about interfaces that disappeared. Losing a port along with its namespace is not
    /// an error.
    fn explain(&mut self, report: &mut NetworkReport) {
        if let Some(links) = &self.attached
            && links.forgive_lost_ports(&mut report.run)
        {
            let interfaces = links.interfaces().into_iter();
            self.gone.extend(interfaces.map(gone_note));
        }
        report.run.add_closing_notes(std::mem::take(&mut self.gone));
    }

    /// Detaches the links. After a failed run, fail-closed links stay closed.
    fn end(mut self) {
        let Some(links) = self.attached.take() else {
            return;
        };
        let closed = links.closed();
        if !closed.is_empty() {
            self.registration.keep();
            if !self.globals.quiet {
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

impl Lifecycle for RunLinks<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        let _hurry = ExpeditedGrace::begin();
        // Write the entry first, so that a closed interface has one even if the process is killed
        // here.
        self.registration.write()?;
        if self.engages.len() > FEW {
            // Best effort: without the helper, a killed process takes longer to exit.
            let _ = process::start_end_helper();
        }
        self.attached = Some(AttachedLinks::engage(std::mem::take(&mut self.engages))?);
        Ok(())
    }

    fn pause(&mut self, running: &RunningNetwork, pause: Duration) -> Result<bool, Error> {
        let Some(links) = &mut self.attached else {
            return Ok(true);
        };
        if !std::mem::replace(&mut self.is_announced, true) && !self.globals.quiet {
            // Scripts wait for this line, even with --json.
            let (list, name) = (links.interfaces().join(", "), self.registration.name());
            print_line(format_args!("attached to {list} as '{name}'"));
        }
        let lost_ports = running.handle().map(|run| run.lost_ports());
        let lost_port = lost_ports.is_some_and(|ports| !ports.is_empty());
        let over = (self.until)(running, pause)? || lost_port;
        let lost = links.drop_lost();
        if lost > 0 {
            let before = self.gone.len();
            let all = links.lost();
            let lost = all[all.len() - lost..].iter();
            self.gone.extend(lost.map(|interface| gone_note(interface)));
            start::warn(&self.gone[before..], self.globals);
        }
        if over || links.interfaces().is_empty() {
            // New frames bypass the link; frames already on it are still delivered.
            links.drain(running);
            return Ok(true);
        }
        Ok(false)
    }
}
