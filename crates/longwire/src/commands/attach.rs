//! `longwire attach`: inserts a link into an interface in use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use longwire_attach::{ContainerName, FoundTarget, PodName, Target};
use longwire_client::node::DirectionSpec;
use longwire_engine::Nanos;
use longwire_fabric::NetworkReport;
use longwire_io::attach::{Attachment, Direction, Engage, FailMode, Pins, Selection, engage_all};
use longwire_io::net::address::Prefix;
use longwire_io::net::grace::ExpeditedGrace;
use longwire_node::open_files::raise_limit;
use longwire_node::place::{self, Part};
use longwire_node::short_end;
use longwire_packet::filter::{Filter, FilterError, LANGUAGE};
use longwire_runtime::{LinkSetup, RunningNetwork};
use longwire_topology::Topology;
use serde_json::json;

use super::attach_runs::{self, AttachSetArgs, DetachArgs, NewRun};
use super::attach_traffic::SelectedTraffic;
use super::run_network::{self, NetworkSetup};
use super::{attach_list, attach_node, attach_spec, topologies};
use crate::cli::{DUPLEX_HELP, LINK_HELP, LiveArgs};
use crate::report::finish::ReportStream;
use crate::report::start::{self, Announcement};
use crate::report::stderr::print_line;
use crate::signals::stop_flag;
use crate::watch::until_stopped;
use crate::{Error, Globals};

const EXAMPLES: &str = "\
Addresses, routes and connections of the interface stay as they are, and no container is
restarted. Up is what the interface's namespace sends, down what it receives. Ctrl-C
removes the link; if the program is killed, the kernel removes it, and traffic passes.
Needs root and Linux 6.6.

Examples:
  longwire attach --pid 4711 --delay 80ms
  longwire attach --netns blue --interface eth0 --rate 10mbit --delay 20ms --loss 1%
  longwire attach --container web --up-delay 40ms --up-rate 5mbit
  longwire attach --pod shop/cart-0 --preset lte --view
  longwire attach --netns blue --to 10.0.3.0/24 --delay 80ms    only this traffic
  longwire attach --pid 4711 --filter 'udp dst port 53' --loss 30%
  longwire attach --pid 4711 --fail closed --delay 80ms
  longwire attach --node --container web --delay 80ms           in the background
  longwire attach list
  longwire attach set blue-eth0 delay=120ms
  longwire attach detach blue-eth0";

/// Arguments of `attach`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = ArgGroup::new("target").required(true))]
pub struct AttachArgs {
    /// List, change or remove attached links
    #[command(subcommand)]
    pub action: Option<AttachAction>,

    /// The network namespace: a name of `ip netns`, or a path
    #[arg(long, value_name = "NAME|PATH")]
    #[arg(group = "target", help_heading = "Place")]
    pub netns: Option<PathBuf>,

    /// The network namespace of this process
    #[arg(long, value_name = "PID", group = "target", help_heading = "Place")]
    pub pid: Option<u32>,

    /// This container: a name, an ID or its start; of containerd, CRI-O, Docker or
    /// Podman, as in docker:web where several have one of that name
    #[arg(long, value_name = "[RUNTIME:]NAME|ID")]
    #[arg(group = "target", help_heading = "Place")]
    pub container: Option<ContainerName>,

    /// This pod of Kubernetes on this machine; without a namespace, of `default`
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    #[arg(group = "target", help_heading = "Place")]
    pub pod: Option<PodName>,

    /// Attach even if the target shares the network of this machine
    #[arg(long, help_heading = "Place")]
    pub host_network: bool,

    /// The interface; without it, that of the default route; `all` for each but lo
    #[arg(long, value_name = "NAME", help_heading = "Place")]
    pub interface: Option<String>,

    /// Only packets to and from these addresses; others pass by the link. May be repeated
    #[arg(long, value_name = "PREFIX", help_heading = "Place")]
    #[arg(value_delimiter = ',')]
    pub to: Vec<Prefix>,

    /// Only these packets, as the interface's namespace sends them: 'udp dst port 53'.
    /// Received ones match with source and destination exchanged
    #[arg(long, value_name = "FILTER", help_heading = "Place", long_help = filter_help())]
    #[arg(value_parser = filter)]
    pub filter: Option<String>,

