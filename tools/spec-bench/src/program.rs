//! The measured program, with its CPU times and threads.

use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use longwire::Error;
use longwire::bench::harness::show;
use longwire::report::artifacts::is_late;
use longwire_io::net::NetNamespace;
use longwire_runtime::deciding::PortReport;
use longwire_runtime::{NetworkPlan, RunConfig, RunReport, RunningNetwork};
use longwire_testbed::{Plan, Side};
use longwire_topology::Topology;
use longwire_traffic::sockets::{Host, Path};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use serde::Serialize;
use serde_json::Value;

/// Environment variable with the program's path; default: next to this program.
const VARIABLE: &str = "LONGWIRE";

/// Returns the CPU time of all children that have ended, in seconds.
pub fn cpu_of_children() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        micros as f64 / 1e6
    })
}

/// Returns the CPU time of the calling thread, which, unlike wall time, does not depend on the load
/// of other programs.
pub fn cpu_of_thread() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    // Linux always has this clock.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Returns the path of `longwire`: the value of `LONGWIRE`, or the file next to this program.
///
/// # Errors
///
/// If there is no such file.
pub fn path() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let path = std::env::current_exe()?.with_file_name("longwire");
    if !path.is_file() {
        return Err(Error::Failed(format!(
            "{} is missing; build it (cargo build --release), or set {VARIABLE}",
            path.display()
        )));
    }
    Ok(path)
}

/// Converts an error to a bench error.
pub fn failed(error: impl Display) -> Error {
    Error::Failed(error.to_string())
}

/// Returns a valid topology.
///
/// # Errors
/// The problems of an invalid one.
pub fn checked(topology: Result<Topology, Vec<impl Display>>) -> Result<Topology, Error> {
    topology.map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Error::Failed(problems.join("\n"))
    })
}

/// Starts a network.
///
/// # Errors
/// If it does not start.
pub fn start(plan: NetworkPlan, config: RunConfig) -> Result<RunningNetwork, Error> {
    longwire_runtime::start(plan, config, None).map_err(failed)
}

/// Stops a network; returns its report.
///
/// # Errors
/// If it has failed.
pub fn stop(running: RunningNetwork) -> Result<RunReport, Error> {
    let report = running.stop();
    match report.error {
        Some(error) => Err(Error::Failed(error)),
        None => Ok(report),
    }
}

/// Returns the number of the ports' artifacts, without lateness.
pub fn lost_at(ports: &[PortReport]) -> u64 {
    let kinds = ports.iter().flat_map(|port| port.artifacts.iter());
    let lost = kinds.filter(|(kind, _)| !is_late(kind));
    lost.map(|(_, count)| *count).sum()
}

/// Joins a thread and propagates its panic.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let panicked = |panic| std::panic::resume_unwind(panic);
    thread.join().unwrap_or_else(panicked)
}

/// A measurement with its arguments.
pub trait Measurement: Clone {
    /// Rows of one table, or several tables; fields are columns.
    type Found: Serialize;

    /// Test conditions and bars, printed above the table.
    const ABOUT: &'static str;

    /// Returns the arguments of a short measurement, which only shows that the bench works.
    fn quick(&self) -> Self;

    /// Measures; `port` is the kind of live ports.
    ///
    /// # Errors
    /// Any error of the measurement.
    fn measure(&self, port: &str) -> Result<Self::Found, Error>;
}

/// Measures and prints the result as JSON, or as `ABOUT` and tables of the same fields.
///
/// # Errors
/// Any error of the measurement.
pub fn run<M: Measurement>(args: &M, port: &str, quick: bool, json: bool) -> Result<(), Error> {
    let found = if quick { args.quick() } else { args.clone() }.measure(port)?;
    show(M::ABOUT, &found, json)
}

/// Timeout for a [`BenchProgram`] to become ready and to end.
const LIMIT: Duration = Duration::from_secs(10);

/// A program of a bench; ended on drop.
pub struct BenchProgram {
    name: &'static str,
    child: Child,
    /// The line with which the program announced that it is ready.
    announcement: String,
    /// The program's whole stdout and stderr, sent once it has ended.
    outputs: [Receiver<String>; 2],
}

impl BenchProgram {
    /// Starts a program, in a namespace if there is one; returns once it has written a line that
    /// begins with `ready` to stderr, or immediately if `ready` is empty.
    ///
    /// # Errors
    /// If the program does not start, ends before it is ready, or is not ready within [`LIMIT`],
    /// after which it is killed.
    pub fn start(
        name: &'static str,
        namespace: Option<&NetNamespace>,
        command: &mut Command,
        ready: &'static str,
    ) -> Result<BenchProgram, Error> {
        BenchProgram::start_within(LIMIT, name, namespace, command, ready)
    }

