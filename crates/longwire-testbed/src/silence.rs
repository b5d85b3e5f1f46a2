//! Waits until the kernel has announced the new IPv6 addresses.
//!
//! An address joins its solicited-node group, which the kernel reports twice (RFC 3810)
//! within a few timer ticks. Packets sent before a port is read do not reach the link.

use std::fs::File;
use std::io::{Read, Seek};
use std::thread::sleep;
use std::time::Duration;

use longwire_io::net::{NetError, NetNamespace};

use crate::network::DEVICE;

/// Time without a report after which no more are expected: two ticks at 100 Hz, plus a
/// margin.
const QUIET: Duration = Duration::from_millis(25);
/// The same for a device that has sent fewer messages than [`USUAL`], since the kernel's
/// thread may be waiting for a core.
const QUIET_EARLY: Duration = Duration::from_millis(150);
/// Typical number of messages of a device: two when its groups change, and two once its
/// addresses are valid.
const USUAL: u64 = 4;
/// Maximum wait in intervals; a busy machine may delay the kernel.
const INTERVALS_MAX: usize = 100;
/// Interval between two reads of the counter.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the devices of these namespaces have sent no ICMPv6 message for some time.
/// Returns at once if the counter does not exist (no IPv6).
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
    let mut sent = || -> Vec<u64> { counters.iter_mut().filter_map(messages_sent).collect() };
    let (mut last, mut quiet) = (sent(), Duration::ZERO);
    for _ in 0..INTERVALS_MAX {
        if quiet >= quiet_after(&last) {
            break;
        }
        sleep(INTERVAL);
        let now = sent();
        // A sleep that took longer indicates a busy machine, whose kernel is equally late
        // with its reports; it counts as one interval.
        quiet = if now == last {
            quiet + INTERVAL
        } else {
            Duration::ZERO
        };
        last = now;
    }
    Ok(())
}

/// Returns the silent time that shows that all messages were sent.
fn quiet_after(sent: &[u64]) -> Duration {
    if sent.iter().all(|count| *count >= USUAL) {
        QUIET
    } else {
        QUIET_EARLY
    }
}

/// Reads the number of ICMPv6 messages sent by a device.
fn messages_sent(counters: &mut File) -> Option<u64> {
    let mut text = String::new();
    counters.rewind().ok()?;
    counters.read_to_string(&mut text).ok()?;
    let value = |line: &str| line.strip_prefix("Icmp6OutMsgs")?.trim().parse().ok();
    text.lines().find_map(value)
}
