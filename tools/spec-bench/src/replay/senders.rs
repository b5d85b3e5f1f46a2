//! The programs of a replay: sender and receiver.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use longwire_runtime::host;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::traces::Trace;
use super::{ReplayArgs, TIMEOUT, Testbed};
use crate::program::{self, cpu_of_children};
use longwire::Error;
use longwire_traffic::sockets::Path;

/// A program that replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplaySender {
    /// `longwire replay` with its defaults: a real-time class where it is allowed
    Longwire,
    /// `longwire replay --no-realtime`
    LongwireNormal,
    /// `longwire replay --wait spin`: the limit of the machine
    LongwireSpin,
    /// tcpreplay with its own choice of timer
    Tcpreplay,
    /// tcpreplay that sleeps between packets: --timer=nano
    TcpreplayNano,
    /// tcpreplay with SCHED_FIFO, by chrt; it never sleeps, so the machine may
    /// stand still during the replay
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
    pub(super) fn version(self) -> Option<String> {
        match self {
            ReplaySender::Longwire | ReplaySender::LongwireNormal | ReplaySender::LongwireSpin => {
                Some(String::new())
            }
            _ => {
                let output = Command::new("tcpreplay").arg("--version").output().ok()?;
                // Some versions print it on stdout, others on stderr.
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                let version = text.split_once("version:")?.1.split_whitespace().next()?;
                Some(version.to_owned())
            }
        }
    }

    fn command(self, trace: &Trace, args: &ReplayArgs, kind: &str) -> Result<Command, Error> {
        let file = trace.path.as_os_str();
        Ok(match self {
            ReplaySender::Longwire | ReplaySender::LongwireNormal | ReplaySender::LongwireSpin => {
                let mut command = Command::new(program::path()?);
                command.arg("replay").arg(file);
                command.args(["--to", &format!("{kind}:{INTERFACE}"), "--quiet"]);
                match self {
                    ReplaySender::LongwireNormal => drop(command.arg("--no-realtime")),
                    ReplaySender::LongwireSpin => drop(command.args(["--wait", "spin"])),
                    _ => {}
                }
                let options = args.replay_options.as_deref().unwrap_or_default();
                command.args(options.split_whitespace());
                command
            }
            ReplaySender::Tcpreplay | ReplaySender::TcpreplayNano => {
                let mut command = Command::new("tcpreplay");
                if self == ReplaySender::TcpreplayNano {
                    command.arg("--timer=nano");
                }
                command.args(["-q", "-i", INTERFACE]).arg(file);
                command
            }
            ReplaySender::TcpreplayFifo => {
                let mut command = Command::new("chrt");
                command.args(["--fifo", "10", "tcpreplay", "-q", "-i", INTERFACE]);
                command.arg(file);
                command
            }
        })
    }

    /// Replays a trace from one namespace to another, where a receiver compares it.
    pub(super) fn replay(
        self,
        trace: &Trace,
        args: &ReplayArgs,
        kind: &str,
    ) -> Result<ReplayResult, Error> {
        let testbed = Testbed::bare()?;
        let receiver = Receiver::start(trace, testbed.path())?;
        let mut command = self.command(trace, args, kind)?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let near = testbed.path().from.namespace;
        let mut child = near
            .run(|| command.spawn())?
            .map_err(|error| Error::Failed(format!("cannot start {}: {error}", self.name())))?;
        let words = drain(child.stderr.take());
        // No other child ends during a replay; the receiver ends later.
        let (before, started) = (cpu_of_children(), Instant::now());
        let status = child.wait()?;
        let cpu_s = cpu_of_children() - before;
        let took_s = started.elapsed().as_secs_f64();
        let words = words.join().unwrap_or_default();
        let received = receiver.stop()?;
        if !status.success() {
            let name = self.name();
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
const INTERFACE: &str = "eth0";

/// Time limit for a receiver that is not stopped. Longer than any trace takes, even with a slow
/// sender.
const RECEIVER_LIFE: &str = "20min";

pub(super) struct ReplayResult {
    /// CPU time of the replaying process.
    pub cpu_s: f64,
    /// Duration of the run.
    pub took_s: f64,
    /// Report of the receiver.
    pub received: Value,
}

/// Reads a stream to its end on a separate thread, so that the writer never blocks.
fn drain(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stream) = stream {
            // Ignore output that is not text.
            let _ = stream.read_to_string(&mut text);
        }
        text
    })
}

/// A running `longwire receive` in the far namespace.
struct Receiver {
    child: Child,
    report: std::thread::JoinHandle<String>,
    words: std::thread::JoinHandle<String>,
}

impl Receiver {
    /// Starts the receiver; returns once it is receiving.
    fn start(trace: &Trace, path: Path<'_>) -> Result<Receiver, Error> {
        let mut command = Command::new(program::path()?);
        command.args([
            "receive",
            &format!("packet:{INTERFACE}"),
            "--json",
            "--witness",
        ]);
        command.arg("--against").arg(&trace.path);
        // Limit the lifetime of the receiver in case this process dies.
        command.args(["--time", RECEIVER_LIFE]);
        if let Some(core) = host::allowed_cores().first() {
            command.args(["--core", &core.to_string()]);
        }
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let far = path.to.namespace;
        let mut child = far
            .run(|| command.spawn())?
            .map_err(|error| Error::Failed(format!("cannot start the receiver: {error}")))?;
        let report = drain(child.stdout.take());
        let (tell, told) = std::sync::mpsc::channel();
        let stderr = child.stderr.take();
        let words = std::thread::spawn(move || {
            let mut words = String::new();
            for line in stderr.into_iter().flat_map(|s| BufReader::new(s).lines()) {
                let Ok(line) = line else { break };
                if line.starts_with("receiving at") {
                    let _ = tell.send(());
                }
                words += &line;
                words.push('\n');
            }
            words
        });
        let mut receiver = Receiver {
            child,
            report,
            words,
        };
        if told.recv_timeout(TIMEOUT).is_err() {
            let _ = receiver.child.kill();
            let _ = receiver.child.wait();
            let words = receiver.words.join().unwrap_or_default();
            return Err(Error::Failed(format!("cannot start the receiver: {words}")));
        }
        Ok(receiver)
    }

    /// Stops the receiver shortly after the last frame has been sent.
    fn stop(mut self) -> Result<Value, Error> {
        /// Sent frames are immediately in the peer's queue, but under stress, its softirq may run
        /// late.
        const GRACE: Duration = Duration::from_millis(300);
        std::thread::sleep(GRACE);
        let child = Pid::from_raw(self.child.id().cast_signed());
        kill(child, Signal::SIGINT).map_err(std::io::Error::from)?;
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                break self.child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let report = self.report.join().unwrap_or_default();
        let words = self.words.join().unwrap_or_default();
        match serde_json::from_str(&report) {
            Ok(report) if status.success() => Ok(report),
            _ => Err(Error::Failed(format!(
                "the receiver failed, {status}: {words}"
            ))),
        }
    }
}
