//! A parsed and validated request for a network.

use longwire_client::node::NetworkSpec;
use longwire_control::node::NodeRefusal;
use longwire_topology::{AttachPlan, Problem, Topology};
use serde_json::Value;

use crate::files;

#[derive(Clone, Debug)]
pub(crate) struct NetworkRequest {
    pub spec: NetworkSpec,
    /// Topology as text.
    pub text: String,
    /// Ports at interfaces in use on this machine.
    pub attached: Vec<AttachPlan>,
    pub warnings: Vec<Problem>,
}

impl NetworkRequest {
    /// Parses a request for a network, and reads the permitted files that it names.
    ///
    /// # Errors
    /// All problems.
    pub fn read(spec: &NetworkSpec) -> Result<NetworkRequest, NodeRefusal> {
        let Some(text) = text(&spec.file) else {
            let reason = "write a topology as text, or as an object without null";
            return Err(refused("file", reason));
        };
        let files = files::of_network(spec.files);
        let topology =
            Topology::parse_naming("file", &text, &files).map_err(NodeRefusal::Invalid)?;
        let host = host(spec, &topology)?;
        if let Some(key) = &spec.key
            && !(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            let reason = "a key has 64 hexadecimal digits; `longwire key` creates one";
            return Err(refused("key", reason));
        }
        let owners = topology.cluster.as_ref().map(|cluster| &cluster.owners);
        let is_here =
            |plan: &AttachPlan| owners.map(|owners| owners[usize::from(plan.port.0)]) == host;
        Ok(NetworkRequest {
            spec: spec.clone(),
            text,
            attached: topology.attached.into_iter().filter(is_here).collect(),
            warnings: topology.warnings,
        })
    }

    /// Returns the reason why a port has no target at the moment; `None` if all have one.
    pub fn missing(&self) -> Option<String> {
        let mut targets = self.attached.iter().map(|plan| plan.target.resolve());
        targets.find_map(|found| Some(found.err()?.to_string()))
    }
}

/// Returns the index of the host run by this machine; `None` for a network without hosts.
fn host(spec: &NetworkSpec, topology: &Topology) -> Result<Option<usize>, NodeRefusal> {
    let Some(cluster) = &topology.cluster else {
        return match spec.host {
            Some(_) => Err(refused("host", "the topology has no [[host]]")),
            None => Ok(None),
        };
    };
    match (&spec.key, &cluster.key) {
        (None, None) => {
            let reason = "the hosts have no key; send one, or name its file in [underlay]";
            return Err(refused("key", reason));
        }
        (None, Some(Err(problem))) => return Err(NodeRefusal::Invalid(vec![(**problem).clone()])),
        _ => {}
    }
    let index = spec.host.as_ref().and_then(|name| cluster.host_named(name));
    let names = cluster.hosts.iter().map(|host| host.name.as_str());
    let names: Vec<&str> = names.collect();
    let reason = format!("this machine is one of the hosts: {}", names.join(", "));
    index.map(Some).ok_or_else(|| refused("host", &reason))
}

fn refused(field: &str, reason: &str) -> NodeRefusal {
    NodeRefusal::Invalid(vec![Problem {
        file: "network".to_owned(),
        pointer: format!("/{field}"),
        field: field.to_owned(),
        reason: reason.to_owned(),
        ..Problem::default()
    }])
}

/// Returns a topology as text: a string unchanged, an object as TOML. Returns `None` for other
/// values, and for null, which TOML lacks.
pub(super) fn text(file: &Value) -> Option<String> {
    match file {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => toml::to_string(fields).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longwire_topology::Topology;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_same_topology_as_its_text() {
        let object = json!({
            "seed": 7,
            "ports": { "left": "null", "right": "null" },
            "link": [{ "name": "wire", "delay": "5ms", "loss": ["1%"], "up": { "rate": "1mbit" } }],
            "at": [{ "time": "1s", "set": { "wi*": { "delay": "6ms" } } }],
        });
        let written = text(&object).expect("a text");
        let topology = Topology::parse("net", &written, Path::new(""));
        let topology = topology.unwrap_or_else(|problems| panic!("{written}\n{problems:?}"));
        assert_eq!((topology.seed, topology.ports.len()), (Some(7), 2));
        assert_eq!(topology.links[0].up.texts("rate"), ["1mbit"]);
        assert_eq!(topology.timeline.events.len(), 1);
    }

    #[test]
    fn special_characters_are_kept_and_nulls_refused() {
        let object = json!({ "a\"b": "\\ \u{7f} \n ü", "c": { "d.e": [1, true, 0.5] } });
        let written = text(&object).expect("a text");
        let read: Value = toml::from_str(&written).expect("TOML");
        assert_eq!(read, object, "{written}");
        assert_eq!(text(&json!({ "a": [null] })), None);
        assert_eq!(text(&json!(7)), None);
    }
}
