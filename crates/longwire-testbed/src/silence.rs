//! Waits until the kernel has announced the new IPv6 addresses.
//!
//! An address joins its solicited-node group, which the kernel reports twice
//! (RFC 3810) within a few of its ticks. What is sent before a port is read is
//! not on the link.

use std::fs::File;
use std::io::{Read, Seek};
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_io::net::{NetError, NetNamespace};

use crate::network::DEVICE;

/// Without a report for this long there will be none: two ticks of a kernel
/// with 100 ticks a second, and some reserve.
const QUIET: Duration = Duration::from_millis(25);
/// The longest wait; a busy machine may delay the kernel's own work.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between two reads of the counter.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the devices of these namespaces have sent no ICMPv6 message
/// for a while. Returns at once where there is no such counter (no IPv6).
///
/// # Errors
///
/// If a namespace cannot be entered.
pub fn wait_for_silence(namespaces: &[NetNamespace]) -> Result<(), NetError> {
    let open = || File::open(format!("/proc/thread-self/net/dev_snmp6/{DEVICE}")).ok();
    let mut counters = Vec::new();
    for namespace in namespaces {
        counters.extend(namespace.run(open)?);
    }
    let mut sent = || -> u64 { counters.iter_mut().filter_map(messages_sent).sum() };
    let start = Instant::now();
    let (mut last, mut quiet) = (sent(), Duration::ZERO);
    while quiet < QUIET && start.elapsed() < TIMEOUT {
        sleep(INTERVAL);
        let now = sent();
        // A sleep that took longer shows a busy machine, whose kernel is as late
        // with its reports: it counts as one interval.
        quiet = if now == last {
            quiet + INTERVAL
        } else {
            Duration::ZERO
        };
        last = now;
    }
    Ok(())
}

/// Reads the number of ICMPv6 messages that a device has sent.
fn messages_sent(counters: &mut File) -> Option<u64> {
    let mut text = String::new();
    counters.rewind().ok()?;
    counters.read_to_string(&mut text).ok()?;
    let value = |line: &str| line.strip_prefix("Icmp6OutMsgs")?.trim().parse().ok();
    text.lines().find_map(value)
}
