//! The program `longwire-kube`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use longwire_kube::agent::{self, AgentSettings};
use longwire_kube::controller::{self, ControllerSettings};
use longwire_kube::manifests::{crds, crds_template, manifests};
use longwire_kube::node::NodeClient;
use longwire_kube::watch::connect;
use tracing_subscriber::EnvFilter;

/// Longwire on Kubernetes.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Log format
    #[arg(long, global = true, value_enum, default_value = "json")]
    log_format: LogFormat,
    /// Log level, or a filter such as `info,kube=debug`
    #[arg(long, global = true, default_value = "info", env = "LONGWIRE_LOG")]
    log: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// One JSON object per line
    Json,
    /// Human-readable text
    Text,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the CRDs
    Crds,
    /// Write the manifests generated from the resources and the Helm chart
    #[command(hide = true)]
    Manifests {
        /// The directory `packaging` of the repository
        packaging: PathBuf,
    },
    /// Attach links to the pods of this node
    Agent(AgentSettings),
    /// Aggregate link status, and place networks on nodes
    Controller(ControllerSettings),
    /// Remove all of an agent's links from this machine's node
    Cleanup {
        /// Socket of `longwire node`
        #[arg(long, default_value = "/run/longwire/node.sock")]
        node_socket: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log_format, &arguments.log);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(execute(arguments.command)),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn log_to_stderr(format: LogFormat, filter: &str) {
    // The client logs every failure as an error, but watches report a failure once.
    let filter = EnvFilter::new(format!("kube_client=off,{filter}"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Text => log.init(),
    }
}

async fn execute(command: Command) -> Result<(), Box<dyn std::error::Error>> {
    match command {
        Command::Crds => {
            std::io::stdout().lock().write_all(crds()?.as_bytes())?;
        }
        Command::Manifests { packaging } => {
            for (name, text) in manifests()? {
                fs::write(packaging.join("kubernetes").join(name), text)?;
            }
            let template = packaging.join("helm/longwire/templates/crds.yaml");
            fs::write(template, crds_template()?)?;
        }
        Command::Agent(settings) => agent::run(settings, connect().await?).await?,
        Command::Controller(settings) => controller::run(settings, connect().await?).await?,
        Command::Cleanup { node_socket } => {
            for name in agent::remove_all(&NodeClient::new(&node_socket)).await? {
                println!("{name}");
            }
        }
    }
    Ok(())
}
