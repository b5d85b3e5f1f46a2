//! `longwire node`: manages all attached links of a machine through an API.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io, thread};

use clap::Args;
use longwire_control::{Address, Config, Detail, LIMIT_DEFAULT};
use longwire_io::run_directory;
use longwire_network::NetworkReport;
use longwire_node::{NetworkFiles, NetworkRun, Node, NodeConfig, Notice, process};
use longwire_runtime::{Faults, FileAccess};
use sd_notify::NotifyState;

use crate::cli::RunningArgs;
use crate::report::{Document, Verdict, print_line, start};
use crate::signals::stop_flag;
use crate::{Error, Globals};

/// Socket name within the run directory.
pub const SOCKET: &str = "node.sock";
/// Directory of attachments within the run directory.
const DIRECTORY: &str = "node";
/// Interval between checks of the signal flag.
const LOOK: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
One process runs the links of all attachments on this machine. It stores attachments in a
directory, and restores them when it starts; while no node runs, traffic bypasses the
links. A restarted container gets its link back.

Examples:
  longwire node
  longwire attach --node --container web --delay 80ms --name web
  longwire attach list
  curl --unix-socket /run/longwire/node.sock http://node/v1/attachments
  curl --unix-socket /run/longwire/node.sock -X PUT http://node/v1/attachments/web \\
      -d '{\"target\": {\"container\": \"web\"}, \"link\": {\"delay\": \"80ms\"}}'
  systemctl enable --now longwire-node        if installed from a package";

/// Arguments of `node`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("shards", |arg| arg.hide(true)))]
pub struct NodeArgs {
    /// Listen on a Unix socket (mode 0600), or on TCP with a token; default: node.sock in
    /// the run directory. Repeatable
    #[arg(long, value_name = "PATH|tcp:ADDR:PORT", help_heading = "Control")]
    pub control: Vec<Address>,

    /// File whose first line is the token for TCP clients, which may change links; attachments are
    /// created over Unix sockets only
    #[arg(long, value_name = "FILE", requires = "control")]
    #[arg(help_heading = "Control")]
    pub control_token_file: Option<PathBuf>,

    /// File with a second, read-only token
    #[arg(long, value_name = "FILE", requires = "control")]
    #[arg(help_heading = "Control")]
    pub control_read_token_file: Option<PathBuf>,

    /// Directory that stores attachments; default: in the run directory, which a reboot clears
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub state: Option<PathBuf>,

    /// Write the report of each run to this directory when its links are removed
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub reports: Option<PathBuf>,

    /// Timing and placement of the links.
    #[command(flatten)]
    pub running: RunningArgs,

    /// Internal: run the child process that speeds up the exit of a node or `attach`
    #[arg(long, value_name = "PID", hide = true)]
    pub end_of: Option<u32>,
}

/// Returns the socket of this user's or the system's node; `None` if there is none.
pub(super) fn socket() -> Option<PathBuf> {
    let mut directories = run_directory::all(std::env::var_os(run_directory::VARIABLE));
    directories.retain(|run| run_directory::is_trusted(run));
    let mut sockets = directories.iter().map(|run| run.join(SOCKET));
    sockets.find(|socket| socket.exists())
}

/// Returns the error for a command that needs a node if none is running.
pub(super) fn missing() -> Error {
    Error::usage("no node runs on this machine; start `longwire node`")
}

