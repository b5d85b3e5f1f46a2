//! Arguments of `longwire exec`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use longwire_capture::open;
use longwire_engine::Nanos;
use longwire_testbed::{PEER_WAIT, PeerOutput};

use super::network::HostArgs;
use crate::Error;
use crate::cli::{DUPLEX_HELP, LINK_HELP, LiveArgs};

const EXAMPLES: &str = "\
CMD runs in network namespace near, the --peer command in far. Only the link connects the
two; their addresses resolve as near and far, and are in $LONGWIRE_NEAR and $LONGWIRE_FAR.
Needs no root where user namespaces are allowed. Without CMD, the link is probed, and
measured round trips, one-way delay, throughput and loss are compared with expected values.

FILE.toml before the -- is a topology that replaces the single link, which is named 'link'
(docs/topology.md). Each port becomes a host named after it; if no ports are named near and
far, the first two become near and far. A topology, --scenario and --time need a CMD.

Only CMD writes to stdout. The report, also with --json, and the peer's output go to stderr,
or to --report FILE and --peer-output FILE. The exit code is that of CMD, or, if CMD succeeds
and --require is not met, 3 or 4.

Examples:
  longwire exec --delay 20ms --rate 10mbit
  longwire exec --delay 20ms -- ping -c 3 far
  longwire exec --rate 100mbit --loss 0.1% --peer 'iperf3 -s' -- iperf3 -c far
  longwire exec --peer 'iperf3 -s' -- iperf3 -J -c far | jq .end.sum_received
  longwire exec --up-rate 2mbit --down-rate 20mbit -- bash
  longwire exec --delay 20ms --control ./link.sock -- bash     then: longwire ctl
  longwire exec network.toml --scenario rush-hour.toml --time 1min -- ./client
  longwire exec lan.toml --node 'core=iperf3 -s' -- iperf3 -c core
  sudo longwire exec --delay 50ms --uplink -- curl https://example.org";

/// The arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINK_HELP}\n{DUPLEX_HELP}\n\n{EXAMPLES}"))]
#[command(group(ArgGroup::new("hosts-with-commands").args(["peer", "node"]).multiple(true)))]
#[command(override_usage = "longwire exec [OPTIONS] [FILE.toml] [--] [CMD]...")]
pub struct ExecArgs {
    /// Command to run in near, with its arguments; without a command, the link is probed. A leading
    /// FILE.toml is a topology instead of one link
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// The command in far.
    #[command(flatten)]
    pub peer: PeerArgs,

    /// The hosts of a topology.
    #[command(flatten)]
    pub hosts: HostArgs,

    /// Connect far to this host's network, so the link reaches outside servers; needs root
    #[arg(long, help_heading = "Commands")]
    pub uplink: bool,

    /// Stop the command after this time, and end the run with its report
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    #[arg(allow_hyphen_values = true)]
    pub time: Option<Nanos>,

    /// Port type of the emulator
    #[arg(long, value_name = "KIND", help_heading = "Running")]
    #[arg(default_value = "auto")]
    #[arg(value_parser = ["auto", "packet", "xdp", "tap"])]
    pub port: String,

    /// Take down the carrier of the receiving eth0 while a direction is off, as if unplugged
    #[arg(long, help_heading = "Running")]
    pub carrier: bool,

    /// The scenario, the link, recordings, clients and the report.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// The command in far.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub struct PeerArgs {
    /// Shell command to run in far; CMD starts once it listens, or after --peer-wait
    #[arg(long, value_name = "PEER", requires = "command")]
    pub peer: Option<OsString>,

    /// Maximum time to wait for each --peer or --node command to listen before CMD starts
    #[arg(long, value_name = "TIME", requires = "hosts-with-commands")]
    #[arg(default_value_t = Nanos::from_nanos(PEER_WAIT.as_nanos() as u64))]
    #[arg(allow_hyphen_values = true)]
    pub peer_wait: Nanos,

    /// Write the peer's output to FILE; default: stderr, each line prefixed with 'peer: '
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub peer_output: Option<PathBuf>,
}

impl PeerArgs {
    /// Opens the output of the peer command.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn output(&self) -> Result<PeerOutput, Error> {
        let Some(path) = &self.peer_output else {
            return Ok(PeerOutput::Prefixed);
        };
        let opened = open::to_write(path).map(PeerOutput::File);
        opened.map_err(Error::file(path, "cannot write the peer's output"))
    }
}

/// End-of-options marker.
const DASHES: &str = "--";

/// Splits off a leading topology file, and a `--` that follows it.
pub(super) fn split_file(words: &[OsString]) -> (Option<&Path>, &[OsString]) {
    match words.split_first() {
        Some((first, rest)) if first.to_string_lossy().ends_with(".toml") => {
            let command = rest.strip_prefix(&[OsString::from(DASHES)]).unwrap_or(rest);
            (Some(Path::new(first)), command)
        }
        _ => (None, words),
    }
}

