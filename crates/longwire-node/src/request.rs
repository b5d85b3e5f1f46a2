//! A parsed request for an attachment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longwire_attach::{ContainerName, PodName, Target};
use longwire_client::node::{AttachmentSpec, DirectionSpec, FailSpec, TargetSpec};
use longwire_control::node::NodeRefusal;
use longwire_engine::LinkSpec;
use longwire_engine::presets::Duplex;
use longwire_io::attach::{AttachError, Direction, FailMode, Selection};
use longwire_io::net::address::Prefix;
use longwire_packet::filter::Filter;
use longwire_topology::{Problem, duplex_of_json};
use serde_json::{Map, Value, json};

use crate::files;
use crate::place::Part;

/// Longest filter, in bytes. The kernel rejects shorter ones already, but takes seconds to reject
/// longer ones.
const FILTER_MAX: usize = 16 << 10;

/// A parsed request for an attachment.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentRequest {
    pub spec: AttachmentSpec,
    pub target: Target,
    pub part: Part,
    pub link: Duplex,
    pub warnings: Vec<Problem>,
}

impl AttachmentRequest {
    /// Parses a request, and reads the files that models name.
    ///
    /// # Errors
    /// All problems.
    pub fn read(spec: &AttachmentSpec) -> Result<AttachmentRequest, NodeRefusal> {
        let mut problems = Vec::new();
        let mut refuse = |pointer: &str, reason: String| {
            problems.push(Problem {
                file: "attachment".to_owned(),
                pointer: pointer.to_owned(),
                field: pointer.trim_start_matches('/').replace('/', "."),
                reason,
                ..Problem::default()
            });
        };
        let target = target(&spec.target);
        let target = target.map_err(|reason| refuse("/target", reason)).ok();
        let selection = selection(spec, &mut refuse);
        let link = match duplex_of_json(&spec.link, &files::of_attachment(spec.files)) {
            Ok(link) => Some(link),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(|problem| Problem {
                    pointer: format!("/link{}", problem.pointer),
                    ..problem
                }));
                None
            }
        };
        match (target, link) {
            (Some(target), Some((link, warnings))) if problems.is_empty() => {
                Ok(AttachmentRequest {
                    spec: spec.clone(),
                    target,
                    part: Part {
                        selection,
                        direction: match spec.direction {
                            DirectionSpec::Both => Direction::Both,
                            DirectionSpec::Up => Direction::Up,
                            DirectionSpec::Down => Direction::Down,
                        },
                        sharing: 0,
                        priority: spec.priority,
                        fail: match spec.fail {
                            FailSpec::Open => FailMode::Open,
                            FailSpec::Closed => FailMode::Closed,
                        },
                        claims: BTreeMap::new(),
                    },
                    link,
                    warnings,
                })
            }
            _ => Err(NodeRefusal::Invalid(problems)),
        }
    }

    /// Refuses to replace another attachment of this name, unless only the link's options and the
    /// selection differ.
    ///
    /// # Errors
    /// The field that differs, with the remedy.
    pub fn check_place_of(&self, other: &AttachmentRequest, name: &str) -> Result<(), NodeRefusal> {
        let (new, old) = (&self.spec, &other.spec);
        let fields = [
            ("target", new.target != old.target),
            ("interface", new.interface != old.interface),
            ("direction", new.direction != old.direction),
            ("priority", new.priority != old.priority),
            ("fail", new.fail != old.fail),
            ("seed", new.seed != old.seed),
            ("host_network", new.host_network != old.host_network),
            ("to and filter", self.takes_all() != other.takes_all()),
        ];
        match fields.iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((field, _)) => Err(NodeRefusal::Conflict(format!(
                "'{name}' is attached with another value of {field}, which cannot be changed while \
                 it is: remove it first, or choose another name"
            ))),
        }
    }

    fn takes_all(&self) -> bool {
        self.part.selection.takes_all()
    }

    /// Whether both select exactly the same traffic, so that one would get none.
    pub fn is_for_same_traffic(&self, other: &AttachmentRequest) -> bool {
        let (own, others) = (&self.spec, &other.spec);
        own.target == others.target
            && own.interface == others.interface
            && self.part.selection == other.part.selection
            && (self.spec.direction == other.spec.direction
                || self.spec.direction.is_both()
                || other.spec.direction.is_both())
    }
}

/// Parses the selection of traffic.
fn selection(spec: &AttachmentSpec, refuse: &mut impl FnMut(&str, String)) -> Selection {
    let mut to: Vec<Prefix> = Vec::new();
    for (position, text) in spec.to.iter().enumerate() {
        match text.parse() {
            Ok(prefix) => to.push(prefix),
            Err(error) => refuse(&format!("/to/{position}"), format!("'{text}': {error}")),
        }
    }
    let filter = spec.filter.as_deref().map(filter).transpose();
    let filter = filter.unwrap_or_else(|reason| {
        refuse("/filter", reason);
        None
    });
    let selection = Selection { to, filter };
    if let Err(error) = selection.check() {
        let at = if matches!(error, AttachError::TooManyPrefixes) {
            "/to"
        } else {
            "/filter"
        };
        refuse(at, error.to_string());
    }
    selection
}

