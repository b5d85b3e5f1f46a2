//! Checks this user's privileges, and makes a trial run of `exec`, which needs them.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use longwire_io::rights::Capability;
use nix::sys::resource::{Resource, getrlimit};

use super::system::{field, number, read};
use super::{Finding, Status};
use crate::remedies;
use crate::table::joined;

/// Checks the privileges; `exec` is the trial's finding, if a trial ran.
pub(super) fn check(exec: Option<&Finding>) -> Vec<Finding> {
    let exec_works = exec.is_none_or(|exec| exec.status != Status::Fail);
    let scope = Scope::read();
    let mut findings = vec![
        interfaces(scope.reduce(effective()), scope, exec_works),
        priority(has(Capability::SysNice)),
    ];
    let namespaces = namespaces(&Namespaces {
        admin: has(Capability::SysAdmin),
        networks: number("/proc/sys/user/max_net_namespaces"),
        max: number("/proc/sys/user/max_user_namespaces"),
        debian: number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        known: std::fs::symlink_metadata("/proc/self/ns/user").is_ok(),
    });
    findings.push(unless_exec_fails(namespaces, exec_works));
    findings
}

/// Downgrades the finding that namespaces work, if `exec` still fails.
fn unless_exec_fails(namespaces: Finding, exec_works: bool) -> Finding {
    if exec_works || namespaces.status != Status::Ok {
        return namespaces;
    }
    let found = "allowed by the system, but exec fails (see the next line)";
    Finding::warn(namespaces.topic, found)
        .costs("exec cannot create its network")
        .fix(
            "probably a seccomp profile of the container: start it with --cap-add SYS_ADMIN \
             --security-opt apparmor=unconfined, or with --privileged",
        )
}

/// Returns whether a capability is effective: capabilities in a user namespace do not extend beyond
/// it.
pub(super) fn has(capability: Capability) -> bool {
    holds(Scope::read().reduce(effective()), capability)
}

/// Returns whether this process may load XDP programs.
pub(super) fn may_load_programs() -> bool {
    // CAP_SYS_ADMIN includes the privileges that Linux 5.8 split off as CAP_BPF.
    has(Capability::Bpf) || (has(Capability::SysAdmin) && Scope::read().is_initial)
}

/// Scope of this process's capabilities.
#[derive(Clone, Copy, Debug)]
struct Scope {
    /// Whether the process is in the initial user namespace.
    is_initial: bool,
    /// Whether the process's user namespace owns its network namespace.
    owns_network: bool,
}

impl Scope {
    fn read() -> Scope {
        Scope {
            is_initial: read("/proc/self/uid_map").is_none_or(|map| maps_everybody(&map)),
            owns_network: NetNamespace::current()
                .and_then(|network| network.is_ours())
                .unwrap_or(true),
        }
    }

    /// Returns the mask without capabilities that have no effect in this scope.
    fn reduce(self, mask: u64) -> u64 {
        const OF_NETWORK: [Capability; 2] = [Capability::NetAdmin, Capability::NetRaw];
        const OF_SYSTEM: [Capability; 3] =
            [Capability::Bpf, Capability::IpcLock, Capability::SysNice];
        let none: &[Capability] = &[];
        let network = if self.owns_network { none } else { &OF_NETWORK };
        let system = if self.is_initial { none } else { &OF_SYSTEM };
        let lost = network.iter().chain(system);
        lost.fold(mask, |mask, capability| mask & !capability.bit())
    }
}

