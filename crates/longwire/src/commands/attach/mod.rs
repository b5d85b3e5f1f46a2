//! `longwire attach`: inserts a link at an interface in use.

use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use longwire_attach::{ContainerName, FoundTarget, PodName, Target};
use longwire_client::node::{AttachmentSpec, DirectionSpec, FailSpec, TargetSpec};
use longwire_engine::Nanos;
use longwire_io::attach::Pins;
use longwire_io::net::address::Prefix;
use longwire_node::names;
use longwire_node::place::{ALL, RequestedPlace};
use longwire_packet::filter::{Filter, FilterError, LANGUAGE};
use longwire_runtime::LinkSetup;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::detach::DetachArgs;
use self::set::AttachSetArgs;
use super::topologies;
use crate::cli::{DUPLEX_HELP, LINK_HELP, LiveArgs};
use crate::commands::ctl;
use crate::report::start::Announcement;
use crate::{Error, Globals};

mod detach;
mod foreground;
mod list;
mod registry;
mod set;

const EXAMPLES: &str = "\
The interface keeps its addresses, routes and connections, and no container is restarted.
Up is traffic that the interface's namespace sends; down is traffic that it receives. Ctrl-C
removes the link; if the program is killed, the kernel removes it, and traffic passes unless
--fail is closed.
Needs root and Linux 6.6 or later.

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
#[command(next_help_heading = "Place")]
pub struct AttachArgs {
    /// List, change or remove attached links
    #[command(subcommand)]
    pub action: Option<AttachAction>,

    /// Network namespace: a name from `ip netns`, or a path
    #[arg(long, value_name = "NAME|PATH", group = "target")]
    pub netns: Option<PathBuf>,

    /// Network namespace of this process
    #[arg(long, value_name = "PID", group = "target")]
    pub pid: Option<u32>,

    /// Container: name, ID or ID prefix, in containerd, CRI-O, Docker or Podman; docker:web if
    /// several have that name
    #[arg(long, value_name = "[RUNTIME:]NAME|ID", group = "target")]
    pub container: Option<ContainerName>,

    /// Kubernetes pod on this machine; default namespace: `default`
    #[arg(long, value_name = "[NAMESPACE/]NAME", group = "target")]
    pub pod: Option<PodName>,

    /// Attach even if the target is in the host's network namespace
    #[arg(long)]
    pub host_network: bool,

    /// Interface to attach to; default: the default route's interface; `all`: all except lo
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// Only packets to or from these addresses; others bypass the link. Repeatable
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub to: Vec<Prefix>,

    /// Only packets that match, as sent by the interface's namespace, such as 'udp dst port 53';
    /// received packets match with source and destination swapped
    #[arg(long, value_name = "FILTER", long_help = filter_help(), value_parser = filter)]
    pub filter: Option<String>,

    /// Only what the interface's namespace sends (up) or receives (down)
    #[arg(long, value_parser = word::<DirectionSpec>(["both", "up", "down"]))]
    #[arg(value_name = "both|up|down", default_value = "both")]
    #[arg(hide_possible_values = true)]
    pub direction: DirectionSpec,

    /// Priority, 0 to 255: among the links that select a packet, the lowest value wins; on a tie,
    /// the oldest link. Default: 128, or 255 without --to and --filter
    #[arg(long, value_name = "N")]
    pub priority: Option<u8>,

    /// If the program is killed: open lets traffic bypass the link; closed blocks it until
    /// `detach`, and needs a BPF file system at /sys/fs/bpf
    #[arg(long, value_parser = word::<FailSpec>(["open", "closed"]))]
    #[arg(value_name = "open|closed", default_value = "open")]
    #[arg(help_heading = "Running", hide_possible_values = true)]
    pub fail: FailSpec,

    /// Let this machine's node (`longwire node`) attach the link, and return
    #[arg(long, help_heading = "Running")]
    #[arg(conflicts_with_all = [
        "time", "scenario", "capture", "log", "control", "view", "report", "require", "wait",
        "placement", "memory", "tolerance", "grace", "no_realtime",
    ])]
    pub node: bool,

    /// Name for `list`, `set` and `detach`; default: derived from the target
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Remove the link after this time; default: when interrupted
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// The scenario, the link, recordings, clients and the report.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Validates a filter and returns its text, which is sent to a node.
fn filter(text: &str) -> Result<String, FilterError> {
    Filter::parse(text).map(|_| text.to_owned())
}

fn filter_help() -> String {
    format!(
        "Only packets that match, as sent by the interface's namespace. Received packets match \
         with source and destination swapped, so 'udp dst port 53' selects requests and their \
         responses. Other packets bypass the link. The kernel evaluates the filter\n\n{LANGUAGE}"
    )
}