fn filter(text: &str) -> Result<Filter, String> {
    if text.len() > FILTER_MAX {
        return Err(format!("a filter has at most {FILTER_MAX} bytes"));
    }
    text.parse::<Filter>().map_err(|error| error.to_string())
}

fn target(spec: &TargetSpec) -> Result<Target, String> {
    Ok(match spec {
        // A runtime names a namespace by a process. Its PID may be reused later.
        TargetSpec::Netns(path) => match process_of(path) {
            Some(pid) => Target::Pid(pid),
            None => Target::Netns(path.clone()),
        },
        TargetSpec::Pid(pid) => Target::Pid(*pid),
        TargetSpec::Container(name) => {
            let name = name.parse::<ContainerName>();
            Target::Container(name.map_err(|error| error.to_string())?)
        }
        TargetSpec::Pod(name) => {
            let name = name.parse::<PodName>();
            Target::Pod(name.map_err(|error| error.to_string())?)
        }
    })
}

/// Returns the process of `/proc/PID/ns/net`.
fn process_of(path: &Path) -> Option<u32> {
    let below = path.strip_prefix("/proc").ok()?.to_str()?;
    below.strip_suffix("/ns/net")?.parse().ok()
}

/// Returns the change of running links from one set of options to another; `None` if they are
/// equal.
pub(crate) fn change(from: &Duplex, to: &Duplex, interfaces: &[String]) -> Option<Value> {
    let mut set = Map::new();
    for (direction, from, to) in [("up", &from.up, &to.up), ("down", &from.down, &to.down)] {
        let options = difference(from, to);
        if options.is_empty() {
            continue;
        }
        for interface in interfaces {
            set.insert(format!("{interface}.{direction}"), json!(options));
        }
    }
    (!set.is_empty()).then(|| json!({ "set": set }))
}

/// Returns the new values of options that differ; null for removed ones.
fn difference(from: &LinkSpec, to: &LinkSpec) -> Map<String, Value> {
    let (from_given, to_given) = (from.given(), to.given());
    let names = from_given.iter().chain(&to_given);
    let names: BTreeSet<&str> = names.map(|(name, _)| *name).collect();
    let mut options = Map::new();
    for name in names {
        let (before, after) = (from.texts(name), to.texts(name));
        if before == after {
            continue;
        }
        let value = match after.as_slice() {
            [] => Value::Null,
            [one] => json!(one),
            several => json!(several),
        };
        options.insert(name.to_owned(), value);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &Value) -> Result<AttachmentRequest, NodeRefusal> {
        AttachmentRequest::read(&serde_json::from_value(body.clone()).expect("an attachment"))
    }

    #[test]
    fn all_problems_are_reported() {
        let body = json!({
            "target": { "container": "" },
            "to": ["10.0.0.0/8", "10.0.0.0/33"],
            "filter": "udp dst",
            "link": { "up": { "delay": "soon" } },
        });
        let Err(NodeRefusal::Invalid(problems)) = request(&body) else {
            panic!("it is wrong");
        };
        let pointers: Vec<&str> = problems.iter().map(|p| p.pointer.as_str()).collect();
        assert_eq!(pointers, ["/target", "/to/1", "/filter", "/link/up/delay"]);
    }

    #[test]
    fn a_process_namespace_names_the_process() {
        let target = |path: &str| {
            let body = json!({ "target": { "netns": path } });
            request(&body).expect("an attachment").target
        };
        assert!(matches!(target("/proc/4711/ns/net"), Target::Pid(4711)));
        for other in [
            "/proc/self/ns/net",
            "/proc/1/task/2/ns/net",
            "blue",
            "/run/netns/blue",
        ] {
            assert!(matches!(target(other), Target::Netns(_)), "{other}");
        }
    }

    #[test]
    fn a_change_contains_the_difference() {
        let read = |link: Value| {
            request(&json!({ "target": { "pid": 1 }, "link": link })).expect("an attachment")
        };
        let old = read(json!({ "delay": "20ms", "loss": "1%" }));
        let new = read(json!({ "delay": "20ms", "up": { "rate": "1mbit" } }));
        assert!(new.check_place_of(&old, "web").is_ok());
        let changed = change(&old.link, &new.link, &["eth0".to_owned()]);
        let expected = json!({ "set": {
            "eth0.up": { "loss": null, "rate": "1mbit" },
            "eth0.down": { "loss": null },
        } });
        assert_eq!(changed, Some(expected));
        assert_eq!(change(&new.link, &new.link, &["eth0".to_owned()]), None);
    }
}
