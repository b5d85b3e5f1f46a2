//! Runs `longwire attach` as users do.

use std::os::fd::{AsFd, AsRawFd};
use std::process::{self, Command};
use std::time::{Duration, Instant};

use longwire::Error;
use longwire::bench::harness::median;
use longwire::bench::testbed::Testbed;
use longwire_io::net::{NetNamespace, link_names};
use nix::sys::signal::Signal;

use crate::program::{self, BenchProgram, run_time_of};

/// Number of starts per measurement of the attach time.
const STARTS: usize = 5;

/// A running `longwire attach`.
pub(super) struct AttachRun {
    program: BenchProgram,
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
        let start = Instant::now();
        let program = BenchProgram::start("longwire attach", None, &mut command, "attached to")?;
        let took = start.elapsed();
        Ok(AttachRun { program, took })
    }

    /// Returns the CPU time of the program's threads, in seconds.
    ///
    /// # Errors
    /// If the program has ended.
    pub fn run_time(&self) -> Result<f64, Error> {
        run_time_of(self.program.id())
    }

    /// Kills the program without waiting for it to end.
    pub fn signal_kill(&mut self) {
        self.program.signal(Signal::SIGKILL);
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
