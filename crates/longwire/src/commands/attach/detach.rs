//! `longwire attach detach`: removes attached links.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::registry::{self, AttachProcess};
use crate::{Error, Globals};

/// Time to wait for a run to end before it is killed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `attach detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Link names, as in `attach list`
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,

    /// Remove all attached links
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// Ends `attach` runs and waits for them to exit; detaches the node's attachments.
pub(super) fn detach(args: &DetachArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let found = if args.all {
        registry::all()?
    } else {
        let found = args.names.iter().map(|name| registry::named(name));
        found.collect::<Result<_, _>>()?
    };
    for process in found.iter().filter_map(|one| one.process.as_ref()) {
        if !process.closed {
            end(process, Signal::SIGTERM)?;
        }
    }
    for one in &found {
        let name = &one.view.name;
        match &one.process {
            None => registry::detach(name)?,
            Some(process) => {
                if !has_ended(process) {
                    end(process, Signal::SIGKILL)?;
                    if !has_ended(process) {
                        return Err(Error::failed(format!(
                            "process {} of '{name}' was killed but has not exited; it is blocked \
                             in the kernel",
                            process.pid
                        )));
                    }
                }
                one.open(process)?;
            }
        }
        if !globals.quiet {
            println!("'{name}' was detached");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the run's process to end; returns false on timeout.
fn has_ended(process: &AttachProcess) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    while process.is_alive() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn end(process: &AttachProcess, signal: Signal) -> Result<(), Error> {
    let pid = process.pid;
    match kill(Pid::from_raw(pid.cast_signed()), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(Error::failed(format!("cannot stop process {pid}: {error}"))),
    }
}
