//! Leftovers of tests and benches on the machine: network namespaces with names, network devices
//! and processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::runner::Shortfall::Failed;
use crate::runner::{Outcome, entries};

/// Program whose processes count as leftovers.
const PROGRAM: &str = "longwire";

/// Time limit for the kernel to remove released objects.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the existing namespaces, devices and processes.
pub fn look() -> BTreeSet<String> {
    let listed = |dir: &str, what: &str| -> Vec<String> {
        let names = entries(Path::new(dir)).map(|entry| entry.file_name());
        names
            .map(|name| format!("{what} {}", name.to_string_lossy()))
            .collect()
    };
    let mut found = BTreeSet::new();
    found.extend(listed("/run/netns", "namespace"));
    found.extend(listed("/sys/class/net", "device"));
    found.extend(processes());
    found
}

fn processes() -> Vec<String> {
    let is_ours = |process: &Path| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        name.trim() == PROGRAM
    };
    let paths = entries(Path::new("/proc")).map(|entry| entry.path());
    let ours = paths.filter(|path| is_ours(path));
    ours.map(|path| format!("process {}", path.display()))
        .collect()
}

/// Fails if new leftovers still exist after [`RELEASE_TIMEOUT`].
pub fn compare(before: &BTreeSet<String>) -> Outcome {
    let start = Instant::now();
    loop {
        let now = look();
        let left: Vec<&str> = now.difference(before).map(String::as_str).collect();
        if left.is_empty() {
            return Ok(());
        }
        if start.elapsed() > RELEASE_TIMEOUT {
            return Err(Failed(format!("left behind: {}", left.join(", "))));
        }
        thread::sleep(Duration::from_millis(200));
    }
}
