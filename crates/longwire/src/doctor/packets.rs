//! Checks the kernel's packet interfaces: AF_PACKET, AF_XDP, TAP and attached links.

use std::fs::OpenOptions;
use std::io::ErrorKind;

use longwire_io::attach::{AttachError, Pins, check_kernel};

use super::Finding;
use super::rights::may_load_programs;
use super::system::{number, read};
use crate::remedies;

pub(super) fn check() -> Vec<Finding> {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let protocols = read("/proc/net/protocols").unwrap_or_default();
    let in_kernel = offers(&protocols, "XDP");
    let bpf_disabled = number("/proc/sys/kernel/unprivileged_bpf_disabled");
    vec![
        kernel(&release),
        packet_sockets(&protocols),
        xdp(in_kernel, may_load_programs(), bpf_disabled),
        tun(),
        offloads(),
    ]
}

/// Minimum kernel version with all features: AF_XDP with need-wakeup.
const KERNEL_MIN: (u32, u32) = (5, 4);

fn kernel(release: &str) -> Finding {
    let numbers = release.split(['.', '-']);
    let mut numbers = numbers.map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let is_ok = version >= KERNEL_MIN || version == (0, 0);
    Finding::warn_unless(is_ok, "kernel", release)
        .costs("AF_XDP is missing or slow in this kernel")
        .fix("Linux 5.4 or later")
}

/// Returns whether the kernel's protocol list contains `name`.
fn offers(protocols: &str, name: &str) -> bool {
    let lines = protocols.lines();
    let names = lines.filter_map(|line| line.split_ascii_whitespace().next());
    names.skip(1).any(|known| known == name)
}

fn packet_sockets(protocols: &str) -> Finding {
    if offers(protocols, "PACKET") {
        return Finding::ok("packet:", "AF_PACKET available");
    }
    // The list omits modules that are not loaded yet.
    Finding::warn("packet:", "AF_PACKET is not loaded")
        .costs("the first packet: port must load it, which may fail")
        .fix("modprobe af_packet")
}

fn xdp(in_kernel: bool, allowed: bool, bpf_disabled: Option<i64>) -> Finding {
    if !in_kernel {
        return Finding::warn("xdp:", "no AF_XDP in this kernel")
            .costs("no xdp: ports; packet: ports are about half as fast")
            .fix("a kernel with CONFIG_XDP_SOCKETS");
    }
    if !allowed {
        let why = match bpf_disabled {
            Some(0) => "AF_XDP available; its programs need CAP_BPF",
            _ => "AF_XDP available, but unprivileged BPF is disabled",
        };
        return Finding::warn("xdp:", why)
            .costs("no xdp: ports for this user; use packet:")
            .fix("sudo, or CAP_BPF with CAP_NET_ADMIN and CAP_NET_RAW");
    }
    Finding::ok("xdp:", "AF_XDP available, BPF allowed")
}

fn tun() -> Finding {
    const PATH: &str = "/dev/net/tun";
    match OpenOptions::new().read(true).write(true).open(PATH) {
        Ok(_) => Finding::ok("tap:", "/dev/net/tun opens"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::warn("tap:", "/dev/net/tun is missing")
                .costs("no tap: ports")
                .fix(remedies::TUN_MISSING)
        }
        Err(error) => Finding::warn("tap:", format!("/dev/net/tun: {error}"))
            .costs("no tap: ports")
            .fix(remedies::TUN_DENIED),
    }
}

fn offloads() -> Finding {
    Finding::ok(
        "offloads",
        "Longwire handles super-packets and partial checksums of virtual devices",
    )
}

const ATTACH: &str = "attach";

/// Checks that the kernel supports `attach` and `node`, and that the user may run them.
pub(super) fn check_attach() -> Finding {
    attach(check_kernel(), Pins::check().is_ok())
}

fn attach(kernel: Result<(), AttachError>, bpf_mounted: bool) -> Finding {
    const COST: &str = "attach, node: no links at interfaces";
    match kernel {
        Ok(()) if bpf_mounted => Finding::ok(ATTACH, "TCX links and a BPF file system"),
        Ok(()) => Finding::ok(
            ATTACH,
            "TCX links; --fail closed needs `mount -t bpf bpf /sys/fs/bpf`",
        ),
        Err(AttachError::OldKernel { .. }) => Finding::warn(ATTACH, "no TCX links (Linux 6.6)")
            .costs(COST)
            .fix(
                "Linux 6.6 or later; else `longwire exec`, or `longwire run` between a \
                     container's veth device and another",
            ),
        Err(AttachError::Program { source }) if source.kind() == ErrorKind::PermissionDenied => {
            Finding::warn(ATTACH, "this user may not attach BPF programs")
                .costs(COST)
                .fix("sudo, or CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN")
        }
        Err(error) => Finding::warn(ATTACH, error.to_string()).costs(COST),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        for release in ["6.18.44-x", "5.4.0", "unknown"] {
            assert_eq!(kernel(release).status, Status::Ok, "{release}");
        }
        for release in ["5.3.18-default", "4.18.0-553.el8"] {
            assert_eq!(kernel(release).status, Status::Warn, "{release}");
        }
    }

    #[test]
    fn protocols_are_the_first_words_after_the_heading() {
        let protocols = "protocol  size\nPACKET    1600\nXDP 1088\n";
        assert!(offers(protocols, "XDP"));
        assert!(offers(protocols, "PACKET"));
        assert!(!offers(protocols, "protocol"));
        assert!(!offers("", "XDP"));
    }

    #[test]
    fn xdp_needs_kernel_and_permission() {
        assert_eq!(xdp(true, true, None).status, Status::Ok);
        assert_eq!(xdp(true, false, Some(2)).status, Status::Warn);
        assert_eq!(xdp(false, true, None).status, Status::Warn);
    }

    #[test]
    fn each_obstacle_has_its_fix() {
        let error = |errno| std::io::Error::from_raw_os_error(errno);
        let old = AttachError::OldKernel { source: error(22) };
        let forbidden = AttachError::Program { source: error(1) };
        for (kernel, word) in [(old, "6.6"), (forbidden, "CAP_BPF")] {
            let found = attach(Err(kernel), true);
            assert_eq!(found.status, Status::Warn);
            assert!(found.fix.is_some_and(|fix| fix.contains(word)));
        }
        let found = attach(Ok(()), false);
        assert!(found.found.contains("mount -t bpf"), "{found:?}");
        assert_eq!(found.status, Status::Ok);
    }
}
