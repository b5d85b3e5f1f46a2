//! Selects the container for a name.
//!
//! The precedence is that of Docker: a complete ID before a name, and a name before an ID prefix,
//! which may have any length but must be unambiguous.

use super::container::{Container, State};
use super::error::{TargetError, UnknownTarget};
use super::machine::Machine;
use super::name::{ContainerName, PodName};
use super::survey::Survey;

/// Returns the running container with this name, and its process's start time.
pub fn container(
    survey: &mut Survey,
    machine: &Machine,
    name: &ContainerName,
) -> Result<(Container, u64), TargetError> {
    let mut matches = matching(&survey.containers, name);
    if matches.is_empty() {
        survey.add_processes(machine);
        matches = matching(&survey.containers, name);
    }
    let what = format!("container {name}");
    if matches.is_empty() {
        return Err(unknown(what, survey, machine, |container| {
            let pod = container.pod.as_ref().filter(|pod| pod.name == name.text)?;
            Some(format!("a pod has this name: --pod {pod}"))
        }));
    }
    let mut running = running(survey, &matches, machine);
    match running.len() {
        0 => Err(TargetError::NotRunning {
            what,
            candidates: take(survey, &matches),
        }),
        1 => Ok(running.remove(0)),
        _ => Err(TargetError::Ambiguous {
            what,
            candidates: running.into_iter().map(|found| found.0).collect(),
        }),
    }
}

/// Returns a container in the pod's namespace and its process's start time. It is the newest
/// running sandbox or, for runtimes whose sandboxes have no process, another container of the pod.
pub fn pod(
    survey: &mut Survey,
    machine: &Machine,
    name: &PodName,
) -> Result<(Container, u64), TargetError> {
    let is_of_pod = |container: &Container| container.pod.as_ref() == Some(name);
    let matches: Vec<usize> = (0..survey.containers.len())
        .filter(|index| is_of_pod(&survey.containers[*index]))
        .collect();
    let what = format!("pod {name}");
    if matches.is_empty() {
        return Err(unknown(what, survey, machine, |container| {
            let pod = container.pod.as_ref().filter(|pod| pod.name == name.name)?;
            Some(format!("another namespace has this pod: --pod {pod}"))
        }));
    }
    let newest = running(survey, &matches, machine)
        .into_iter()
        .max_by_key(|(container, started)| (container.is_sandbox, *started));
    newest.ok_or_else(|| TargetError::NotRunning {
        what,
        candidates: take(survey, &matches),
    })
}

/// Returns the indices of the containers that match a name best.
fn matching(containers: &[Container], name: &ContainerName) -> Vec<usize> {
    let text = &name.text;
    let fits = |fit: &dyn Fn(&Container) -> bool| -> Vec<usize> {
        let of_runtime = containers.iter().enumerate().filter(|(_, container)| {
            name.runtime
                .is_none_or(|runtime| runtime == container.runtime)
        });
        let found = of_runtime.filter(|(_, container)| fit(container));
        found.map(|(index, _)| index).collect()
    };
    let tries: [&dyn Fn(&Container) -> bool; 3] = [
        &|container| container.id == *text,
        &|container| container.names.contains(text),
        &|container| container.id.starts_with(text),
    ];
    let found = tries.into_iter().map(fits);
    found
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Returns the running containers with their processes' start times. If the runtimes' records show
/// none, searches all processes.
fn running(survey: &mut Survey, matches: &[usize], machine: &Machine) -> Vec<(Container, u64)> {
    for index in matches {
        survey.inspect(*index, machine);
    }
    let with_start = |survey: &Survey| -> Vec<(Container, u64)> {
        let found = take(survey, matches).into_iter();
        let found = found.filter_map(|container| match container.state {
            State::Running { started, .. } => Some((container, started)),
            _ => None,
        });
        found.collect()
    };
    let known = with_start(survey);
    if !known.is_empty() {
        return known;
    }
    survey.add_processes(machine);
    with_start(survey)
}

fn take(survey: &Survey, matches: &[usize]) -> Vec<Container> {
    let found = matches.iter().map(|index| &survey.containers[*index]);
    found.cloned().collect()
}

/// Returns the error for an unknown name. `remedy` suggests containers with similar names.
fn unknown(
    what: String,
    survey: &mut Survey,
    machine: &Machine,
    remedy: impl Fn(&Container) -> Option<String>,
) -> TargetError {
    survey.complete(machine);
    let running = survey.containers.iter().filter(|c| c.pid().is_some());
    let mut known: Vec<String> = running.map(Container::label).collect();
    known.sort_unstable();
    known.dedup();
    TargetError::Unknown(Box::new(UnknownTarget {
        what,
        known,
        remedy: survey.containers.iter().find_map(remedy),
        places: survey.places.clone(),
    }))
}
