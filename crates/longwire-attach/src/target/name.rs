//! Container and pod names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::container::Runtime;

/// Maximum length of a name or ID. The runtimes' own limits are lower: 76 characters (containerd)
/// and 253 characters (Kubernetes).
const LENGTH_MAX: usize = 255;

/// Number of digits in a generated ID.
pub const FULL_ID_LENGTH: usize = 64;

/// Default namespace of pods.
const DEFAULT_NAMESPACE: &str = "default";

/// An invalid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a valid {kind}: {reason}")]
pub struct NameError {
    /// "container" or "pod".
    kind: &'static str,
    text: String,
    reason: &'static str,
}

/// A container's ID, ID prefix or name, such as `web`, `3fa9` or `docker:web`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContainerName {
    /// The runtime, if specified.
    pub runtime: Option<Runtime>,
    /// The name or ID.
    pub text: String,
}

impl TryFrom<String> for ContainerName {
    type Error = NameError;

    fn try_from(text: String) -> Result<ContainerName, NameError> {
        text.parse()
    }
}

impl From<ContainerName> for String {
    fn from(name: ContainerName) -> String {
        name.to_string()
    }
}

impl FromStr for ContainerName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<ContainerName, NameError> {
        let (runtime, name) = match text.split_once(':') {
            None => (None, text),
            Some((runtime, name)) => match runtime.parse() {
                Ok(runtime) => (Some(runtime), name),
                Err(()) => {
                    let reason = "the prefix must be docker, podman, containerd or cri-o";
                    return Err(invalid("container", text, reason));
                }
            },
        };
        check(name).map_err(|reason| invalid("container", text, reason))?;
        Ok(ContainerName {
            runtime,
            text: name.to_owned(),
        })
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runtime {
            Some(runtime) => write!(f, "{runtime}:{}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A pod's namespace and name, such as `kube-system/dns-0`; `web-0` is `default/web-0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PodName {
    /// The Kubernetes namespace.
    pub namespace: String,
    /// The pod.
    pub name: String,
}

impl TryFrom<String> for PodName {
    type Error = NameError;

    fn try_from(text: String) -> Result<PodName, NameError> {
        text.parse()
    }
}

impl From<PodName> for String {
    fn from(name: PodName) -> String {
        name.to_string()
    }
}

impl FromStr for PodName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<PodName, NameError> {
        let (namespace, name) = text.split_once('/').unwrap_or((DEFAULT_NAMESPACE, text));
        for part in [namespace, name] {
            check(part).map_err(|reason| invalid("pod", text, reason))?;
        }
        Ok(PodName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn invalid(kind: &'static str, text: &str, reason: &'static str) -> NameError {
    let text = text.chars().take(LENGTH_MAX).collect();
    NameError { kind, text, reason }
}

/// Checks the characters of a name or an ID. All runtimes permit the same characters, so an ID is
/// also safe as a file name.
pub fn check(name: &str) -> Result<(), &'static str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() {
        Err("empty")
    } else if name.len() > LENGTH_MAX {
        Err("too long")
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Err("must start with a letter or a digit")
    } else if !name.chars().all(is_allowed) {
        Err("only letters, digits, '.', '_' and '-' are allowed")
    } else {
        Ok(())
    }
}

/// Returns whether an ID has the form of a generated one: 64 hexadecimal digits. Any other ID may
/// also be the name of an unrelated cgroup.
pub fn is_full_id(id: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    id.len() == FULL_ID_LENGTH && id.chars().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_and_a_namespace_are_optional() {
        for text in ["web", "3fa9", "docker:web", "cri-o:web.1_a-b", "podman:x"] {
            let name: ContainerName = text.parse().expect(text);
            assert_eq!(name.to_string(), text);
        }
        let crio: ContainerName = "crio:web".parse().expect("another spelling");
        assert_eq!(crio.runtime, Some(Runtime::CriO));
        let name: PodName = "web-0".parse().expect("a name");
        assert_eq!(name.to_string(), "default/web-0");
        assert_eq!("default/web-0".parse(), Ok(name));
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        let long = "a".repeat(LENGTH_MAX + 1);
        for text in "|../../etc|a/b|docker:|docker:../x|rkt:a|a b|ä|.|-a"
            .split('|')
            .chain([&*long])
        {
            assert!(text.parse::<ContainerName>().is_err(), "{text}");
        }
        for text in ["", "/", "a/", "/a", "a/b/c", "../a", "a/.."] {
            assert!(text.parse::<PodName>().is_err(), "{text}");
        }
    }
}