/// Returns a parser of the keywords `words`, as spelled in requests.
fn word<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: impl Into<PossibleValuesParser>,
) -> impl TypedValueParser<Value = T> {
    words
        .into()
        .try_map(|word| serde_json::from_value(Value::String(word)))
}

/// An action on attached links.
#[derive(Debug, Subcommand)]
pub enum AttachAction {
    /// List attached links
    List,
    /// Change options of an attached link
    Set(AttachSetArgs),
    /// Remove attached links, and wait until they are gone
    Detach(DetachArgs),
    /// An unknown action, such as a container without --container
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
        Some(AttachAction::List) => list::list(globals),
        Some(AttachAction::Set(args)) => set::set(args, globals),
        Some(AttachAction::Detach(args)) => detach::detach(args, globals),
        Some(AttachAction::Other(words)) => Err(Error::usage(format!(
            "unknown action '{0}'; actions are list, set and detach; to attach a link, use \
             --container {0}, --pod, --pid or --netns",
            words.first().map_or("", String::as_str)
        ))),
    }
}

fn attach(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if args.fail == FailSpec::Closed {
        Pins::check()?;
    }
    args.live.check_report(std::iter::empty())?;
    if args.node {
        attach_by_node(args, globals)
    } else {
        foreground::attach(args, globals)
    }
}

/// Requests the attachment from the node.
fn attach_by_node(args: &AttachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    check_paths(args)?;
    let (spec, _, found) = find(args)?;
    let (given, interface) = (args.name.as_deref(), args.interface.as_deref());
    let name = names::choose(given, &found.label, interface).map_err(Error::usage)?;
    let existed = registry::exists(&name)?;
    let view = registry::put(&name, &spec)?;
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

/// Returns the attachment that the arguments describe, with its target.
fn find(args: &AttachArgs) -> Result<(AttachmentSpec, RequestedPlace, FoundTarget), Error> {
    let mut spec = spec(args)?;
    let place = RequestedPlace::read(&spec).map_err(topologies::refused)?;
    let found = place.find()?;
    if let Target::Netns(path) = &found.target {
        spec.target = TargetSpec::Netns(absolute(path)?);
    }
    Ok((spec, place, found))
}

/// Describes the link at these interfaces, and prints warnings about it.
fn announce(
    interfaces: &[String],
    args: &AttachArgs,
    globals: &Globals,
) -> Result<Announcement, Error> {
    let name = match interfaces {
        [one] => one,
        _ => ALL,
    };
    let (up, down) = args.live.link.links()?;
    let directions = [
        LinkSetup::new(format!("{name}.up"), up),
        LinkSetup::new(format!("{name}.down"), down),
    ];
    let directions = match args.direction {
        DirectionSpec::Both => &directions[..],
        DirectionSpec::Up => &directions[..1],
        DirectionSpec::Down => &directions[1..],
    };
    Ok(Announcement::of_links(directions, globals))
}

/// Returns the attachment that the arguments describe.
///
/// # Errors
/// If an option is invalid.
fn spec(args: &AttachArgs) -> Result<AttachmentSpec, Error> {
    let link = args.live.link.specs()?;
    let target = match (&args.netns, args.pid, &args.container, &args.pod) {
        (Some(path), ..) => TargetSpec::Netns(path.clone()),
        (_, Some(pid), ..) => TargetSpec::Pid(pid),
        (_, _, Some(name), _) => TargetSpec::Container(name.to_string()),
        (.., Some(name)) => TargetSpec::Pod(name.to_string()),
        _ => unreachable!("one target is required"),
    };
    Ok(AttachmentSpec {
        target,
        interface: args.interface.clone(),
        to: args.to.iter().map(ToString::to_string).collect(),
        filter: args.filter.clone(),
        direction: args.direction,
        priority: args.priority,
        fail: args.fail,
        host_network: args.host_network,
        link: ctl::duplex_table([link.up.given(), link.down.given()]),
        seed: Some(args.live.seed.seed),
        wait: false,
        files: true,
    })
}

/// Refuses relative file paths, which the node would resolve in a different directory.
fn check_paths(args: &AttachArgs) -> Result<(), Error> {
    let link = args.live.link.specs()?;
    let mut files = link.up.files().chain(link.down.files());
    match files.find(|file| Path::new(file).is_relative()) {
        None => Ok(()),
        Some(file) => Err(Error::usage(format!(
            "{file}: with --node, use an absolute path: the node has a different working directory"
        ))),
    }
}
