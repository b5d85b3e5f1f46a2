//! Trial of `exec`.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Finding;

/// Timeout of the trial, which normally takes a fraction of a second.
const TIMEOUT: Duration = Duration::from_secs(10);

const TOPIC: &str = "exec";
const COST: &str = "exec: no programs and no probe";

/// Runs `true` through a link with `program`, which is Longwire itself: creates and
/// removes networks, devices, ports and threads. It runs in a separate process, because
/// a multithreaded process cannot create a user namespace.
pub(super) fn check(program: &Path) -> Finding {
    let started = Instant::now();
    let child = Command::new(program)
        .args(["exec", "-q", "--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let failed = |why: String| Finding::fail(TOPIC, why).costs(COST);
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!("not tried: {error}")),
    };
    match wait(&mut child) {
        Some(true) => {
            let took = started.elapsed().as_millis();
            Finding::ok(
                TOPIC,
                format!("works: created, used and removed a link in {took} ms"),
            )
        }
        Some(false) => failed(message(&mut child)),
        None => failed(format!("did not exit within {} s", TIMEOUT.as_secs())),
    }
}

/// Returns whether the child succeeded; `None` if it was killed.
fn wait(child: &mut Child) -> Option<bool> {
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) => sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    // The child may have exited already.
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Returns the child's error message.
fn message(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // Best effort: the finding then lacks a message.
        let _ = stderr.read_to_string(&mut said);
    }
    let said = said.trim();
    said.strip_prefix("error: ").unwrap_or(said).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_program_that_ends_well_is_well() {
        assert_eq!(check(Path::new("/bin/true")).status, Status::Ok);
        assert_eq!(check(Path::new("/bin/false")).status, Status::Fail);
        let missing = check(Path::new("/no/such/program"));
        assert!(missing.found.contains("No such file"), "{missing:?}");
    }
}
