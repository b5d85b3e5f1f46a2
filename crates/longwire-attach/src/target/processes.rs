//! Finds containers of any runtime by the cgroups of all processes.
//!
//! Docker, containerd under Kubernetes, CRI-O, Podman and nerdctl put the ID, 64 hexadecimal
//! digits, in the last component of a container's cgroup: `/docker/ID`, `docker-ID.scope`,
//! `cri-containerd-ID.scope`, `crio-ID.scope`, `libpod-ID.scope`, `nerdctl-ID.scope`,
//! `/kubepods/burstable/podUID/ID`, `pod.slice:cri-containerd:ID`. `/proc/PID/cgroup` has one line
//! per hierarchy with cgroup v1, and a single line with v2.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::container::{Container, Reading, Runtime, State};
use super::machine::Machine;
use super::name::{FULL_ID_LENGTH, is_full_id};
use super::process::Process;

/// Cgroup name prefixes and their runtimes.
const PREFIXES: [(&str, Runtime); 5] = [
    ("docker", Runtime::Docker),
    ("cri-containerd", Runtime::Containerd),
    ("nerdctl", Runtime::Containerd),
    ("crio", Runtime::CriO),
    ("libpod", Runtime::Podman),
];

/// Reads the cgroups of all processes.
pub fn read(machine: &Machine) -> Reading {
    Reading::of(machine.path("/proc"), read_processes)
}

fn read_processes(proc: &Path) -> io::Result<Vec<Container>> {
    let mut containers: BTreeMap<String, Container> = BTreeMap::new();
    for entry in fs::read_dir(proc)?.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let Some(found) = pid.and_then(|pid| container(proc, pid)) else {
            continue;
        };
        let started = |container: &Container| match container.state {
            State::Running { started, pid } => (started, pid),
            _ => (u64::MAX, u32::MAX),
        };
        // The oldest process is the container's init.
        match containers.get(&found.id) {
            Some(known) if started(known) <= started(&found) => {}
            _ => drop(containers.insert(found.id.clone(), found)),
        }
    }
    Ok(containers.into_values().collect())
}

fn container(proc: &Path, pid: u32) -> Option<Container> {
    let process = Process::open(proc, pid).ok()?;
    let (runtime, id) = id_of(&process.cgroups().ok()?)?;
    let mut container = Container::new(runtime, &id);
    let started = process.started().ok()?;
    container.state = State::Running { pid, started };
    Some(container)
}

/// Returns the runtime and ID of the innermost container in `/proc/PID/cgroup`.
fn id_of(cgroups: &str) -> Option<(Runtime, String)> {
    cgroups.lines().find_map(|line| {
        let mut names = line.splitn(3, ':').nth(2)?.rsplit('/').peekable();
        while let Some(name) = names.next() {
            if let Some((before, id)) = split_id(name) {
                let before = if before.is_empty() {
                    // With cgroupfs, the parent directory names the runtime, for example in
                    // `/docker/ID`.
                    names.peek().copied().unwrap_or_default()
                } else {
                    before
                };
                return (!before.contains("conmon")).then(|| (runtime_of(before), id.to_owned()));
            }
        }
        None
    })
}

/// Splits a cgroup name into a prefix and a 64-digit hexadecimal ID.
fn split_id(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let (before, id) = name.split_at_checked(name.len().checked_sub(FULL_ID_LENGTH)?)?;
    let is_end = before.is_empty() || before.ends_with(['-', ':']);
    (is_end && is_full_id(id)).then_some((before, id))
}

fn runtime_of(before: &str) -> Runtime {
    // For example: `kubepods-pod1.slice:cri-containerd:`.
    let before = before.trim_end_matches([':', '-']);
    let name = before.rsplit(':').next().unwrap_or(before);
    let found = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    found.map_or(Runtime::Unknown, |(_, runtime)| *runtime)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::rows;

    use super::*;

    #[test]
    fn ids_of_all_runtimes_are_found() {
        let id = "3fa9".repeat(16);
        for [runtime, line] in rows(
            "docker             | 0::/system.slice/docker-ID.scope
             docker             | 5:devices:/docker/ID
             docker             | 0::/docker/ID/init.scope
             an unknown runtime | 4:memory:/kubepods/burstable/pod1-2/ID
             containerd         | 0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-ID.scope
             containerd         | 0::/system.slice/containerd.service/\
                                  kubepods-pod1.slice:cri-containerd:ID
             containerd         | 0::/user.slice/nerdctl-ID.scope
             an unknown runtime | 0::/default/ID
             cri-o              | 0::/kubepods.slice/crio-ID.scope
             podman             | 0::/machine.slice/libpod-ID.scope/container
             docker             | 0::/../../docker/ID",
        ) {
            let (found, found_id) = id_of(&line.replace("ID", &id)).expect(line);
            assert_eq!(
                (&*found.to_string(), found_id),
                (runtime, id.clone()),
                "{line}"
            );
        }
    }

    #[test]
    fn the_innermost_container_counts() {
        let (outer, inner) = ("a".repeat(64), "b".repeat(64));
        let line = format!("0::/docker/{outer}/kubelet.slice/cri-containerd-{inner}.scope");
        assert_eq!(id_of(&line), Some((Runtime::Containerd, inner)));
        // Only one of the hierarchies has the container.
        let lines = format!("9:name=systemd:/\n5:devices:/docker/{outer}\n0::/");
        assert_eq!(id_of(&lines), Some((Runtime::Docker, outer)));
    }

    #[test]
    fn other_cgroups_are_no_containers() {
        let id = "3fa9".repeat(16);
        let lines = "0::/||no colons|0::/system.slice/ssh.service|0::/docker/IDff|0::/docker/xID|\
        0::/docker/ä|0::/machine.slice/libpod-conmon-ID.scope|0::/crio-conmon-ID.scope";
        for line in lines.split('|') {
            assert_eq!(id_of(&line.replace("ID", &id)), None, "{line}");
        }
    }
}
