//! Errors with the places that were looked at, and remedies.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::container::Container;
use super::place::{Place, PlaceState};

/// Names that a message lists.
const NAMES_MAX: usize = 20;

/// A target that could not be found or opened.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No file of this name.
    #[error("no network namespace {}{}", path.display(), listed("; there are: ", known))]
    NoNamespace {
        /// The file.
        path: PathBuf,
        /// Names in `/run/netns`.
        known: Vec<String>,
    },
    /// The process does not exist, or has ended.
    #[error("no process {pid}; `ps -e` lists PIDs")]
    NoProcess {
        /// The PID.
        pid: u32,
    },
    /// The namespace is no namespace, or may not be opened.
    #[error("cannot open {what}: {source}{}", hint(source))]
    Open {
        /// The file or process.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// No runtime knows the name.
    #[error("{0}")]
    Unknown(Box<UnknownTarget>),
    /// Several containers fit.
    #[error(
        "{what} names {} running containers; name one by its ID, or with its runtime \
         (docker:ID):{}", candidates.len(), lines(candidates)
    )]
    Ambiguous {
        /// As in "container web".
        what: String,
        /// All that fit.
        candidates: Vec<Container>,
    },
    /// All containers that fit are stopped.
    #[error("{what} does not run; start it first:{}", lines(candidates))]
    NotRunning {
        /// As in "container web".
        what: String,
        /// All that fit.
        candidates: Vec<Container>,
    },
}

impl TargetError {
    pub(super) fn open(what: impl fmt::Display, source: io::Error) -> TargetError {
        let what = what.to_string();
        TargetError::Open { what, source }
    }
}

/// A name that no runtime knows.
#[derive(Debug)]
pub struct UnknownTarget {
    /// As in "container web".
    pub what: String,
    /// Where it was looked for.
    pub places: Vec<Place>,
    /// Running containers or pods.
    pub known: Vec<String>,
    /// A remedy for this name, if there is one.
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
            write!(f, "; only root may look everywhere: try sudo")?;
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
            "\n  With any runtime, --pid with the PID of a process in it works."
        )
    }
}

/// Returns names after a prefix, or nothing.
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
    if let Some(more) = containers
        .len()
        .checked_sub(NAMES_MAX)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("\n  and {more} more"));
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
            "no container web; only root may look everywhere: try sudo\n  \
             /run/a: permission denied\n  absent: /run/b, /run/c\n  \
             With any runtime, --pid with the PID of a process in it works."
        );
    }
}
