//! Memory checks: huge pages, address space and lockable memory.

use longwire_io::rights::Capability;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::Finding;
use super::rights::has;
use super::system::{chosen, field, number, read};
use crate::remedies::{ADDRESS_SPACE, address_space_limit};

pub(super) fn check() -> Vec<Finding> {
    let mut findings = vec![huge_pages(
        read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref(),
        number("/proc/sys/vm/nr_hugepages"),
    )];
    findings.extend(available(&read("/proc/meminfo").unwrap_or_default()));
    if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_MEMLOCK) {
        findings.push(lockable(soft, has(Capability::IpcLock)));
    }
    findings.push(addresses(address_space_limit()));
    findings
}

/// Checks the address-space limit, because in-flight frames reserve address space.
fn addresses(limit: Option<u64>) -> Finding {
    /// Address space for typical runs: several times the minimum default memory (256 MiB) of two
    /// directions, and the program.
    const COMFORTABLE: u64 = 2 << 30;
    let Some(limit) = limit else {
        return Finding::ok("addresses", "unlimited");
    };
    let found = format!("{} MiB (ulimit -v)", limit >> 20);
    Finding::warn_unless(limit >= COMFORTABLE, "addresses", found)
        .costs("runs may fail to start: memory for queued frames is reserved at the start")
        .fix(format!("{ADDRESS_SPACE}, or a smaller --memory"))
}

fn huge_pages(transparent: Option<&str>, reserved: Option<i64>) -> Finding {
    let mode = transparent.and_then(chosen).unwrap_or("unknown");
    let reserved = reserved.unwrap_or(0);
    let found = format!("transparent: {mode}; {reserved} reserved");
    let are_used = reserved > 0 || matches!(mode, "madvise" | "always");
    Finding::warn_unless(are_used, "huge pages", found)
        .costs("TLB misses with long delays at high rates: a few ns per frame")
        .fix("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or sysctl vm.nr_hugepages=128")
}

/// Checks the memory available for in-flight frames.
fn available(meminfo: &str) -> Option<Finding> {
    /// Minimum default memory of two directions, 256 MiB each.
    const COMFORTABLE_KB: u64 = 512 * 1024;
    let kilobytes = |key| -> Option<u64> { field(meminfo, key)?.strip_suffix(" kB")?.parse().ok() };
    let free = kilobytes("MemAvailable")?;
    let swap = kilobytes("SwapTotal").unwrap_or(0);
    let swapping = if swap > 0 { ", with swap" } else { ", no swap" };
    let found = format!("{:.1} GiB{swapping}", free as f64 / 1_048_576.0);
    let finding = Finding::warn_unless(free >= COMFORTABLE_KB, "available", found)
        .costs("long delays at high rates may exhaust memory")
        .fix("set --memory, and lower delay or rate");
    Some(finding)
}

fn lockable(limit: u64, unlimited: bool) -> Finding {
    /// Room for several AF_XDP ports, each with about 6 MiB of frame memory by default.
    const PORT_BYTES: u64 = 32 << 20;
    if unlimited || limit == RLIM_INFINITY {
        return Finding::ok("lockable", "unlimited");
    }
    let found = format!("{} KiB", limit / 1024);
    Finding::warn_unless(limit >= PORT_BYTES, "lockable", found)
        .costs("memory is not locked, and xdp: ports may fail")
        .fix("ulimit -l unlimited, or CAP_IPC_LOCK")
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn huge_pages_come_from_either_source() {
        let status = |transparent, reserved| huge_pages(transparent, reserved).status;
        let never = Some("always madvise [never]");
        assert_eq!(status(Some("always [madvise] never"), Some(0)), Status::Ok);
        assert_eq!(status(never, Some(0)), Status::Warn);
        assert_eq!(status(never, Some(8)), Status::Ok);
        assert_eq!(status(None, None), Status::Warn);
    }

    #[test]
    fn memory_is_read_in_kilobytes() {
        let finding = available("MemAvailable:    2097152 kB\nSwapTotal:  0 kB\n");
        assert_eq!(finding.expect("free memory").found, "2.0 GiB, no swap");
        assert_eq!(available(""), None);
    }

    #[test]
    fn a_small_lock_limit_is_warned_of() {
        assert_eq!(lockable(64 << 10, false).status, Status::Warn);
        assert_eq!(lockable(64 << 10, true).status, Status::Ok);
        assert_eq!(lockable(RLIM_INFINITY, false).status, Status::Ok);
    }
}
