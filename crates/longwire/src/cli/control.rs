//! The options of the control API.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::view_address::view_address;
use crate::view;
use clap::{ArgGroup, Args, ValueEnum};
use longwire_control::{Address, Config, Detail, LIMIT_DEFAULT};
use longwire_node::process;

/// The control API of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
#[command(group = ArgGroup::new("api").args(["control", "view"]).multiple(true))]
pub struct ControlArgs {
    /// Listen for the control API on a Unix socket (mode 0600), or on TCP with a token,
    /// such as tcp:127.0.0.1:9470. Repeatable
    #[arg(long, value_name = "PATH|tcp:ADDR:PORT")]
    pub control: Vec<Address>,

    /// Serve a page that shows and changes the run, and print its URL, which contains a
    /// token; default: a free port of 127.0.0.1. Also --view=8080 or --view=127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT", value_parser = view_address)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub view: Option<SocketAddr>,

    /// File whose first line is the token for TCP clients: at least 16 characters; the file
    /// must be readable by its owner only
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_token_file: Option<PathBuf>,

    /// File with a second token, for reading only
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_read_token_file: Option<PathBuf>,

    /// Directory of the files that changes may name; their relative paths start there.
    /// Default: changes over TCP may name none, changes over a Unix socket any that the run
    /// may read
    #[arg(long, value_name = "DIR", requires = "api")]
    pub control_files: Option<PathBuf>,

    /// Maximum requests/s of all connections together, also the largest burst
    #[arg(
        long,
        value_name = "N",
        default_value_t = LIMIT_DEFAULT,
        requires = "api",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub control_limit: u32,

    /// Default content of /metrics: sums of all links, or each link
    #[arg(long, value_name = "WHAT", requires = "control")]
    #[arg(value_enum, default_value_t)]
    pub metrics_links: MetricsLinks,
}

/// The links in `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MetricsLinks {
    /// Sums of all links
    #[default]
    Sum,
    /// Each link by its name
    Each,
}

impl ControlArgs {
    /// Whether these options enable the control API.
    pub fn is_given(&self) -> bool {
        !self.control.is_empty() || self.view.is_some()
    }

    /// Returns the configuration of the control API.
    pub fn config(&self) -> Config {
        Config {
            addresses: self.control.clone(),
            token_file: self.control_token_file.clone(),
            read_token_file: self.control_read_token_file.clone(),
            files: self.control_files.clone(),
            access: process::file_access(),
            limit: self.control_limit,
            view: self.view.map(view::config),
            judge: Some(view::judge),
            metrics: match self.metrics_links {
                MetricsLinks::Sum => Detail::Sum,
                MetricsLinks::Each => Detail::Each,
            },
        }
    }
}
