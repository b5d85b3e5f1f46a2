//! The commands: one file each, with arguments and action. A new command needs a file, and three
//! lines in this one.

pub mod attach;
pub mod check;
pub mod cni;
pub mod completions;
pub mod ctl;
pub mod doctor;
pub mod exec;
mod feed_file;
pub mod generate;
pub mod import;
pub mod key;
mod man;
pub mod model_pages;
pub mod models;
pub mod node;
pub mod plot;
pub mod preset;
pub mod receive;
pub mod replay;
pub mod report;
pub mod run;
mod run_attached;
mod run_hosts;
mod run_network;
pub mod schema;
pub mod simulate;
mod simulate_network;
mod topologies;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{Error, Globals, bench, top};

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program over a link, or probe the link; needs no root
    Exec(exec::ExecArgs),
    /// Run a link between two ports, or a network, until interrupted
    Run(run::RunArgs),
    /// Insert a link into an interface in use, such as a container's
    Attach(Box<attach::AttachArgs>),
    /// Serve an API that attaches links on this machine, until interrupted
    Node(node::NodeArgs),
    /// Install or run the CNI plugin for container runtimes
    Cni(cni::CniArgs),
    /// Receive frames at a port and compare them with those sent
    Receive(receive::ReceiveArgs),
    /// Generate traffic at exact times, or run RFC 2544, RFC 2889 and Y.1564 tests
    Generate(Box<generate::GenerateArgs>),
    /// Send captures at their recorded times, at a rate, or at top speed
    Replay(Box<replay::ReplayArgs>),
    /// Process a capture through a link in virtual time
    Simulate(simulate::SimulateArgs),
    /// Read and change a running network
    Ctl(Box<ctl::CtlArgs>),
    /// Monitor a running network in a terminal, and change it
    Top(top::TopArgs),
    /// Check a topology and print the resulting network
    Check(check::CheckArgs),
    /// Create the key that the hosts of a network share
    Key(key::KeyArgs),
    /// Print the JSON Schema of topologies
    Schema(schema::SchemaArgs),
    /// Convert a script for ns-2 or Emulab to a topology
    Import(import::ImportArgs),
    /// Plot runs from their logs and reports
    Plot(plot::PlotArgs),
    /// Write an HTML page about a run from its log and report
    Report(report::ReportPageArgs),
    /// Measure the performance of Longwire on this machine
    Bench(bench::BenchArgs),
    /// List models and their parameters
    Models(models::ModelsArgs),
    /// Show presets as link options
    Preset(preset::PresetArgs),
    /// Check this machine for features and for causes of inaccuracy
    Doctor(doctor::DoctorArgs),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// Print the manual pages
    Man(man::ManArgs),
}

impl Command {
    /// Runs the command; `line` is the command line's definition.
    ///
    /// # Errors
    /// Any error of the command; [`Error::exit_code`] returns its exit code.
    pub fn run(&self, globals: &Globals, line: clap::Command) -> Result<ExitCode, Error> {
        match self {
            Command::Exec(args) => exec::run(args, globals),
            Command::Generate(args) => generate::run(args, globals),
            Command::Run(args) => run::run(args, globals),
            Command::Attach(args) => attach::run(args, globals),
            Command::Node(args) => node::run(args, globals),
            Command::Cni(args) => cni::run(args, globals),
            Command::Receive(args) => receive::run(args, globals),
            Command::Replay(args) => replay::run(args, globals),
            Command::Simulate(args) => simulate::run(args, globals),
            Command::Ctl(args) => ctl::run(args, globals),
            Command::Top(args) => top::run(args, globals),
            Command::Check(args) => check::run(args, globals),
            Command::Key(args) => key::run(args),
            Command::Schema(args) => schema::run(args),
            Command::Import(args) => import::run(args),
            Command::Plot(args) => plot::run(args, globals),
            Command::Report(args) => report::run(args, globals),
            Command::Bench(args) => bench::run(args, globals),
            Command::Models(args) => models::run(args, globals),
            Command::Preset(args) => preset::run(args, globals),
            Command::Doctor(args) => doctor::run(args, globals),
            Command::Completions(args) => completions::run(args, line),
            Command::Man(args) => man::run(args, line),
        }
    }
}
