//! Operations (CNI specification 1.1, section 2, "CNI operations").

use std::path::Path;
use std::time::Duration;

use longwire_client::node::AttachmentState;
use serde_json::json;

use crate::config::{NetworkConfig, VERSIONS};
use crate::error::{CniError, Reason};
use crate::node::{Node, NodeError, is_of_network, name_of, namespace};
use crate::options::LinkOptions;
use crate::parameters::{Operation, Parameters};

/// Time limit of a request; the node takes less than 50 ms to attach a link.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Time limit of the requests for DEL, whose result is ignored, and for STATUS.
const TIME_LIMIT_SHORT: Duration = Duration::from_secs(3);

/// A call: parameters, configuration and log lines.
pub(crate) struct Call<'a> {
    pub parameters: &'a Parameters,
    pub config: &'a NetworkConfig<'a>,
    pub log: &'a mut Vec<String>,
}

impl Call<'_> {
    /// Runs the operation; returns the text for stdout.
    pub fn run(&mut self) -> Result<String, CniError> {
        let operation = self.parameters.operation;
        if !matches!(operation, Operation::Version | Operation::Del) {
            check_version(operation, &self.config.version)?;
        }
        match operation {
            Operation::Version => return Ok(self.version()),
            Operation::Add => return self.add(),
            // Containers must be removable even with an invalid configuration.
            Operation::Del => self.del(),
            Operation::Check => self.check()?,
            Operation::Gc => self.gc()?,
            Operation::Status => self.status()?,
        }
        Ok(String::new())
    }

    fn version(&self) -> String {
        let version = match self.config.version.as_str() {
            "" => VERSIONS[VERSIONS.len() - 1],
            version => version,
        };
        json!({ "cniVersion": version, "supportedVersions": VERSIONS }).to_string()
    }

    fn name(&self) -> String {
        let given = self.parameters;
        name_of(&self.config.name, &given.container, &given.interface)
    }

    fn node(&self, limit: Duration) -> Result<Node, NodeError> {
        let socket = self.config.socket().unwrap_or_default();
        Node::new(socket, limit)
    }

    fn add(&mut self) -> Result<String, CniError> {
        self.config.refuse_unknown_fields()?;
        let previous = self.config.previous()?;
        let options = self.config.options(self.parameters)?;
        if !options.is_attached() {
            return Ok(previous.to_owned());
        }
        let namespace = &self.parameters.namespace;
        if !Path::new(namespace).exists() {
            let message = format!("no network namespace {namespace}");
            return Err(CniError::new(Reason::Container, message));
        }
        match self.attach(&options) {
            Ok(()) => Ok(previous.to_owned()),
            Err(NodeError::Unreachable(reason)) if !self.config.is_required()? => {
                self.log.push(format!("no link is attached: {reason}"));
                Ok(previous.to_owned())
            }
            Err(error) => Err(of_node(error)),
        }
    }

    fn attach(&mut self, options: &LinkOptions) -> Result<(), NodeError> {
        const CONFLICT: u16 = 409;
        let (name, parameters) = (self.name(), self.parameters);
        let request = options.request(&parameters.namespace, &parameters.interface);
        let mut node = self.node(TIME_LIMIT)?;
        let attached = match node.put(&name, &request) {
            // The conflict is with an earlier instance of the container, whose removal the node has
            // missed.
            Err(NodeError::Refused(CONFLICT, _)) => {
                self.sweep(&mut node)?;
                node.put(&name, &request)
            }
            attached => attached,
        };
        attached?;
        if let Err(error) = self.sweep(&mut node) {
            self.log
                .push(format!("stale links not removed: {}", error.reason()));
        }
        Ok(())
    }

    /// Removes this network's attachments whose namespace is gone because the node missed their
    /// removal. An active attachment has a namespace, even if its path is only visible in the
    /// mounts of another runtime.
    fn sweep(&mut self, node: &mut Node) -> Result<(), NodeError> {
        let own = self.name();
        for old in node.list()? {
            let is_idle = old.state == AttachmentState::Waiting || old.name == own;
            let is_gone = namespace(&old).is_some_and(|path| !path.exists());
            if is_idle && is_gone && is_of_network(&old.name, &self.config.name) {
                node.delete(&old.name)?;
                let name = &old.name;
                self.log
                    .push(format!("removed {name}, whose namespace is gone"));
            }
        }
        Ok(())
    }

    /// Removes the link. If the node is not running, its links no longer exist.
    fn del(&mut self) {
        let name = self.name();
        let deleted = self.node(TIME_LIMIT_SHORT);
        if let Err(error) = deleted.and_then(|mut node| node.delete(&name)) {
            self.log
                .push(format!("cannot remove {name}: {}", error.reason()));
        }
    }

    fn check(&mut self) -> Result<(), CniError> {
        let options = self.config.options(self.parameters)?;
        let previous = self.config.previous_result()?;
        let interface = &self.parameters.interface;
        let mut in_container = previous.interfaces.iter();
        let is_listed =
            in_container.any(|found| found.name == *interface && !found.sandbox.is_empty());
        if !previous.interfaces.is_empty() && !is_listed {
            let message = format!("prevResult has no interface {interface}");
            return Err(CniError::new(Reason::Configuration, message));
        }
        if !options.is_attached() {
            return Ok(());
        }
        let name = self.name();
        let found = match self.node(TIME_LIMIT).and_then(|mut node| node.get(&name)) {
            Err(NodeError::Unreachable(_)) if !self.config.is_required()? => return Ok(()),
            found => found.map_err(of_node)?,
        };
        let not_attached = |reason: &str| {
            let message = format!("the link of {interface} ({name}) {reason}");
            Err(CniError::new(Reason::NotAttached, message))
        };
        let Some(found) = found else {
            return not_attached("does not exist");
        };
        if found.state == AttachmentState::Waiting {
            return not_attached(&format!("is waiting: {}", found.reason.unwrap_or_default()));
        }
        let is_here = namespace(&found).as_deref() == Some(Path::new(&self.parameters.namespace))
            && found.interfaces.contains(interface);
        if !is_here {
            return not_attached("is attached elsewhere");
        }
        Ok(())
    }

    /// Removes the network's links, except those of valid attachments (CNI GC).
    fn gc(&mut self) -> Result<(), CniError> {
        let valid = self.config.valid_attachments()?;
        let network = &self.config.name;
        let valid = valid
            .iter()
            .map(|valid| name_of(network, &valid.container, &valid.interface));
        let valid: Vec<String> = valid.collect();
        let mut node = self.node(TIME_LIMIT).map_err(of_node)?;
        let all = node.list().map_err(of_node)?;
        let old = all
            .iter()
            .filter(|found| is_of_network(&found.name, network) && !valid.contains(&found.name));
        let mut errors = Vec::new();
        for old in old {
            if let Err(error) = node.delete(&old.name) {
                errors.push(format!("{}: {}", old.name, error.reason()));
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(
            CniError::new(Reason::Refused, "some links were not removed")
                .with_details(errors.join("; ")),
        )
    }

    fn status(&mut self) -> Result<(), CniError> {
        let healthy = self
            .node(TIME_LIMIT_SHORT)
            .and_then(|mut node| node.check_health());
        match healthy {
            Ok(()) => Ok(()),
            Err(_) if !self.config.is_required()? => Ok(()),
            Err(error) => Err(CniError {
                reason: Reason::Unavailable,
                ..of_node(error)
            }),
        }
    }
}

/// Refuses unsupported versions, and versions without the operation.
fn check_version(operation: Operation, version: &str) -> Result<(), CniError> {
    let first = match operation {
        Operation::Check => "0.4.0",
        Operation::Gc | Operation::Status => "1.1.0",
        _ => VERSIONS[0],
    };
    let since = VERSIONS.iter().skip_while(|known| **known != first);
    if since.clone().any(|known| *known == version) {
        return Ok(());
    }
    let since: Vec<&str> = since.copied().collect();
    let message = format!("unsupported cniVersion '{version}'");
    let details = format!(
        "versions supported for this operation: {}",
        since.join(", ")
    );
    Err(CniError::new(Reason::Version, message).with_details(details))
}

fn of_node(error: NodeError) -> CniError {
    /// HTTP status of an overloaded node.
    const BUSY: u16 = 503;
    match error {
        NodeError::Refused(BUSY, reason) => CniError::new(Reason::Later, reason),
        NodeError::Unreachable(reason) => CniError::new(Reason::Later, reason),
        NodeError::InvalidOptions(reason) => CniError::new(Reason::Configuration, reason),
        NodeError::Refused(status, reason) => {
            let message = format!("the node process refused the link: {reason}");
            CniError::new(Reason::Refused, message).with_details(format!("status {status}"))
        }
    }
}