impl ExecArgs {
    /// Returns the arguments with the options moved before the topology file; `None` if no options
    /// follow a file. The words of CMD stay last, in order.
    pub(crate) fn options_first(&self, given: &[OsString]) -> Option<Vec<OsString>> {
        let (Some(_), rest) = split_file(&self.command) else {
            return None;
        };
        let begins = given.len() - self.command.len();
        let option = |word: &OsString| word.to_string_lossy().starts_with('-');
        if rest.len() + 1 < self.command.len() || !rest.first().is_some_and(option) {
            return None;
        }
        let (before, file_and_rest) = given.split_at(begins);
        if before.last().is_some_and(|word| word == DASHES) {
            return None;
        }
        let (file, rest) = file_and_rest.split_first()?;
        let end = rest.iter().position(|word| word == DASHES);
        let (options, command) = rest.split_at(end.unwrap_or(rest.len()));
        let mut words = before.to_vec();
        words.extend(options.iter().cloned());
        words.push(file.clone());
        words.extend(command.iter().cloned());
        Some(words)
    }

    /// Returns the error message for an empty command, such as `-- $UNSET`; `given` holds the
    /// program's arguments.
    pub(crate) fn missing_command(&self, given: &[OsString]) -> Option<String> {
        let (_, command) = split_file(&self.command);
        let is_empty = match command.first() {
            Some(first) => first.is_empty(),
            None => given.last().is_some_and(|last| last == DASHES),
        };
        if is_empty {
            return Some("no command after --; omit -- to probe the link".to_owned());
        }
        let peer = self.peer.peer.as_ref()?.to_string_lossy();
        let is_missing = peer.trim().is_empty();
        is_missing.then(|| "--peer: no command; for example: --peer 'iperf3 -s'".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::{rows, words};

    use super::*;
    use crate::{Cli, Command};

    fn owned(line: &str) -> Vec<OsString> {
        words(line).into_iter().map(OsString::from).collect()
    }

    fn joined(words: &[OsString]) -> String {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn parse(line: &str) -> Result<ExecArgs, String> {
        let cli = Cli::from_arguments(owned(&format!("longwire exec {line}")));
        match cli.map_err(|error| error.to_string())?.command {
            Command::Exec(args) => Ok(args),
            _ => Err("no exec".to_owned()),
        }
    }

    #[test]
    fn a_topology_file_is_separated_from_the_command() {
        let cases = rows(
            "
            ping far          |          | ping far
            a/b.toml -- cat x | a/b.toml | cat x
            a/b.toml cat x    | a/b.toml | cat x
            a/b.toml          | a/b.toml |
            cat x.toml        |          | cat x.toml
            ",
        );
        for [text, file, command] in cases {
            let words = owned(text);
            let (found, rest) = split_file(&words);
            let found = found.map_or(String::new(), |file| file.display().to_string());
            assert_eq!([found, joined(rest)], [file, command], "{text}");
        }
    }

    #[test]
    fn an_empty_command_is_no_probe() {
        let none = "error: no command after --; omit -- to probe the link\n";
        let no_peer = "error: --peer: no command;";
        for (line, wanted) in [
            ("--delay 20ms --", none),
            ("--delay 20ms -- ''", none),
            ("--delay 20ms ''", none),
            ("a.toml --", none),
            ("a.toml --time 1s --", none),
            ("a.toml -- ''", none),
            ("--peer '' true", no_peer),
            ("--peer ' ' -- true", no_peer),
        ] {
            let said = parse(line).expect_err(line);
            assert!(said.starts_with(wanted), "{line}: {said}");
        }
        let said = parse("a.toml --node core= -- true").expect_err("no command");
        assert!(said.contains("no command; write 'core="), "{said}");
        for line in ["", "sh --", "-- sh ''", "a.toml"] {
            assert_eq!(parse(line).map(drop), Ok(()), "{line}");
        }
    }

    #[test]
    fn options_may_follow_a_topology_file() {
        // Without a file, all words belong to the command.
        let cases = rows(
            "
            a.toml --time 1s -- iperf3 --time 3 | a.toml -- iperf3 --time 3
            --time 1s a.toml -- ls -l           | a.toml -- ls -l
            a.toml --time 1s                    | a.toml
            --time 1s iperf3 --time 3           | iperf3 --time 3
            ",
        );
        for [line, command] in cases {
            let args = parse(line).expect(line);
            assert_eq!(joined(&args.command), command, "{line}");
            assert_eq!(args.time, Some(Nanos::from_secs(1)), "{line}");
        }
        let said = parse("a.toml --tme 1s -- ls").expect_err("no such option");
        assert!(said.contains("--tme"), "{said}");
    }
}
