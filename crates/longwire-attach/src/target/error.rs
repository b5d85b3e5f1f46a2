//! Errors, with the places searched and remedies.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::container::{Container, Place, PlaceState};

/// Maximum number of names in a message.
const NAMES_MAX: usize = 20;

/// Failure to find or open a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No network namespace has this name.
    #[error("no network namespace {}{}", path.display(), listed("; existing: ", known))]
    NoNamespace {
        /// The file at which the namespace was expected.
        path: PathBuf,
        /// Names in `/run/netns`.
        known: Vec<String>,
    },
    /// The process does not exist or has ended.
    #[error("no process {pid}")]
    NoProcess {
        /// The PID.
        pid: u32,
    },
    /// The file is not a namespace, or may not be opened.
    #[error("cannot open {what}: {source}{}", hint(source))]
    Open {
        /// The file or process.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// No runtime has a container or pod with this name.
    #[error("{0}")]
    Unknown(Box<UnknownTarget>),
    /// Several containers match.
    #[error(
        "{what} matches {} running containers; select one by ID, or with its runtime \
         (docker:ID):{}", candidates.len(), lines(candidates)
    )]
    Ambiguous {
        /// For example: "container web".
        what: String,
        /// All matches.
        candidates: Vec<Container>,
    },
    /// All matching containers are stopped.
    #[error("{what} is not running; start it first:{}", lines(candidates))]
    NotRunning {
        /// For example: "container web".
        what: String,
        /// All matches.
        candidates: Vec<Container>,
    },
}

impl TargetError {
    pub(super) fn open(what: impl fmt::Display, source: io::Error) -> TargetError {
        let what = what.to_string();
        TargetError::Open { what, source }
    }
}

/// A name unknown to all runtimes.
#[derive(Debug)]
pub struct UnknownTarget {
    /// For example: "container web".
    pub what: String,
    /// Places searched.
    pub places: Vec<Place>,
    /// The running containers or pods.
    pub known: Vec<String>,
    /// A remedy for this name, if any.
    pub remedy: Option<String>,
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}", self.what)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        let is_denied = |place: &Place| place.state == PlaceState::Denied;
        if self.places.iter().any(is_denied) {
            write!(f, "; only root sees all containers: try sudo")?;
        }
        write!(f, "{}", listed("\n  running: ", &self.known))?;
        let (absent, present): (Vec<&Place>, Vec<&Place>) = self
            .places
            .iter()
            .partition(|place| place.state == PlaceState::Absent);
        for place in &present {
            write!(f, "\n  {place}")?;
        }
        let absent: Vec<String> = absent
            .iter()
            .map(|place| place.path.display().to_string())
            .collect();
        write!(f, "{}", listed("\n  absent: ", &absent))?;
        write!(
            f,
            "\n  For other runtimes, use --pid with a process of the container."
        )
    }
}

/// Returns a prefix and the names, or an empty text without names.
fn listed(prefix: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => format!("{prefix}{shown}"),
        more => format!("{prefix}{shown} and {more} more"),
    }
}

fn lines(containers: &[Container]) -> String {
    let shown = containers.iter().take(NAMES_MAX);
    let mut text: String = shown.map(|container| format!("\n  {container}")).collect();
    if containers.len() > NAMES_MAX {
        text += &format!("\n  and {} more", containers.len() - NAMES_MAX);
    }
    text
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "; this needs root, or CAP_SYS_PTRACE for processes of other users"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_list_a_limited_number_of_names() {
        let names = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("c{number}")).collect()
        };
        assert_eq!(listed("; ", &names(0)), "");
        assert_eq!(listed("; ", &names(2)), "; c0, c1");
        assert!(listed("; ", &names(20)).ends_with("c18, c19"));
        assert!(listed("; ", &names(25)).ends_with("c19 and 5 more"));
    }

    #[test]
    fn places_that_root_may_read_are_named_with_the_remedy() {
        let place = |path: &str, state| Place {
            path: PathBuf::from(path),
            state,
        };
        let unknown = UnknownTarget {
            what: "container web".to_owned(),
            places: vec![
                place("/run/a", PlaceState::Denied),
                place("/run/b", PlaceState::Absent),
                place("/run/c", PlaceState::Absent),
            ],
            known: Vec::new(),
            remedy: None,
        };
        assert_eq!(
            unknown.to_string(),
            "no container web; only root sees all containers: try sudo\n  /run/a: permission \
             denied\n  absent: /run/b, /run/c\n  For other runtimes, use --pid with a process of \
             the container."
        );
    }
}
