//! `verdict`: how often short runs fail a requirement.
//!
//! Without a fault, each failure is a false alarm. With a fault, each run that meets the
//! requirement is a miss. A run is a `longwire exec` as started by users, with datagrams over a
//! link for a fraction of a second.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use longwire::Error;
use longwire::report::Requirement;
use longwire::report::artifacts::is_own;
use longwire::report::require::RECOMMENDED;
use longwire::signals::stop_flag;
use longwire_engine::Nanos;
use longwire_runtime::host;
use longwire_testbed::support::Folder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;
use serde_json::Value;

use crate::program;
use crate::program::Measurement;

/// Options of `verdict`.
#[derive(Clone, Debug, Args)]
pub struct VerdictArgs {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub runs: u32,
    /// Duration of each run's datagrams
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    pub time: Nanos,
    /// Requirement of each run
    #[arg(long, value_name = "EXPRESSION", default_value = RECOMMENDED)]
    pub require: String,
    /// Busy threads of normal priority during the runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub load: usize,
    /// A fault to inject into each run
    #[arg(long, value_name = "FAULT", value_enum)]
    pub fault: Option<Fault>,
    /// Internal: only send datagrams to this address, inside a run
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub send: Option<String>,
    /// Internal: file that the sender creates after half of the time
    #[arg(long, value_name = "FILE", hide = true)]
    pub midway: Option<PathBuf>,
}

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// The emulator is stopped by a signal for 50 ms
    Stop,
    /// One core, half of which a real-time thread occupies
    Core,
    /// The memory is too small for the frames in flight
    Memory,
}

/// Counts over all runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerdictFindings {
    require: String,
    load: usize,
    runs: u32,
    /// Runs that did not meet the requirement.
    failed: u32,
    /// Runs with any artifact, which would fail `artifacts=0`.
    any_artifact: u32,
    /// Runs with an artifact caused by the emulator.
    own_artifact: u32,
    /// Runs with a machine pause.
    paused: u32,
    frames: u64,
    /// Artifacts by kind, over all runs.
    artifacts: std::collections::BTreeMap<String, u64>,
}

/// Datagrams per second.
const RATE: u64 = 2_500;

/// Datagram size in bytes.
const LEN: usize = 1_000;

/// Time for which the emulator is stopped.
const STOPPED: Duration = Duration::from_millis(50);

impl Measurement for VerdictArgs {
    type Found = VerdictFindings;

    const ABOUT: &'static str = "Short `longwire exec` runs that fail their requirement.";

    fn quick(&self) -> VerdictArgs {
        VerdictArgs {
            runs: 2,
            ..self.clone()
        }
    }

    fn measure(&self, _port: &str) -> Result<VerdictFindings, Error> {
        let parsed: Result<Requirement, _> = self.require.parse();
        parsed.map_err(|error| Error::Usage(format!("--require: {error}")))?;
        let stop = stop_flag()?;
        let _load = BusyThreads::start(self.load, || {}, std::hint::spin_loop);
        if self.fault == Some(Fault::Core) {
            // Children of this thread inherit its affinity.
            pin_to_first_core();
        }
        let folder = Folder::create()?;
        let mut findings = VerdictFindings {
            require: self.require.clone(),
            load: self.load,
            ..VerdictFindings::default()
        };
        let mut ended = Ok(());
        while findings.runs < self.runs && !stop.load(Ordering::Relaxed) && ended.is_ok() {
            ended = one_run(self, &folder.path().join("report.json"), &mut findings);
            if findings.runs.is_multiple_of(10) {
                eprintln!("{} runs, {} failed", findings.runs, findings.failed);
            }
        }
        ended.map(|()| findings)
    }
}

fn one_run(args: &VerdictArgs, report: &Path, findings: &mut VerdictFindings) -> Result<(), Error> {
    let mut command = Command::new(program::path()?);
    // With this delay and the memory below, there is no room for all frames.
    let delay = match args.fault {
        Some(Fault::Memory) => "2s",
        _ => "10ms",
    };
    command.args(["exec", "-q", "--rate", "100mbit", "--delay", delay]);
    command.arg("--report").arg(report);
    command.args(["--require", &args.require]);
    if args.fault == Some(Fault::Memory) {
        command.args(["--memory", "256kb"]);
    }
    command.arg("--").arg(std::env::current_exe()?);
    command.args(["verdict", "--send", "far:9"]);
    command.args(["--time", &args.time.to_string()]);
    let midway = report.with_file_name("midway");
    command.arg("--midway").arg(&midway);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let busy_thread = (args.fault == Some(Fault::Core))
        .then(|| BusyThreads::start(1, take_first_core, half_busy));
    let mut child = command.spawn()?;
    if args.fault == Some(Fault::Stop) {
        stop_midway(&mut child, &midway)?;
    }
    let output = child.wait_with_output()?;
    drop(busy_thread);
    let failed = judge(output.status, &output.stderr)?;
    let text = std::fs::read_to_string(report)?;
    let parsed: Result<Value, _> = serde_json::from_str(&text);
    let parsed = parsed.map_err(|error| Error::Failed(format!("invalid report: {error}")))?;
    findings.add(&parsed, failed);
    Ok(())
}

