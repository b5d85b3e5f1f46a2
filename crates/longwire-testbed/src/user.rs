//! The privileges to create namespaces: the user's, or those of a new user namespace.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, getegid, geteuid};

use crate::error::EnvironmentError;

/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_CHROOT and CAP_SYS_ADMIN, as bits of
/// `CapEff`.
const NEEDED: u64 = 1 << 12 | 1 << 13 | 1 << 18 | 1 << 21;

/// CAP_SETFCAP: required since Linux 5.12 for a user namespace that includes root.
const SETFCAP: u64 = 1 << 31;

/// Returns whether this process may already create namespaces and devices.
pub fn has_rights() -> bool {
    effective_capabilities() & NEEDED == NEEDED
}

fn effective_capabilities() -> u64 {
    fs::read_to_string("/proc/self/status")
        .ok()
        .as_deref()
        .and_then(|status| status.lines().find_map(|l| l.strip_prefix("CapEff:")))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Moves the process into a new user namespace, in which it has every capability and keeps its user
/// and group. Commands that it starts lose the capabilities, because they do not run as the
/// namespace's root, and see the same user as before.
///
/// # Errors
///
/// If the system forbids it (the message names the setting), or the process has more than one
/// thread.
pub fn enter_user_namespace() -> Result<(), EnvironmentError> {
    let (user, group) = (geteuid(), getegid());
    // Check this first: in the new namespace, the process has every capability and no user.
    let may_map_root = effective_capabilities() & SETFCAP != 0;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| EnvironmentError::UserNamespace {
        source: error.into(),
        advice: match error {
            nix::Error::EINVAL => {
                "The process already has threads, which is a bug in Longwire".into()
            }
            _ => advice(user),
        },
    })?;
    // Fails on systems where any user may create a user namespace, but has no privileges in it.
    map(user, group).map_err(|source| EnvironmentError::UserNamespace {
        source,
        advice: if user.is_root() && !may_map_root {
            "Linux maps root to a user namespace only for processes with CAP_SETFCAP: start the \
             container with --cap-add SETFCAP"
                .into()
        } else {
            advice(user)
        },
    })
}

/// Maps the user and the group to themselves.
fn map(user: Uid, group: Gid) -> io::Result<()> {
    // An ordinary user may map its group only after disabling setgroups. The file is missing before
    // Linux 3.19, which does not require this.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

/// Returns advice for a user who cannot create namespaces. Names the sysctl that forbids them, if
/// one does.
pub fn advice(user: Uid) -> String {
    // The setting, the value that forbids namespaces, and the command that allows them.
    let locks = [
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "kernel/unprivileged_userns_clone",
            "0",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            "user/max_user_namespaces",
            "0",
            "sudo sysctl user.max_user_namespaces=10000",
        ),
        (
            "user/max_net_namespaces",
            "0",
            "sudo sysctl user.max_net_namespaces=10000",
        ),
    ];
    for (key, forbids, command) in locks {
        let value = fs::read_to_string(format!("/proc/sys/{key}"));
        if value.is_ok_and(|value| value.trim() == forbids) {
            let name = key.replace('/', ".");
            return format!(
                "{name} is {forbids} on this system. Allow it with '{command}', or run Longwire as root"
            );
        }
    }
    // Container engines' seccomp profiles allow namespaces only to containers with this capability.
    let container = "--cap-add SYS_ADMIN --security-opt apparmor=unconfined, or --privileged";
    if user.is_root() {
        format!("This root has no CAP_SYS_ADMIN: start the container with {container}")
    } else {
        format!("Run Longwire as root. A container needs {container}")
    }
}
