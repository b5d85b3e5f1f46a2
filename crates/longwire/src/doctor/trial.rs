//! Whether `exec` works here, by trying it.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Finding;

/// What a trial may take; it is over in a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(10);

const TOPIC: &str = "exec";
const COST: &str = "no programs behind a link, and no probe";

/// Runs `true` behind a link with `program`, which is Longwire itself: the
/// networks, devices, ports and threads are made and removed. In a process of
/// its own, because a user's networks cannot be made in one with threads.
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
        Err(error) => return failed(format!("cannot be tried: {error}")),
    };
    match wait(&mut child) {
        Some(true) => {
            let took = started.elapsed().as_millis();
            Finding::ok(
                TOPIC,
                format!("works: a link was made, used and removed in {took} ms"),
            )
        }
        Some(false) => failed(message(&mut child)),
        None => failed(format!("did not end within {} s", PATIENCE.as_secs())),
    }
}

/// Whether the child ended well; `None` if it had to be ended.
fn wait(child: &mut Child) -> Option<bool> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) => sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    // If it is gone already, so much the better.
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// What the child said of its failure.
fn message(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // What cannot be read is not said.
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