    fn start_within(
        limit: Duration,
        name: &'static str,
        namespace: Option<&NetNamespace>,
        command: &mut Command,
        ready: &'static str,
    ) -> Result<BenchProgram, Error> {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = match namespace {
            Some(namespace) => namespace.run(|| command.spawn())?,
            None => command.spawn(),
        };
        let mut child =
            spawned.map_err(|error| Error::Failed(format!("cannot start {name}: {error}")))?;
        let (sender, is_ready) = channel();
        let outputs = [
            drain(child.stdout.take(), |_| ()),
            drain(child.stderr.take(), move |line| {
                if line.starts_with(ready) {
                    let _ = sender.send(line.to_owned());
                }
            }),
        ];
        let mut program = BenchProgram {
            name,
            child,
            announcement: String::new(),
            outputs,
        };
        if ready.is_empty() {
            return Ok(program);
        }
        match is_ready.recv_timeout(limit) {
            Ok(line) => {
                program.announcement = line;
                Ok(program)
            }
            Err(RecvTimeoutError::Disconnected) => {
                program.wait_within(limit)?;
                program.finish()?;
                Err(Error::Failed(format!("{name} ended before it was ready")))
            }
            Err(RecvTimeoutError::Timeout) => {
                program.child.kill()?;
                program.child.wait()?;
                let (_, words) = program.output();
                let limit = limit.as_secs_f64();
                Err(Error::Failed(format!(
                    "{name} was not ready within {limit} s: {}",
                    words.trim()
                )))
            }
        }
    }

    /// Returns the program's PID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the first line on stderr that began with `ready`.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// Returns whether the program has ended.
    ///
    /// # Errors
    /// If its state cannot be read.
    pub fn has_ended(&mut self) -> Result<bool, Error> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Sends a signal, unless the program has ended.
    pub fn signal(&mut self, signal: Signal) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill(Pid::from_raw(self.id().cast_signed()), signal);
        }
    }

    /// Ends the program with a signal, or kills it if it does not end within [`LIMIT`]; returns the
    /// report that it printed.
    ///
    /// # Errors
    /// If it failed, was killed, or printed no report.
    pub fn stop(self, signal: Signal) -> Result<Value, Error> {
        self.stop_within(LIMIT, signal)
    }

    fn stop_within(mut self, limit: Duration, signal: Signal) -> Result<Value, Error> {
        self.signal(signal);
        self.wait_within(limit)?;
        self.finish()
    }

    /// Waits for the program to end, and kills it after [`LIMIT`].
    ///
    /// # Errors
    /// If it cannot be killed.
    pub fn wait(mut self) -> Result<(), Error> {
        self.wait_within(LIMIT)
    }

    /// Waits for the program to end, and kills it at the limit.
    fn wait_within(&mut self, limit: Duration) -> Result<(), Error> {
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > limit {
                self.child.kill()?;
                self.child.wait()?;
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns the program's stdout and stderr, after it has ended.
    fn output(&self) -> (String, String) {
        let outputs = self.outputs.each_ref();
        let [report, words] = outputs.map(|output| output.recv().unwrap_or_default());
        (report, words)
    }

    /// Waits for the program to end; returns the report that it printed.
    ///
    /// # Errors
    /// If it failed, or printed no report.
    pub fn finish(mut self) -> Result<Value, Error> {
        let status = self.child.wait()?;
        let (report, words) = self.output();
        match serde_json::from_str(&report) {
            Ok(report) if status.success() => Ok(report),
            _ => {
                let (name, words) = (self.name, words.trim());
                Err(Error::Failed(format!("{name} failed, {status}: {words}")))
            }
        }
    }
}

impl Drop for BenchProgram {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let _ = self.wait_within(LIMIT);
    }
}

/// Reads a stream on a separate thread, so that the writer never blocks; passes each line to `seen`
/// when it arrives, and returns the text.
fn drain(
    stream: Option<impl Read + Send + 'static>,
    seen: impl Fn(&str) + Send + 'static,
) -> Receiver<String> {
    let (sender, output) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let lines = stream.map(|stream| BufReader::new(stream).split(b'\n'));
        for line in lines.into_iter().flatten().map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            seen(&line);
            text += &line;
            text.push('\n');
        }
        let _ = sender.send(text);
    });
    output
}

/// Timeout for programs to start and to end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A running `longwire exec` with two idle commands.
pub struct ExecRun {
    program: Child,
    near: NetNamespace,
    far: NetNamespace,
    /// PID of the command that ends the run when it exits.
    command: u32,
    report: std::path::PathBuf,
}

/// CPU time of a program, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// CPU time in user space.
    pub own: f64,
    /// CPU time in the kernel.
    pub kernel: f64,
}

impl ExecRun {
    /// Starts the program with options of `exec`, in a folder.
    ///
    /// # Errors
    /// If the program does not start its commands.
    pub fn start(longwire: &FilePath, folder: &FilePath, options: &str) -> Result<ExecRun, Error> {
        let command =
            |side: &str| format!("echo $$ > {side}.new; mv {side}.new {side}; exec sleep 999");
        for side in ["near", "far"] {
            let _ = fs::remove_file(folder.join(side));
        }
        let report = folder.join("report.json");
        let mut program = Command::new(longwire);
        program.current_dir(folder).args(["exec", "--quiet"]);
        program.arg("--report").arg(&report);
        program.args(["--peer-wait", "0ms", "--peer", &command("far")]);
        program.args(options.split_whitespace());
        program.args(["--", "sh", "-c", &command("near")]);
        program.stdin(Stdio::null()).stdout(Stdio::null());
        let mut program = program.spawn()?;
        let command = process_of(&folder.join("near"), &mut program)?;
        let peer = process_of(&folder.join("far"), &mut program)?;
        Ok(ExecRun {
            near: NetNamespace::of_process(command)?,
            far: NetNamespace::of_process(peer)?,
            program,
            command,
            report,
        })
    }