/// Returns whether an ID map is that of the initial user namespace.
fn maps_everybody(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn holds(mask: u64, capability: Capability) -> bool {
    mask & capability.bit() != 0
}

/// Returns the effective capabilities of this process as a mask.
fn effective() -> u64 {
    let status = read("/proc/self/status").unwrap_or_default();
    let mask = field(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    mask.unwrap_or(0)
}

/// Checks the privileges for ports on host interfaces.
fn interfaces(mask: u64, scope: Scope, exec_works: bool) -> Finding {
    const NEEDED: [Capability; 2] = [Capability::NetAdmin, Capability::NetRaw];
    const USEFUL: [Capability; 3] = [Capability::Bpf, Capability::IpcLock, Capability::SysNice];
    let missing = |wanted: &[Capability]| {
        let missing = wanted.iter().filter(|one| !holds(mask, **one));
        joined(missing.map(|capability| capability.name()), ", ")
    };
    let needed = missing(&NEEDED);
    // CAP_SYS_ADMIN includes the privileges that Linux 5.8 split off as CAP_BPF.
    let implies_bpf = holds(mask, Capability::SysAdmin) && scope.is_initial;
    let useful = missing(&USEFUL[usize::from(implies_bpf)..]);
    if !needed.is_empty() {
        let exec = if exec_works { "; exec works" } else { "" };
        let (whose, fix) = if scope.owns_network {
            ("", remedies::PORT_RIGHTS)
        } else {
            (
                " for this network, which belongs to another user namespace",
                "start Longwire outside this user namespace, or with its own network namespace: \
                 unshare --map-root-user --net",
            )
        };
        return Finding::warn("ports", format!("without {needed}{whose}"))
            .costs(format!("run: no ports at host interfaces{exec}"))
            .fix(fix);
    }
    if !useful.is_empty() {
        return Finding::warn("ports", format!("without {useful}"))
            .costs(
                "run: xdp: ports need CAP_BPF, locked memory CAP_IPC_LOCK, and raised priority \
                 CAP_SYS_NICE",
            )
            .fix(remedies::PORT_RIGHTS);
    }
    Finding::ok("ports", "all kinds allowed")
}

fn priority(sys_nice: bool) -> Finding {
    // The lowest permitted niceness is 20 minus the limit.
    const LIMIT_WANTED: u64 = 40;
    let soft = |resource| getrlimit(resource).map_or(0, |(soft, _)| soft);
    if sys_nice || soft(Resource::RLIMIT_NICE) >= LIMIT_WANTED {
        return Finding::ok("priority", "may be raised");
    }
    let real_time = soft(Resource::RLIMIT_RTPRIO);
    Finding::warn("priority", format!("normal (real-time limit {real_time})"))
        .costs("other programs may delay releases when the machine is busy")
        .fix("CAP_SYS_NICE, or `nice -20` in /etc/security/limits.conf")
}

/// Settings that determine whether namespaces can be created.
struct Namespaces {
    admin: bool,
    networks: Option<i64>,
    max: Option<i64>,
    debian: Option<i64>,
    apparmor: Option<i64>,
    known: bool,
}

fn namespaces(found: &Namespaces) -> Finding {
    let obstacles = [
        (
            found.networks == Some(0),
            "network namespaces are disabled",
            "sysctl user.max_net_namespaces=10000",
        ),
        (
            !found.admin && !found.known,
            "no user namespaces in this kernel",
            "a kernel with CONFIG_USER_NS, or sudo",
        ),
        (
            !found.admin && found.max == Some(0),
            "user namespaces are disabled",
            "sysctl user.max_user_namespaces=10000, or sudo",
        ),
        (
            !found.admin && found.debian == Some(0),
            "user namespaces are for root only",
            "sysctl kernel.unprivileged_userns_clone=1, or sudo",
        ),
        (
            !found.admin && found.apparmor == Some(1),
            "AppArmor removes the capabilities of user namespaces",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, an AppArmor profile with \
             'userns,' for this program, or sudo",
        ),
    ];
    match obstacles.iter().find(|(applies, ..)| *applies) {
        Some((_, what, fix)) => Finding::fail("namespaces", *what)
            .costs("exec cannot create its network")
            .fix(*fix),
        None if found.admin => Finding::ok("namespaces", "allowed with CAP_SYS_ADMIN"),
        None => Finding::ok("namespaces", "user namespaces allowed; exec needs no root"),
    }
}

/// Timeout of the trial, which normally takes a fraction of a second.
const TIMEOUT: Duration = Duration::from_secs(10);

const TOPIC: &str = "exec";
const COST: &str = "exec does not work";

/// Runs `true` through a link with `program`, the longwire executable. The trial creates and
/// removes networks, devices, ports and threads. It runs in a separate process, because a
/// multithreaded process cannot create a user namespace.
pub(super) fn try_exec(program: &Path) -> Finding {
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
            let found = format!("works: created, used and removed a link in {took} ms");
            Finding::ok(TOPIC, found)
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
        // Best effort: on failure, the finding has no message.
        let _ = stderr.read_to_string(&mut said);
    }
    let said = said.trim();
    said.strip_prefix("error: ").unwrap_or(said).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    const ALL: u64 = u64::MAX;
    const HOST: Scope = Scope {
        is_initial: true,
        owns_network: true,
    };

    #[test]
    fn missing_capabilities_are_named() {
        let interfaces = |mask| interfaces(mask, HOST, true);
        let without = |capability: Capability| interfaces(ALL & !(1 << capability as u32));
        assert_eq!(interfaces(ALL).status, Status::Ok);
        assert!(without(Capability::NetRaw).found.contains("CAP_NET_RAW"));
        assert!(without(Capability::IpcLock).found.contains("CAP_IPC_LOCK"));
        assert!(interfaces(0).found.contains("CAP_NET_ADMIN, CAP_NET_RAW"));
    }

    #[test]
    fn rights_of_a_user_namespace_end_there() {
        let inside = Scope {
            is_initial: false,
            owns_network: false,
        };
        let found = interfaces(inside.reduce(ALL), inside, true);
        assert_eq!(found.status, Status::Warn);
        let words = "CAP_NET_ADMIN, CAP_NET_RAW for this network";
        assert!(found.found.contains(words), "{found:?}");
        for capability in [Capability::Bpf, Capability::IpcLock, Capability::SysNice] {
            assert!(!holds(inside.reduce(ALL), capability));
        }
        assert_eq!(HOST.reduce(ALL), ALL);
        assert!(maps_everybody("         0          0 4294967295\n"));
        assert!(!maps_everybody("         0       1000          1\n"));
    }

    #[test]
    fn nothing_is_promised_of_an_exec_that_fails() {
        let exec = Finding::fail("exec", "cannot create a user namespace").costs("no exec");
        let findings = check(Some(&exec));
        for finding in &findings {
            let texts = [Some(&finding.found), finding.cost.as_ref()];
            for text in texts.into_iter().flatten() {
                assert!(!text.contains("exec works"), "{finding:?}");
                assert!(!text.contains("exec needs no"), "{finding:?}");
            }
        }
        let namespaces = findings.iter().find(|found| found.topic == "namespaces");
        assert_ne!(namespaces.map(|found| found.status), Some(Status::Ok));
    }

    #[test]
    fn each_way_of_refusing_namespaces_has_its_own_fix() {
        let open = || Namespaces {
            admin: false,
            networks: Some(100),
            max: Some(100),
            debian: None,
            apparmor: None,
            known: true,
        };
        assert_eq!(namespaces(&open()).status, Status::Ok);
        type Setting = fn(&mut Namespaces);
        let cases: [(Setting, &str); 6] = [
            (|it| it.networks = Some(0), "max_net_namespaces"),
            (
                |it| (it.networks, it.admin) = (Some(0), true),
                "max_net_namespaces",
            ),
            (|it| it.max = Some(0), "max_user_namespaces"),
            (|it| it.debian = Some(0), "unprivileged_userns_clone"),
            (|it| it.apparmor = Some(1), "apparmor"),
            (|it| it.known = false, "CONFIG_USER_NS"),
        ];
        for (set, fix) in cases {
            let mut case = open();
            set(&mut case);
            let finding = namespaces(&case);
            assert_eq!(finding.status, Status::Fail);
            assert!(finding.fix.is_some_and(|text| text.contains(fix)), "{fix}");
        }
    }

    #[test]
    fn a_program_that_ends_well_is_well() {
        assert_eq!(try_exec(Path::new("/bin/true")).status, Status::Ok);
        assert_eq!(try_exec(Path::new("/bin/false")).status, Status::Fail);
        let missing = try_exec(Path::new("/no/such/program"));
        assert!(missing.found.contains("No such file"), "{missing:?}");
    }
}
