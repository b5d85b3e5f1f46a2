//! The options of the control API.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::view_address::view_address;
use crate::view;
use clap::{ArgGroup, Args, ValueEnum};
use longwire_control::{Address, Config, Detail, LIMIT_DEFAULT};
use longwire_node::parent;

/// The control API of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
#[command(group = ArgGroup::new("api").args(["control", "view"]).multiple(true))]
pub struct ControlArgs {
    /// Listen for the control API at a Unix socket that only its owner may
    /// open, or on TCP with a token, as in tcp:127.0.0.1:9470; may be repeated
    #[arg(long, value_name = "PATH|tcp:ADDR:PORT")]
    pub control: Vec<Address>,

    /// Serve a page that shows the run and changes it, and print its URL with
    /// a token that this run makes; at a free port of the loopback address unless
    /// one is given, as in --view=8080 or --view=127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT", value_parser = view_address)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub view: Option<SocketAddr>,

    /// The token that clients over TCP must send: the first line of FILE, at
    /// least 16 characters, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_token_file: Option<PathBuf>,

    /// A second token, which allows reading and no changes
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_read_token_file: Option<PathBuf>,

    /// The directory from which changes may read files that models name, where
    /// their relative paths begin; without it, changes over TCP read none, and
    /// those from a Unix socket any that this run may read
    #[arg(long, value_name = "DIR", requires = "api")]
    pub control_files: Option<PathBuf>,

    /// Requests a second that are accepted, of all connections together; also
    /// the largest burst
    #[arg(
        long,
        value_name = "N",
        default_value_t = LIMIT_DEFAULT,
        requires = "api",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub control_limit: u32,

    /// Content of /metrics unless a request chooses: sums of all links, or
    /// each link
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
            access: parent::access(),
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
