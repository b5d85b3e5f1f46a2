//! Runs `longwire exec` as users do, for traffic from ordinary sockets in its networks.

use std::fs;
use std::path::Path as FilePath;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use longwire_testbed::{Plan, Side};
use longwire_traffic::sockets::{Host, Path};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use serde_json::Value;

use crate::idle;
use longwire::Error;

/// Timeout for programs to start and to end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `longwire exec` with two idle commands.
pub struct ExecRun {
    program: Child,
    near: NetNamespace,
    far: NetNamespace,
    /// The command whose exit ends the run.
    command: u32,
    report: std::path::PathBuf,
}

/// CPU time of a program, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// In user space.
    pub own: f64,
    /// In the kernel.
    pub kernel: f64,
}

impl ExecRun {
    /// Starts the program with options of `exec`, in a folder.
    ///
    /// # Errors
    /// If it does not start its commands.
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

    /// Returns the CPU time that the program has used (proc_pid_stat(5), fields 14 and 15).
    ///
    /// # Errors
    /// If the program has ended.
    pub fn cpu(&self) -> Result<Cpu, Error> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.id()))?;
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        // The first field after the name is field 3.
        let mut fields = fields.split(' ').skip(14 - 3);
        let mut next = || -> Option<f64> { fields.next()?.parse().ok() };
        let times = next().zip(next());
        let (own, kernel) = times.ok_or_else(|| Error::Failed(format!("/proc: {stat}")))?;
        Ok(Cpu {
            own: own / per_second as f64,
            kernel: kernel / per_second as f64,
        })
    }

    /// Returns the CPU time of the program's threads in seconds, to the nanosecond and
    /// without waiting (the first number of `schedstat`).
    ///
    /// # Errors
    /// If the program has ended.
    pub fn run_time(&self) -> Result<f64, Error> {
        run_time_of(self.program.id())
    }

    /// Returns the resident memory of the program, in bytes.
    pub fn resident(&self) -> u64 {
        idle::resident(&self.program.id().to_string())
    }

    /// Ends the run; returns its report.
    ///
    /// # Errors
    /// If it cannot be ended, or wrote no report.
    pub fn stop(mut self) -> Result<Value, Error> {
        let process = i32::try_from(self.command).unwrap_or(i32::MAX);
        kill(Pid::from_raw(process), Signal::SIGTERM)
            .map_err(|error| Error::Failed(format!("cannot end the run: {error}")))?;
        self.program.wait()?;
        let text = fs::read_to_string(&self.report)?;
        serde_json::from_str(&text).map_err(|error| Error::Failed(format!("a report: {error}")))
    }
}

impl Drop for ExecRun {
    fn drop(&mut self) {
        // A no-op after `stop`; otherwise an error ends the bench.
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
        // A thread may end meanwhile.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let time = text.split(' ').next().and_then(|time| time.parse().ok());
        nanos += time.unwrap_or(0.0);
    }
    Ok(nanos / 1e9)
}

/// Returns the process ID that is in a file.
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
    Err(Error::Failed("longwire exec starts no command".to_owned()))
}
