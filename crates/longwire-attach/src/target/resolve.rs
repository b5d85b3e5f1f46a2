//! Resolves targets.

use super::Target;
use super::container::Container;
use super::error::TargetError;
use super::found::FoundTarget;
use super::machine::Machine;
use super::name::PodName;
use super::selection;
use super::survey::Survey;

/// Directory of named namespaces (ip-netns(8), CNI), and its older path.
const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];

impl Machine {
    /// Returns all running containers.
    pub fn containers(&self) -> Vec<Container> {
        let mut survey = Survey::new(self);
        survey.complete(self);
        let mut containers = survey.containers;
        containers.retain(|container| container.pid().is_some());
        containers
    }

    /// Finds and opens the namespace of a target.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn resolve(&self, target: &Target) -> Result<FoundTarget, TargetError> {
        self.resolve_with(target, &mut None)
    }

    /// Finds and opens the namespaces of many targets, querying each runtime once.
    pub fn resolve_all(&self, targets: &[Target]) -> Vec<Result<FoundTarget, TargetError>> {
        let mut survey = None;
        let resolve = |target| self.resolve_with(target, &mut survey);
        targets.iter().map(resolve).collect()
    }

    fn resolve_with(
        &self,
        target: &Target,
        survey: &mut Option<Survey>,
    ) -> Result<FoundTarget, TargetError> {
        let new = || Survey::new(self);
        match target {
            Target::Netns(path) => {
                FoundTarget::named(path, &NAMED.map(|path| self.path(path)), self)
            }
            Target::Pid(pid) => FoundTarget::of_process(*pid, self),
            Target::Container(name) => {
                let survey = survey.get_or_insert_with(new);
                let (container, started) = selection::container(survey, self, name)?;
                FoundTarget::of_container(&container, started, None, self)
            }
            Target::Pod(name) => match selection::pod(survey.get_or_insert_with(new), self, name) {
                Ok((container, started)) => {
                    FoundTarget::of_container(&container, started, Some(name), self)
                }
                Err(error) => self.sandbox(&error, name).ok_or(error),
            },
        }
    }

    /// Opens the namespace of a pod without processes, by its sandbox's file.
    fn sandbox(&self, error: &TargetError, name: &PodName) -> Option<FoundTarget> {
        let TargetError::NotRunning { candidates, .. } = error else {
            return None;
        };
        let of_root = |c: &&Container| c.is_sandbox && c.user.is_none();
        candidates.iter().filter(of_root).find_map(|sandbox| {
            let file = sandbox.network.as_ref()?;
            FoundTarget::of_sandbox(sandbox, file, name, self).ok()
        })
    }
}
