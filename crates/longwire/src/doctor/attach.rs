//! Checks of attached links.

use std::io::ErrorKind;

use longwire_io::attach::{AttachError, Pins, check_kernel};

use super::Finding;

const TOPIC: &str = "attach";

/// Checks that the kernel supports and the user may run `attach` and `node`.
pub(super) fn check() -> Finding {
    finding(check_kernel(), Pins::check().is_ok())
}

fn finding(kernel: Result<(), AttachError>, bpf_mounted: bool) -> Finding {
    const COST: &str = "attach, node: no links in interfaces";
    match kernel {
        Ok(()) if bpf_mounted => Finding::ok(TOPIC, "TCX links and a BPF file system"),
        Ok(()) => Finding::ok(
            TOPIC,
            "TCX links; --fail closed needs `mount -t bpf bpf /sys/fs/bpf`",
        ),
        Err(AttachError::OldKernel { .. }) => Finding::warn(TOPIC, "no TCX links (Linux 6.6)")
            .costs(COST)
            .fix(
                "Linux 6.6 or later; else `longwire exec`, or `longwire run` between a \
                     container's veth device and another",
            ),
        Err(AttachError::Program { source }) if source.kind() == ErrorKind::PermissionDenied => {
            Finding::warn(TOPIC, "this user may not attach BPF programs")
                .costs(COST)
                .fix("sudo, or CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN")
        }
        Err(error) => Finding::warn(TOPIC, error.to_string()).costs(COST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn each_obstacle_has_its_fix() {
        let error = |errno| std::io::Error::from_raw_os_error(errno);
        let old = AttachError::OldKernel { source: error(22) };
        let forbidden = AttachError::Program { source: error(1) };
        for (kernel, word) in [(old, "6.6"), (forbidden, "CAP_BPF")] {
            let found = finding(Err(kernel), true);
            assert_eq!(found.status, Status::Warn);
            assert!(found.fix.is_some_and(|fix| fix.contains(word)));
        }
        let found = finding(Ok(()), false);
        assert!(found.found.contains("mount -t bpf"), "{found:?}");
        assert_eq!(found.status, Status::Ok);
    }
}