    /// Only what the interface's namespace sends (up) or receives (down)
    #[arg(long, value_enum, value_name = "both|up|down", default_value = "both")]
    #[arg(help_heading = "Place", hide_possible_values = true)]
    pub direction: DirectionArg,

    /// Of several links at the interface that select a packet, the one of the lowest
    /// priority has it, then the oldest: 0 to 255, usually 128, and 255 without --to and
    /// --filter
    #[arg(long, value_name = "N", help_heading = "Place")]
    pub priority: Option<u8>,

    /// If the program is killed, traffic passes by (open), or nothing passes until
    /// `detach` (closed). Closed needs a BPF file system at /sys/fs/bpf
    #[arg(long, value_enum, value_name = "open|closed", default_value = "open")]
    #[arg(help_heading = "Running", hide_possible_values = true)]
    pub fail: FailArg,

    /// Have the node of this machine attach it (`longwire node`), and return
    #[arg(long, help_heading = "Running")]
    #[arg(conflicts_with_all = [
        "time", "scenario", "capture", "log", "control", "view", "report", "require", "wait",
        "placement", "memory", "tolerance", "grace", "no_realtime",
    ])]
    pub node: bool,

    /// The name for `list`, `set` and `detach`; without it, made of the place
    #[arg(long, value_name = "NAME", help_heading = "Place")]
    pub name: Option<String>,

    /// Remove the link after this time; without it, when interrupted
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// The scenario, the link, recordings, clients and the report.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Checks a filter and returns its text, which is sent to a node.
fn filter(text: &str) -> Result<String, FilterError> {
    Filter::parse(text).map(|_| text.to_owned())
}

fn filter_help() -> String {
    format!(
        "Only packets that match, as the interface's namespace sends them. Received ones match \
         with source and destination exchanged, so that 'udp dst port 53' takes requests that \
         it sends and their responses. Others pass by the link. Filters are written \
         {LANGUAGE}. The kernel evaluates them"
    )
}

/// The state of an interface whose emulator has been killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailArg {
    /// Traffic passes without the link.
    #[default]
    Open,
    /// The traffic of the link does not pass.
    Closed,
}

/// The directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DirectionArg {
    /// Frames that the interface's namespace sends and receives.
    #[default]
    Both,
    /// Sent frames alone.
    Up,
    /// Received frames alone.
    Down,
}

