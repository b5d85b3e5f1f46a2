//! What this user may do.

use nix::sys::resource::{Resource, getrlimit};

use super::Finding;
use super::system::{field, number, read};

/// Capabilities that something of Longwire needs, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capability {
    NetAdmin = 12,
    NetRaw = 13,
    IpcLock = 14,
    SysAdmin = 21,
    SysNice = 23,
    Bpf = 39,
}

impl Capability {
    fn name(self) -> &'static str {
        match self {
            Capability::NetAdmin => "CAP_NET_ADMIN",
            Capability::NetRaw => "CAP_NET_RAW",
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::SysNice => "CAP_SYS_NICE",
            Capability::Bpf => "CAP_BPF",
        }
    }
}

pub(super) fn check() -> Vec<Finding> {
    let mut findings = vec![interfaces(effective()), priority(has(Capability::SysNice))];
    findings.push(namespaces(&Namespaces {
        admin: has(Capability::SysAdmin),
        max: number("/proc/sys/user/max_user_namespaces"),
        debian: number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        known: std::fs::symlink_metadata("/proc/self/ns/user").is_ok(),
    }));
    findings
}

/// Whether this process has a capability.
pub(super) fn has(capability: Capability) -> bool {
    holds(effective(), capability)
}

fn holds(mask: u64, capability: Capability) -> bool {
    mask >> (capability as u32) & 1 == 1
}

/// The effective capabilities of this process, as a mask.
fn effective() -> u64 {
    let status = read("/proc/self/status").unwrap_or_default();
    let mask = field(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    mask.unwrap_or(0)
}

/// What the ports on interfaces of the host need.
fn interfaces(mask: u64) -> Finding {
    const NEEDED: [Capability; 2] = [Capability::NetAdmin, Capability::NetRaw];
    const USEFUL: [Capability; 3] = [Capability::Bpf, Capability::IpcLock, Capability::SysNice];
    const MEND: &str = "sudo, or setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock,\
                        cap_sys_nice+ep on the program";
    let missing = |wanted: &[Capability]| {
        let missing = wanted
            .iter()
            .filter(|capability| !holds(mask, **capability));
        missing
            .map(|capability| capability.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let needed = missing(&NEEDED);
    // CAP_SYS_ADMIN stood for CAP_BPF before Linux 5.8, and still may.
    let useful = match holds(mask, Capability::SysAdmin) {
        true => missing(&USEFUL[1..]),
        false => missing(&USEFUL),
    };
    if !needed.is_empty() {
        return Finding::warn("ports", format!("without {needed}"))
            .costs("run: no ports on the host's interfaces; exec works all the same")
            .mend(MEND);
    }
    if !useful.is_empty() {
        return Finding::warn("ports", format!("without {useful}"))
            .costs("run: no xdp: ports (CAP_BPF), unlocked memory (CAP_IPC_LOCK) or normal priority (CAP_SYS_NICE)")
            .mend(MEND);
    }
    Finding::ok("ports", "every kind may be opened")
}

fn priority(sys_nice: bool) -> Finding {
    if sys_nice {
        return Finding::ok("priority", "may be raised");
    }
    // The lowest niceness that a limit allows is 20 - limit.
    const LIMIT_WANTED: u64 = 40;
    let soft = |resource| getrlimit(resource).map_or(0, |(soft, _)| soft);
    if soft(Resource::RLIMIT_NICE) >= LIMIT_WANTED {
        return Finding::ok("priority", "may be raised");
    }
    let real_time = soft(Resource::RLIMIT_RTPRIO);
    Finding::warn("priority", format!("normal (real-time limit {real_time})"))
        .costs("other programs may delay releases when the machine is busy")
        .mend("CAP_SYS_NICE, or `nice -20` in /etc/security/limits.conf")
}

/// What decides whether namespaces can be made.
struct Namespaces {
    admin: bool,
    max: Option<i64>,
    debian: Option<i64>,
    apparmor: Option<i64>,
    known: bool,
}

fn namespaces(found: &Namespaces) -> Finding {
    const COST: &str = "exec cannot build its network";
    if found.admin {
        return Finding::ok("namespaces", "allowed with CAP_SYS_ADMIN");
    }
    let refused = |what: &str, mend: &str| Finding::fail("namespaces", what).costs(COST).mend(mend);
    if !found.known {
        return refused(
            "this kernel has no user namespaces",
            "a kernel with CONFIG_USER_NS, or sudo",
        );
    }
    if found.max == Some(0) {
        return refused(
            "user namespaces are switched off",
            "sysctl user.max_user_namespaces=10000, or sudo",
        );
    }
    if found.debian == Some(0) {
        return refused(
            "user namespaces are for root only",
            "sysctl kernel.unprivileged_userns_clone=1, or sudo",
        );
    }
    if found.apparmor == Some(1) {
        return refused(
            "AppArmor takes away what user namespaces give",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, an AppArmor profile with \
             'userns,' for this program, or sudo",
        );
    }
    Finding::ok(
        "namespaces",
        "user namespaces are allowed: exec needs no root",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    const ALL: u64 = u64::MAX;

    #[test]
    fn what_is_missing_is_named() {
        let without = |capability: Capability| interfaces(ALL & !(1 << capability as u32));
        assert_eq!(interfaces(ALL).status, Status::Ok);
        assert!(without(Capability::NetRaw).found.contains("CAP_NET_RAW"));
        assert!(without(Capability::IpcLock).found.contains("CAP_IPC_LOCK"));
        assert!(interfaces(0).found.contains("CAP_NET_ADMIN, CAP_NET_RAW"));
    }

    #[test]
    fn each_way_of_refusing_namespaces_has_its_own_mend() {
        let open = || Namespaces {
            admin: false,
            max: Some(100),
            debian: None,
            apparmor: None,
            known: true,
        };
        assert_eq!(namespaces(&open()).status, Status::Ok);
        let cases = [
            (
                Namespaces {
                    max: Some(0),
                    ..open()
                },
                "max_user_namespaces",
            ),
            (
                Namespaces {
                    debian: Some(0),
                    ..open()
                },
                "unprivileged_userns_clone",
            ),
            (
                Namespaces {
                    apparmor: Some(1),
                    ..open()
                },
                "apparmor",
            ),
            (
                Namespaces {
                    known: false,
                    ..open()
                },
                "CONFIG_USER_NS",
            ),
        ];
        for (case, mend) in cases {
            let finding = namespaces(&case);
            assert_eq!(finding.status, Status::Fail);
            assert!(
                finding.mend.is_some_and(|text| text.contains(mend)),
                "{mend}"
            );
        }
    }
}
