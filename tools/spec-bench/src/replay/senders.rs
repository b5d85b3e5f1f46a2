//! The programs of a replay: sender and receiver.

use std::path::Path as FilePath;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use longwire_runtime::host;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::traces::Trace;
use super::{ReplayArgs, Testbed};
use crate::program::{self, BenchProgram, cpu_of_children};
use longwire::Error;
use longwire_traffic::sockets::Path;

/// A program that replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplaySender {
    /// `longwire replay` with its defaults: a real-time class where allowed
    Longwire,
    /// `longwire replay --no-realtime`
    LongwireNormal,
    /// `longwire replay --wait spin`: the best that the machine allows
    LongwireSpin,
    /// tcpreplay with its default timer
    Tcpreplay,
    /// tcpreplay that sleeps between packets: --timer=nano
    TcpreplayNano,
    /// tcpreplay under SCHED_FIFO (chrt); it never sleeps, so the machine may stop responding
    /// during the replay
    TcpreplayFifo,
}

impl ReplaySender {
    /// All senders except the one that occupies a core.
    pub const USUAL: [ReplaySender; 5] = [
        ReplaySender::Longwire,
        ReplaySender::LongwireNormal,
        ReplaySender::LongwireSpin,
        ReplaySender::Tcpreplay,
        ReplaySender::TcpreplayNano,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            ReplaySender::Longwire => "longwire",
            ReplaySender::LongwireNormal => "longwire --no-realtime",
            ReplaySender::LongwireSpin => "longwire --wait spin",
            ReplaySender::Tcpreplay => "tcpreplay",
            ReplaySender::TcpreplayNano => "tcpreplay nano",
            ReplaySender::TcpreplayFifo => "tcpreplay SCHED_FIFO",
        }
    }

    /// Returns the version printed by the program; `None` if it is not installed.
    pub fn version(self, tcpreplay: &FilePath) -> Option<String> {
        if self.is_longwire() {
            return Some(String::new());
        }
        let output = Command::new(tcpreplay).arg("--version").output().ok()?;
        // Some versions print it on stdout, others on stderr.
        let text = [output.stdout, output.stderr].concat();
        version_in(&String::from_utf8_lossy(&text))
    }

    fn is_longwire(self) -> bool {
        matches!(
            self,
            ReplaySender::Longwire | ReplaySender::LongwireNormal | ReplaySender::LongwireSpin
        )
    }

    /// Returns the options of tcpreplay or `longwire replay`.
    fn words(self) -> &'static str {
        match self {
            ReplaySender::Longwire | ReplaySender::Tcpreplay | ReplaySender::TcpreplayFifo => "",
            ReplaySender::LongwireNormal => "--no-realtime",
            ReplaySender::LongwireSpin => "--wait spin",
            ReplaySender::TcpreplayNano => "--timer=nano",
        }
    }

    fn command(self, trace: &Trace, args: &ReplayArgs, kind: &str) -> Result<Command, Error> {
        let words = self.words().split_whitespace();
        if self.is_longwire() {
            let mut command = Command::new(program::path()?);
            command.arg("replay").arg(&trace.path);
            command.args(["--to", &format!("{kind}:{INTERFACE}"), "--quiet"]);
            let options = args.replay_options.as_deref().unwrap_or_default();
            command.args(words).args(options.split_whitespace());
            return Ok(command);
        }
        let mut command = Command::new(&args.tcpreplay);
        if self == ReplaySender::TcpreplayFifo {
            command = Command::new("chrt");
            command.args(["--fifo", "10"]).arg(&args.tcpreplay);
        }
        command.args(words).args(["-q", "-i", INTERFACE]);
        command.arg(&trace.path);
        Ok(command)
    }

    /// Replays a trace from one namespace to another, where a receiver compares it.
    pub fn replay(
        self,
        trace: &Trace,
        args: &ReplayArgs,
        kind: &str,
    ) -> Result<ReplayResult, Error> {
        let testbed = Testbed::bare()?;
        let receiver = start_receiver(trace, testbed.path())?;
        let mut command = self.command(trace, args, kind)?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let near = testbed.path().from.namespace;
        let child = near
            .run(|| command.spawn())?
            .map_err(|error| Error::Failed(format!("cannot start {}: {error}", self.name())))?;
        // No other child ends during a replay; the receiver ends later.
        let (before, started) = (cpu_of_children(), Instant::now());
        let Output { status, stderr, .. } = child.wait_with_output()?;
        let cpu_s = cpu_of_children() - before;
        let took_s = started.elapsed().as_secs_f64();
        std::thread::sleep(GRACE);
        let received = receiver.stop(Signal::SIGINT)?;
        if !status.success() {
            let (name, words) = (self.name(), String::from_utf8_lossy(&stderr));
            return Err(Error::Failed(format!("{name} failed, {status}: {words}")));
        }
        Ok(ReplayResult {
            cpu_s,
            took_s,
            received,
        })
    }
}

/// Interface name in both namespaces of the testbed.
pub const INTERFACE: &str = "eth0";

/// Time limit of a receiver that no program stops; longer than any trace takes, even with a slow
/// sender.
const RECEIVER_LIFE: &str = "20min";

/// Time between the end of the sender and that of the receiver. Sent frames are immediately in the
/// peer's queue, but under stress, its softirq may run late.
const GRACE: Duration = Duration::from_millis(300);

pub struct ReplayResult {
    /// CPU time of the replaying process.
    pub cpu_s: f64,
    /// Duration of the run.
    pub took_s: f64,
    /// Report of the receiver.
    pub received: Value,
}

/// Starts `longwire receive` in the far namespace; returns once it is receiving.
fn start_receiver(trace: &Trace, path: Path<'_>) -> Result<BenchProgram, Error> {
    let mut command = Command::new(program::path()?);
    let port = format!("packet:{INTERFACE}");
    command.args(["receive", &port, "--json", "--witness"]);
    command.arg("--against").arg(&trace.path);
    // Limit the lifetime of the receiver in case this process dies.
    command.args(["--time", RECEIVER_LIFE]);
    if let Some(core) = host::allowed_cores().first() {
        command.args(["--core", &core.to_string()]);
    }
    let far = Some(path.to.namespace);
    BenchProgram::start("the receiver", far, &mut command, "receiving at")
}

/// Returns the version in the output of `tcpreplay --version`.
fn version_in(text: &str) -> Option<String> {
    let version = text.split_once("version:")?.1.split_whitespace().next()?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_tcpreplay_is_read() {
        let text = "tcpreplay version: 4.4.3 (build git:v4.4.3)\nCache file supported: 04\n";
        assert_eq!(version_in(text), Some("4.4.3".to_owned()));
        assert_eq!(version_in("unknown option --version"), None);
    }
}
