//! Options of the control API and the live view.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use longwire_control::{Address, Config, Detail, LIMIT_DEFAULT};
use longwire_node::process;

use crate::view;

/// The control API of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
#[command(group = ArgGroup::new("api").args(["control", "view"]).multiple(true))]
pub struct ControlArgs {
    /// Listen for the control API on a Unix socket (mode 0600), or on TCP with a token,
    /// such as tcp:127.0.0.1:9470. Repeatable
    #[arg(long, value_name = "PATH|tcp:ADDR:PORT")]
    pub control: Vec<Address>,

    /// Serve a page that shows and changes the run, and print its URL, which contains a token;
    /// default: a free port on 127.0.0.1. Also --view=8080 or --view=127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT", value_parser = view_address)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub view: Option<SocketAddr>,

    /// File whose first line is the token for TCP clients (at least 16 characters); only its owner
    /// may read it
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_token_file: Option<PathBuf>,

    /// File with a second, read-only token
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_read_token_file: Option<PathBuf>,

    /// Directory of the files that changes may name, and base of relative paths. Default: over a
    /// Unix socket, any file that the run may read; over TCP, none
    #[arg(long, value_name = "DIR", requires = "api")]
    pub control_files: Option<PathBuf>,

    /// Maximum requests/s over all connections; also the maximum burst
    #[arg(long, value_name = "N", default_value_t = LIMIT_DEFAULT, requires = "api")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub control_limit: u32,

    /// Default content of /metrics: sums over all links, or each link
    #[arg(long, value_name = "WHAT", requires = "control", value_enum)]
    #[arg(default_value_t)]
    pub metrics_links: MetricsLinks,
}

/// Default content of `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MetricsLinks {
    /// Sums of all links
    #[default]
    Sum,
    /// Each link by name
    Each,
}

impl ControlArgs {
    /// Returns whether these options enable the control API.
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

/// The option and the end-of-options marker.
const VIEW: &str = "--view";
const DASHES: &str = "--";

/// Parses an address, a loopback port, or both. Without a port, the system chooses one.
pub(super) fn view_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, 0).into());
    }
    text.parse().map_err(|_| {
        "write a port, --view=8080, or an IP address and port, --view=127.0.0.1:8080".to_owned()
    })
}

/// Returns the arguments with `--view` and the address after it joined (`--view=8080`); `None`
/// without such an address. Any other word after `--view` belongs to the command. The options end
/// at `end`.
pub(super) fn joined(arguments: &[OsString], end: usize) -> Option<Vec<OsString>> {
    let options = arguments[..end].iter().take_while(|word| *word != DASHES);
    let at = options.enumerate().find(|(_, word)| *word == VIEW)?.0;
    let address = arguments.get(at + 1)?.to_str()?;
    view_address(address).ok()?;
    let mut joined = arguments.to_vec();
    joined.remove(at + 1);
    joined[at] = format!("{VIEW}={address}").into();
    Some(joined)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::rows;

    use super::*;
    use crate::{Cli, Command};

    #[test]
    fn addresses_are_a_port_or_an_address_with_one() {
        for (text, address) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("0.0.0.0", "0.0.0.0:0"),
            ("[::1]:0", "[::1]:0"),
        ] {
            let found = view_address(text).map(|address| address.to_string());
            assert_eq!(found, Ok(address.into()));
        }
        for text in ["", "70000", "example.org:80", "network.toml"] {
            let error = view_address(text).expect_err(text);
            assert!(error.contains("--view=8080"), "{error}");
        }
    }

    #[test]
    fn an_address_after_the_option_is_its_value() {
        let parse = |text: &str| {
            let words = text.split_whitespace().map(OsString::from);
            let cli = Cli::from_arguments(words.collect()).map_err(|error| error.to_string())?;
            let (view, words) = match cli.command {
                Command::Exec(args) => (args.live.control.view, args.command),
                Command::Run(args) => (args.live.control.view, vec![args.a.into()]),
                other => panic!("{other:?}"),
            };
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            Ok::<_, String>((view.map(|address| address.port()), words.join(" ")))
        };
        // After the start of the command, the option belongs to the command.
        let cases = rows(
            "
            exec --view -- ping far                    | 0    | ping far
            exec --view 8080 -- ping far               | 8080 | ping far
            exec --view 8080 --delay 1ms ping far      | 8080 | ping far
            exec --view 127.0.0.1:8080 a.toml -- ls    | 8080 | a.toml -- ls
            exec -- x --view 8080                      |      | x --view 8080
            exec x --view 8080                         |      | x --view 8080
            exec --view x --view 8080                  | 0    | x --view 8080
            run --view 8080 packet:a packet:b          | 8080 | packet:a
            run a.toml --view 127.0.0.1:8080           | 8080 | a.toml
            run a.toml --view                          | 0    | a.toml
            ",
        );
        for [line, port, words] in cases {
            let found = parse(&format!("longwire {line}"));
            assert_eq!(found, Ok((port.parse().ok(), words.to_owned())), "{line}");
        }
    }
}