    /// Returns the path from near to far.
    pub fn path(&self) -> Path<'_> {
        let host = |namespace, side| Host {
            namespace,
            address: Plan::USUAL.v4_of(side),
        };
        Path {
            from: host(&self.near, Side::Near),
            to: host(&self.far, Side::Far),
        }
    }

    /// Returns the CPU time used by the program (proc_pid_stat(5), fields 14 and 15).
    ///
    /// # Errors
    /// If the program has ended.
    pub fn cpu(&self) -> Result<Cpu, Error> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.id()))?;
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        // The first field after the name is number 3.
        let mut fields = fields.split(' ').skip(14 - 3);
        let mut next = || -> Option<f64> { fields.next()?.parse().ok() };
        let times = next().zip(next());
        let (own, kernel) = times.ok_or_else(|| {
            Error::Failed(format!("unexpected contents of /proc/PID/stat: {stat}"))
        })?;
        Ok(Cpu {
            own: own / per_second as f64,
            kernel: kernel / per_second as f64,
        })
    }

    /// Returns the CPU time of the program's threads in seconds, with nanosecond resolution and
    /// without waits (the first number in `schedstat`).
    ///
    /// # Errors
    /// If the program has ended.
    pub fn run_time(&self) -> Result<f64, Error> {
        run_time_of(self.program.id())
    }

    /// Returns the program's resident memory, in bytes.
    pub fn resident(&self) -> u64 {
        crate::light::resident(&self.program.id().to_string())
    }

    /// Ends the run; returns its report.
    ///
    /// # Errors
    /// If it cannot be ended, or has written no report.
    pub fn stop(mut self) -> Result<Value, Error> {
        let process = i32::try_from(self.command).unwrap_or(i32::MAX);
        kill(Pid::from_raw(process), Signal::SIGTERM)
            .map_err(|error| Error::Failed(format!("cannot end the run: {error}")))?;
        self.program.wait()?;
        let text = fs::read_to_string(&self.report)?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("invalid report: {error}")))
    }
}

impl Drop for ExecRun {
    fn drop(&mut self) {
        // Has no effect after `stop`; without `stop`, an error ended the bench.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns the CPU time of a process's threads in seconds, like [`ExecRun::run_time`].
///
/// # Errors
/// If the process has ended.
pub fn run_time_of(process: u32) -> Result<f64, Error> {
    let mut nanos = 0.0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended in the meantime.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let time = text.split(' ').next().and_then(|time| time.parse().ok());
        nanos += time.unwrap_or(0.0);
    }
    Ok(nanos / 1e9)
}

/// Waits until a file contains a process ID; returns the ID.
fn process_of(file: &FilePath, program: &mut Child) -> Result<u32, Error> {
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        if let Ok(text) = fs::read_to_string(file)
            && let Ok(process) = text.trim().parse()
        {
            return Ok(process);
        }
        if let Some(status) = program.try_wait()? {
            return Err(Error::Failed(format!("longwire exec ended: {status}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(Error::Failed("longwire exec started no command".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    fn start(script: &str, limit: Duration, ready: &'static str) -> Result<BenchProgram, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        BenchProgram::start_within(limit, "the program", None, &mut command, ready)
    }

    /// Returns the error of a program that ends, or is killed, long before its sleep ends.
    fn error_of<T>(result: impl FnOnce() -> Result<T, Error>) -> String {
        let start = Instant::now();
        let error = result().err().expect("an error").to_string();
        assert!(start.elapsed() < LIMIT, "{error}");
        error
    }

    #[test]
    fn programs_report_after_their_signal() {
        let script = "trap 'echo {}; exit' INT; echo ready >&2; while :; do sleep 0.01; done";
        let program = start(script, LIMIT, "ready").expect("it is ready");
        assert_eq!(program.announcement(), "ready");
        let report = program.stop(Signal::SIGINT).expect("a report");
        assert_eq!(report, serde_json::json!({}));
    }

    #[test]
    fn programs_that_are_never_ready_are_killed() {
        let error = error_of(|| start("echo waiting >&2; exec sleep 60", SHORT, "ready"));
        assert_eq!(error, "the program was not ready within 0.3 s: waiting");
        let error = error_of(|| start("echo broken >&2; exit 1", LIMIT, "ready"));
        assert!(error.ends_with("exit status: 1: broken"), "{error}");
    }

    #[test]
    fn programs_that_ignore_their_signal_are_killed() {
        let script = "trap '' INT; echo ready >&2; exec sleep 60";
        let program = start(script, LIMIT, "ready").expect("it is ready");
        let error = error_of(|| program.stop_within(SHORT, Signal::SIGINT));
        assert!(error.contains("SIGKILL"), "{error}");
    }
}
