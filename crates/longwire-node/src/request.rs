//! A parsed attachment request.

use std::collections::BTreeSet;

use longwire_client::node::AttachmentSpec;
use longwire_control::node::NodeRefusal;
use longwire_engine::LinkSpec;
use longwire_engine::presets::Duplex;
use longwire_topology::{Problem, duplex_of_json};
use serde_json::{Map, Value, json};

use crate::files;
use crate::place::RequestedPlace;

#[derive(Clone, Debug)]
pub(crate) struct AttachmentRequest {
    pub spec: AttachmentSpec,
    pub place: RequestedPlace,
    pub link: Duplex,
    pub warnings: Vec<Problem>,
}

impl AttachmentRequest {
    /// Parses a request, and reads the files named by models.
    ///
    /// # Errors
    /// All problems.
    pub fn read(spec: &AttachmentSpec) -> Result<AttachmentRequest, NodeRefusal> {
        let place = RequestedPlace::read(spec);
        let link = duplex_of_json(&spec.link, &files::of_attachment(spec.files));
        let link = link.map_err(|problems| {
            let problems = problems.into_iter().map(|problem| Problem {
                pointer: format!("/link{}", problem.pointer),
                ..problem
            });
            problems.collect()
        });
        match (place, link) {
            (Ok(place), Ok((link, warnings))) => Ok(AttachmentRequest {
                spec: spec.clone(),
                place,
                link,
                warnings,
            }),
            (place, link) => {
                let problems: [Vec<Problem>; 2] = [
                    place.err().unwrap_or_default(),
                    link.err().unwrap_or_default(),
                ];
                Err(NodeRefusal::Invalid(problems.concat()))
            }
        }
    }

    /// Refuses to replace an attachment of this name, unless only link options and selection
    /// differ.
    ///
    /// # Errors
    /// If another field differs; includes the remedy.
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
                "'{name}' is attached with a different {field}, which cannot be changed; remove it \
                 first, or choose another name"
            ))),
        }
    }

    fn takes_all(&self) -> bool {
        self.place.selection.takes_all()
    }

    /// Returns whether both select exactly the same traffic, so that one of them would get none.
    pub fn is_for_same_traffic(&self, other: &AttachmentRequest) -> bool {
        let (own, others) = (&self.spec, &other.spec);
        own.target == others.target
            && own.interface == others.interface
            && self.place.selection == other.place.selection
            && (self.spec.direction == other.spec.direction
                || self.spec.direction.is_both()
                || other.spec.direction.is_both())
    }
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

/// Returns the options that differ, with their new values; null for removed options.
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
    use longwire_attach::Target;

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
            request(&body).expect("an attachment").place.target
        };
        assert!(matches!(target("/proc/4711/ns/net"), Target::Pid(4711)));
        let others = "/proc/self/ns/net /proc/1/task/2/ns/net blue /run/netns/blue";
        for other in others.split(' ') {
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
