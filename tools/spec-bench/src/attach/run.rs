//! Runs `longwire attach` as users do.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longwire::Error;
use longwire::bench::harness::median;
use longwire::bench::testbed::Testbed;
use longwire_io::net::{NetNamespace, link_names};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program;
use crate::program::run_time_of;

/// Number of starts per measurement of the attach time.
const STARTS: usize = 5;

/// A running `longwire attach`.
pub(super) struct AttachRun {
    program: Child,
    /// Time from the start until frames cross the link.
    pub took: Duration,
}

impl AttachRun {
    /// Attaches a link to an interface of a namespace, or to `all`.
    ///
    /// # Errors
    /// If the program exits before the link is attached.
    pub fn start(
        namespace: &NetNamespace,
        interface: &str,
        options: &str,
    ) -> Result<AttachRun, Error> {
        let file = namespace.as_fd().as_raw_fd();
        let place = format!("/proc/{}/fd/{file}", process::id());
        let mut command = Command::new(program::path()?);
        command.args(["attach", "--netns", &place, "--interface", interface]);
        command.args(["--name", &format!("bench-{}-{file}", process::id())]);
        command.args(options.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let start = Instant::now();
        let mut program = command.spawn()?;
        let stderr = program.stderr.take();
        let mut lines =
            BufReader::new(stderr.ok_or_else(|| failed("the run has no output"))?).lines();
        let attached = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.starts_with("attached to"));
        let took = start.elapsed();
        let run = AttachRun { program, took };
        if attached.is_none() {
            return Err(failed("the run ended before it was attached"));
        }
        // Drain the output, so that the program can write its final notes.
        thread::spawn(move || lines.for_each(drop));
        Ok(run)
    }

    /// Returns the CPU time of the program's threads, in seconds.
    ///
    /// # Errors
    /// If the program has ended.
    pub fn run_time(&self) -> Result<f64, Error> {
        run_time_of(self.program.id())
    }

    /// Kills the program without waiting for it to end.
    pub fn signal_kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.program.id()).unwrap_or(i32::MAX);
        let _ = kill(Pid::from_raw(process), signal);
    }
}

impl Drop for AttachRun {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let _ = self.program.wait();
    }
}

pub(super) fn failed(reason: &str) -> Error {
    Error::Failed(format!("longwire attach: {reason}"))
}

/// Returns the name of a host's only interface.
///
/// # Errors
/// If there is none.
pub(super) fn interface_of(host: &NetNamespace) -> Result<String, Error> {
    let names = host.run(link_names)??;
    let found = names.into_iter().find(|name| name != "lo");
    found.ok_or_else(|| failed("the host has no interface"))
}

/// Returns the median time from the program's start until a link is attached, in milliseconds.
///
/// # Errors
/// If the link cannot be attached.
pub(super) fn attach_ms() -> Result<f64, Error> {
    let testbed = Testbed::bare()?;
    let Testbed::Bare([near, _]) = &testbed else {
        return Err(failed("the hosts have an emulator"));
    };
    let interface = interface_of(near)?;
    let starts = (0..STARTS).map(|_| {
        let run = AttachRun::start(near, &interface, "--delay 10ms")?;
        Ok(run.took.as_secs_f64() * 1e3)
    });
    Ok(median(starts.collect::<Result<Vec<f64>, Error>>()?))
}