/// Runs the node until a signal stops it.
///
/// # Errors
/// If the socket or directory is unusable, or in use by another node.
pub fn run(args: &NodeArgs, globals: &Globals) -> Result<ExitCode, Error> {
    if let Some(node) = args.end_of {
        process::shorten_end(node)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.running
        .refuse_shards("each attachment of a node is a network of one link")?;
    process::raise_open_files();
    let stop = stop_flag()?;
    let config = config(args, globals)?;
    let addresses = args.control.iter().map(|address| match address {
        Address::Unix(socket) => Ok(Address::Unix(absolute(socket)?)),
        Address::Tcp(address) => Ok(Address::Tcp(*address)),
    });
    let mut addresses = addresses.collect::<io::Result<Vec<Address>>>()?;
    if addresses.is_empty() {
        addresses.push(Address::Unix(own_directory()?.join(SOCKET)));
    }
    if let Some(reports) = &args.reports {
        let made = fs::create_dir_all(reports);
        made.map_err(Error::file(reports, "cannot create the report directory"))?;
    }
    // Bind early: clients that connect before the node starts then wait for it.
    let bound = longwire_control::bind(&Config {
        addresses,
        token_file: args.control_token_file.clone(),
        read_token_file: args.control_read_token_file.clone(),
        access: FileAccess::Absolute,
        limit: LIMIT_DEFAULT,
        metrics: Detail::Each,
        ..Config::default()
    })?;
    for note in bound.notes() {
        start::note(note, globals);
    }
    // Namespace paths are absolute, so the current directory does not matter.
    std::env::set_current_dir("/")?;
    let node = Node::start(config)?;
    if let Err(error) = process::start_end_helper() {
        print_line(format_args!(
            "warning: if killed, the node will take seconds to exit: {error}"
        ));
    }
    let node = Arc::new(node);
    let server = bound.serve_node(Arc::clone(&node) as Arc<_>)?;
    // A no-op without a service manager.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    if !globals.quiet {
        print_line(format_args!("ready"));
    }
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    drop(server);
    drop(node);
    Ok(ExitCode::SUCCESS)
}

/// Creates this user's run directory and returns it.
pub(super) fn own_directory() -> Result<PathBuf, Error> {
    let directory = run_directory::own().ok_or_else(|| {
        let variable = run_directory::VARIABLE;
        Error::failed(format!(
            "attaching needs root; try sudo (no run directory: {variable} is \
                               unset)"
        ))
    })?;
    let created = run_directory::create(&directory);
    created.map_err(Error::file(&directory, "cannot create the run directory"))?;
    Ok(directory)
}

fn config(args: &NodeArgs, globals: &Globals) -> Result<NodeConfig, Error> {
    let prints = !globals.quiet;
    let reports = args.reports.as_ref().map(absolute).transpose()?;
    let no_realtime = args.running.timing.no_realtime;
    Ok(NodeConfig {
        directory: match &args.state {
            Some(state) => absolute(state)?,
            None => own_directory()?.join(DIRECTORY),
        },
        run: args.running.config(1, &Faults::new()),
        notify: Arc::new(move |notice| {
            if prints {
                print_notice(notice);
            }
            if let (Notice::Ended { name, report }, Some(reports)) = (notice, &reports) {
                write_report(reports, name, report);
            }
        }),
        network: Some(Arc::new(move |files, run| {
            network_command(files, run, no_realtime)
        })),
    })
}

/// Returns the command that runs a network and exits with this process.
fn network_command(files: &NetworkFiles, run: &NetworkRun, no_realtime: bool) -> Command {
    // The executable's path may meanwhile name another program; `/proc/self/exe` always names the
    // running one.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("longwire").arg("run").arg(files.topology());
    command.arg("--control").arg(files.socket());
    command.arg("--report").arg(files.report());
    if let Some(host) = &run.host {
        command.args(["--host", host]);
    }
    if run.has_key {
        command.arg("--key").arg(files.key());
    }
    if let Some(seed) = run.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if no_realtime {
        command.arg("--no-realtime");
    }
    command.env(process::PARENT_VARIABLE, std::process::id().to_string());
    command
}

/// Prints a notice as one line.
fn print_notice(notice: &Notice) {
    match notice {
        Notice::Attached {
            name,
            place,
            interfaces,
        } => {
            let interfaces = interfaces.join(", ");
            print_line(format_args!("{name}: attached to {interfaces} of {place}"));
        }
        Notice::Waits { name, reason } => print_line(format_args!("{name}: waiting: {reason}")),
        Notice::Ended { name, report } => {
            let verdict = Verdict::of(&report.run);
            print_line(format_args!("{name}: detached; {}", verdict.line));
        }
        Notice::Network { name, sentence } => print_line(format_args!("{name}: {sentence}")),
        Notice::Store { problem } => print_line(format_args!("warning: {problem}")),
    }
}

/// Writes a report. Its name includes the Unix time in milliseconds, because an attachment may have
/// several runs.
fn write_report(directory: &Path, name: &str, report: &NetworkReport) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_millis();
    let path = directory.join(format!("{name}.{now}.json"));
    let document = Document::new(report, Verdict::of(&report.run));
    let written = serde_json::to_vec_pretty(&document).map_err(Into::into);
    if let Err(error) = written.and_then(|text| fs::write(&path, text)) {
        print_line(format_args!(
            "warning: cannot write the report {}: {error}",
            path.display()
        ));
    }
}