/// An action on attached links.
#[derive(Debug, Subcommand)]
pub enum AttachAction {
    /// List the links that are attached
    List,
    /// Change options of an attached link
    Set(AttachSetArgs),
    /// Remove an attached link, and wait until it is gone
    Detach(DetachArgs),
    /// A place without its option
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// Attaches a link, or lists, changes or detaches attached links.
///
/// # Errors
/// If the target does not exist, the link cannot be attached, or the run cannot be
/// started.
pub fn run(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    match &args.action {
        None => attach(args, globals),
        Some(AttachAction::List) => attach_list::list(globals),
        Some(AttachAction::Set(args)) => attach_runs::set(args, globals),
        Some(AttachAction::Detach(args)) => attach_runs::detach(args, globals),
        Some(AttachAction::Other(words)) => Err(Error::Usage(format!(
            "there is no action '{0}': list, set, detach; a link is attached with --container {0}, \
             --pod, --pid or --netns",
            words.first().map_or("", String::as_str)
        ))),
    }
}

fn attach(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    check_files(args)?;
    let found = target(args)?;
    if args.node {
        return attach_by_node(args, &found, globals);
    }
    let FoundTarget {
        namespace,
        label,
        description,
        ..
    } = found;
    raise_limit();
    let prepared = place::prepare_all(&namespace, args.interface.as_deref(), &part(args))?;
    // An open handle would keep the namespace alive after its last process.
    drop(namespace);
    let interfaces: Vec<String> = prepared
        .iter()
        .map(|prepared| prepared.interface().to_owned())
        .collect();
    let topology = topology(&interfaces, args)?;
    let mut announcement = announce(&interfaces, args, globals)?;
    announcement
        .warnings
        .extend(topologies::warn(&topology, globals));
    let stop = stop_flag()?;
    let traffic = traffic(args);
    let new = NewRun::create(
        args.name.as_deref(),
        [&label, &description],
        &interfaces,
        traffic,
    )?;
    let mut control = args.live.control.config();
    control.addresses.push(new.address().clone());
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
    let mut life = Life::new(engages, new, &stop);
    let mut until = until_stopped(&stop, args.time);
    let carried = run_network::carry(setup, ports, control, globals, &mut |running, pause| {
        life.turn(running, pause, &mut until, globals)
    });
    let mut report = carried;
    if let Ok(report) = &mut report {
        life.explain(report);
    }
    life.end(globals);
    let report = report?;
    run_network::finish(&report, &args.live.report, globals, ReportStream::Stdout)
}

/// Describes the link at these interfaces, and prints warnings.
fn announce(
    interfaces: &[String],
    args: &AttachArgs,
    globals: &Globals,
) -> Result<Announcement, Error> {
    let name = match interfaces {
        [one] => one,
        _ => place::ALL,
    };
    let (up, down) = args.live.link.links()?;
    let directions = [
        LinkSetup::new(format!("{name}.up"), up),
        LinkSetup::new(format!("{name}.down"), down),
    ];
    let directions = match args.direction {
        DirectionArg::Both => &directions[..],
        DirectionArg::Up => &directions[..1],
        DirectionArg::Down => &directions[1..],
    };
    Ok(Announcement::of_links(directions, globals))
}

fn part(args: &AttachArgs) -> Part {
    Part {
        selection: Selection {
            to: args.to.clone(),
            filter: args.filter.as_deref().and_then(|text| text.parse().ok()),
        },
        direction: match args.direction {
            DirectionArg::Both => Direction::Both,
            DirectionArg::Up => Direction::Up,
            DirectionArg::Down => Direction::Down,
        },
        sharing: 0,
        priority: args.priority,
        fail: match args.fail {
            FailArg::Open => FailMode::Open,
            FailArg::Closed => FailMode::Closed,
        },
        claims: BTreeMap::new(),
    }
}

fn traffic(args: &AttachArgs) -> SelectedTraffic {
    SelectedTraffic {
        to: args.to.iter().map(ToString::to_string).collect(),
        filter: args.filter.clone(),
        direction: match args.direction {
            DirectionArg::Both => DirectionSpec::Both,
            DirectionArg::Up => DirectionSpec::Up,
            DirectionArg::Down => DirectionSpec::Down,
        },
        priority: args.priority,
    }
}

/// Requests the attachment from the node.
fn attach_by_node(
    args: &AttachArgs,
    found: &FoundTarget,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let spec = attach_spec::spec(args, found, traffic(args))?;
    let name = attach_node::name(
        args.name.as_deref(),
        &found.label,
        args.interface.as_deref(),
    )?;
    let existed = attach_node::exists(&name)?;
    let view = attach_node::put(&name, &spec)?;
    announce(&view.interfaces, args, globals)?.print(globals);
    if globals.json {
        println!("{}", json!(view));
    } else if !globals.quiet {
        let interfaces = view.interfaces.join(", ");
        let done = if existed { "changed at" } else { "attached to" };
        println!("{done} {interfaces} as '{name}', by the node");
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a report file that the run reads or writes, and fail-closed without a BPF
/// file system.
fn check_files(args: &AttachArgs) -> Result<(), Error> {
    if args.fail == FailArg::Closed {
        Pins::check()?;
    }
    args.live.check_report(std::iter::empty())
}

fn topology(interfaces: &[String], args: &AttachArgs) -> Result<Topology, Error> {
    let read = place::topology(
        interfaces,
        args.live.link.specs()?,
        args.live.scenario.as_deref(),
    );
    read.map_err(topologies::refused)
}

/// Resolves the target.
fn target(args: &AttachArgs) -> Result<FoundTarget, Error> {
    let netns = args.netns.clone().map(Target::Netns);
    let target = netns
        .or(args.pid.map(Target::Pid))
        .or(args.container.clone().map(Target::Container))
        .or(args.pod.clone().map(Target::Pod));
    let target = target.unwrap_or_else(|| unreachable!("one target is required"));
    let found = target.resolve()?;
    if found.is_host && !args.host_network {
        return Err(Error::Usage(format!(
            "{} is in the network of this machine, so the link would be for all of the machine's \
             traffic: add --host-network if that is meant, or --to PREFIX as well for a part",
            found.description
        )));
    }
    Ok(found)
}

/// Lifetime of a run's attachments: from its first turn until before its end.
struct Life<'a> {
    engages: Vec<Engage>,
    attached: Vec<Attachment>,
    /// Attachments whose interface went away: frames still on the link count as lost.
    left: Vec<Attachment>,
    new: Option<NewRun>,
    run: Option<attach_runs::Registration>,
    /// Notes about interfaces that went away.
    gone: Vec<String>,
    /// When the attachments stopped taking frames, at the end.
    released: Option<Instant>,
    stop: &'a AtomicBool,
    /// Held from the end on: the kernel waits for each program and ring. Dropped last.
    hurry: Option<ExpeditedGrace>,
}

/// Number of links above which the end of a killed process is shortened.
const FEW: usize = 4;

fn gone_note(interface: &str) -> String {
    format!("'{interface}' went away, or the link was removed from it")
}

/// Maximum time to drain the link at the end.
const DRAIN: Duration = Duration::from_secs(2);

impl<'a> Life<'a> {
    fn new(engages: Vec<Engage>, new: NewRun, stop: &'a AtomicBool) -> Life<'a> {
        Life {
            engages,
            attached: Vec::new(),
            left: Vec::new(),
            new: Some(new),
            run: None,
            gone: Vec::new(),
            released: None,
            stop,
            hurry: None,
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
        if self.run.is_none() {
            return self.begin(globals).map(|()| false);
        }
        if let Some(since) = self.released {
            running.wait(Duration::from_millis(1));
            let over = since.elapsed() > DRAIN || running.snapshot().in_flight == 0;
            for attachment in self.attached.iter().chain(&self.left) {
                attachment.note_losses();
            }
            return Ok(over);
        }
        let lost_port = running
            .handle()
            .is_some_and(|run| !run.lost_ports().is_empty());
        let over = until(running, pause)? || lost_port;
        let before = self.gone.len();
        for mut gone in self.attached.extract_if(.., |one| !one.is_attached()) {
            self.gone.push(gone_note(gone.interface()));
            gone.release();
            self.left.push(gone);
        }
        start::warn(&self.gone[before..], globals)?;
        if over || self.attached.is_empty() {
            self.hurry = Some(ExpeditedGrace::begin());
            // New frames bypass the link; frames on it are still delivered.
            self.attached.iter_mut().for_each(Attachment::release);
            self.released = Some(Instant::now());
            return Ok(self.stop.load(Ordering::Relaxed) && self.attached.is_empty());
        }
        Ok(false)
    }

    fn begin(&mut self, globals: &Globals) -> Result<(), Error> {
        let _hurry = ExpeditedGrace::begin();
        let new = self
            .new
            .take()
            .unwrap_or_else(|| unreachable!("it begins once"));
        let pins = self.engages.iter().filter_map(Engage::pins).cloned();
        // First, so that a closed interface has an entry even if the process is killed
        // here.
        let registered = new.register(pins.collect())?;
        if self.engages.len() > FEW {
            // Best effort: without it, the end of a killed process takes longer.
            let _ = short_end::start();
        }
        self.attached = engage_all(std::mem::take(&mut self.engages))?;
        let names: Vec<&str> = self.attached.iter().map(Attachment::interface).collect();
        let (list, name) = (names.join(", "), registered.name());
        // With --json too: scripts that start it in the background wait for this line.
        if !globals.quiet {
            print_line(format_args!("attached to {list} as '{name}'"));
        }
        self.run = Some(registered);
        Ok(())
    }

    /// Adds notes about interfaces that went away. The ports are lost with their
    /// namespace, which is not an error.
    fn explain(&mut self, report: &mut NetworkReport) {
        if self.run.is_some() && place::forgive_lost_ports(&mut report.run, &self.attached) {
            let names = self.attached.iter().map(Attachment::interface);
            self.gone.extend(names.map(gone_note));
        }
        report.run.add_closing_notes(std::mem::take(&mut self.gone));
    }

    /// Ends the attachments. After a failed run, those that fail closed stay closed.
    fn end(mut self, globals: &Globals) {
        let closed = self.attached.iter().filter(|one| one.stays_closed());
        let closed: Vec<&str> = closed.map(Attachment::interface).collect();
        if let Some(run) = self.run.take_if(|_| !closed.is_empty()) {
            let name = run.keep();
            if !globals.quiet {
                print_line(format_args!(
                    "{} stays closed: `longwire attach detach {name}` opens it",
                    closed.join(", ")
                ));
            }
        } else if self.attached.len() <= FEW {
            self.attached.into_iter().for_each(Attachment::remove);
        }
    }
}