/// Stops the emulator for [`STOPPED`] once the file `midway` exists.
fn stop_midway(child: &mut Child, midway: &Path) -> Result<(), Error> {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    while !midway.exists() && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::remove_file(midway)?;
    let stopped = kill(pid, Signal::SIGSTOP);
    std::thread::sleep(STOPPED);
    let _ = kill(pid, Signal::SIGCONT);
    stopped.map_err(|error| Error::Failed(format!("cannot stop the emulator: {error}")))
}

/// Returns whether the run failed its requirement.
fn judge(status: ExitStatus, stderr: &[u8]) -> Result<bool, Error> {
    match status.code() {
        Some(0) => Ok(false),
        Some(code) if code == i32::from(longwire::error::EXIT_FIDELITY) => Ok(true),
        _ => Err(Error::Failed(format!(
            "a run ended with {status}: {}",
            String::from_utf8_lossy(stderr).trim()
        ))),
    }
}

impl VerdictFindings {
    fn add(&mut self, report: &Value, failed: bool) {
        self.runs += 1;
        self.failed += u32::from(failed);
        self.paused += u32::from(report["pauses"]["count"].as_u64() > Some(0));
        let (mut any, mut own) = (false, false);
        for port in report["ports"].as_array().into_iter().flatten() {
            self.frames += port["packets_out"].as_u64().unwrap_or(0);
            for (kind, count) in port["artifacts"].as_object().into_iter().flatten() {
                let count = count.as_u64().unwrap_or(0);
                if count > 0 {
                    any = true;
                    own |= is_own(kind);
                    *self.artifacts.entry(kind.clone()).or_default() += count;
                }
            }
        }
        self.any_artifact += u32::from(any);
        self.own_artifact += u32::from(own);
    }
}

/// Pins the calling thread to the first core that it may use.
fn pin_to_first_core() {
    if let Some(core) = host::allowed_cores().into_iter().next() {
        let _ = host::pin(core);
    }
}

/// Sends evenly spaced datagrams to the address given with `--send`. This is the command inside a
/// run.
///
/// # Errors
/// If the name has no IPv4 address, or the socket fails.
pub(super) fn send(args: &VerdictArgs) -> Result<(), Error> {
    let address = args.send.as_deref().unwrap_or_default();
    let time = Duration::from_nanos(args.time.as_nanos());
    // A name may have addresses of both families; choose one of the socket's family.
    let mut addresses = address.to_socket_addrs()?;
    let address = addresses
        .find(SocketAddr::is_ipv4)
        .ok_or_else(|| Error::Failed(format!("{address} has no IPv4 address")))?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let start = Instant::now();
    let datagram = [0u8; LEN];
    let mut midway = args.midway.as_deref();
    for number in 0.. {
        let due = Duration::from_nanos(number * 1_000_000_000 / RATE);
        if due >= time {
            break;
        }
        if let Some(file) = midway.take_if(|_| due >= time / 2) {
            std::fs::write(file, [])?;
        }
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        match socket.send_to(&datagram, address) {
            // Ignore a refused connection: an ICMP message reports the closed port.
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Threads that repeat their work until they are stopped on drop.
struct BusyThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    /// Starts threads that each call `prepare` once, and then `work` repeatedly.
    fn start(threads: usize, prepare: fn(), work: fn()) -> BusyThreads {
        let stop = Arc::new(AtomicBool::new(false));
        let busy = || {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                prepare();
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            })
        };
        let threads = (0..threads).map(|_| busy()).collect();
        BusyThreads { stop, threads }
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Makes the calling thread a real-time thread on the first core.
fn take_first_core() {
    pin_to_first_core();
    host::realtime();
}

/// Occupies the core for 20 ms, then sleeps for 20 ms.
fn half_busy() {
    const BUSY: Duration = Duration::from_millis(20);
    let start = Instant::now();
    while start.elapsed() < BUSY {
        std::hint::spin_loop();
    }
    std::thread::sleep(BUSY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_counted_by_what_its_report_says() {
        let report = serde_json::json!({
            "pauses": {"count": 1},
            "ports": [
                {"packets_out": 70, "artifacts": {"late": 0, "late_paused": 3}},
                {"packets_out": 30, "artifacts": {"late": 0}},
            ],
        });
        let mut findings = VerdictFindings::default();
        findings.add(&report, false);
        let counted = (
            findings.any_artifact,
            findings.own_artifact,
            findings.paused,
        );
        assert_eq!(counted, (1, 0, 1));
        assert_eq!(findings.frames, 100);
    }
}
