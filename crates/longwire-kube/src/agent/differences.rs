//! Differences between the desired and the actual attachments of a node.

use std::collections::BTreeMap;

use serde_json::Value;

use super::is_ours;
use crate::node::AttachmentView;
use crate::plan::KeptAttachment;

/// Requests that remove the differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Agents' attachments that are not desired. They are removed first, since new ones may need their
    /// interfaces.
    pub remove: Vec<String>,
    /// Desired attachments that are missing or differ.
    pub put: Vec<String>,
}

/// Compares attachments. Ignores those that no agent made, and those to keep.
pub(super) fn differences(
    wanted: &BTreeMap<String, Value>,
    kept: &BTreeMap<String, KeptAttachment>,
    views: &[AttachmentView],
) -> Differences {
    let existing = |name: &str| views.iter().find(|view| view.name == name);
    let ours = views.iter().filter(|view| is_ours(&view.name));
    let is_unwanted =
        |view: &&AttachmentView| !wanted.contains_key(&view.name) && !kept.contains_key(&view.name);
    let unwanted = ours.filter(is_unwanted);
    let differs = |(name, body): &(&String, &Value)| {
        existing(name).is_none_or(|view| !is_same(&view.spec, body))
    };
    Differences {
        remove: unwanted.map(|view| view.name.clone()).collect(),
        put: wanted
            .iter()
            .filter(differs)
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

/// Whether an attachment matches its request. A node may add defaults.
fn is_same(spec: &Value, body: &Value) -> bool {
    let defaults = [
        ("direction", Value::from("both")),
        ("priority", Value::Null),
        ("fail", Value::from("open")),
        ("host_network", Value::from(false)),
    ];
    let normal = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            fields.retain(|name, value| {
                let is_default =
                    |(field, default): &(&str, Value)| field == name && default == value;
                !value.is_null() && !defaults.iter().any(is_default)
            });
        }
        value
    };
    normal(spec) == normal(body)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::plan::ResourceKey;

    fn view(name: &str, spec: Value) -> AttachmentView {
        let view = json!({ "name": name, "state": "attached", "spec": spec });
        from_value(view).expect("a view")
    }

    #[test]
    fn only_attachments_of_an_agent_are_removed() {
        let views = [view("web", json!({})), view("kube-shop-x-1", json!({}))];
        let found = differences(&BTreeMap::new(), &BTreeMap::new(), &views);
        assert_eq!(found.remove, ["kube-shop-x-1"]);
        assert!(found.put.is_empty());
    }

    #[test]
    fn equal_attachments_are_left_alone() {
        let body = json!({ "target": { "pod": "shop/a" }, "link": { "delay": "1ms" } });
        let with_defaults = json!({
            "target": { "pod": "shop/a" }, "link": { "delay": "1ms" },
            "direction": "both", "priority": null, "seed": null,
        });
        let wanted = BTreeMap::from([
            ("kube-a".to_owned(), body.clone()),
            ("kube-b".to_owned(), body.clone()),
            ("kube-c".to_owned(), body.clone()),
            ("kube-d".to_owned(), body),
        ]);
        let views = [
            view("kube-a", with_defaults),
            view(
                "kube-b",
                json!({ "target": { "pod": "shop/a" }, "link": {} }),
            ),
            view(
                "kube-c",
                json!({ "target": { "pod": "shop/a" }, "link": { "delay": "1ms" },
                        "direction": "up" }),
            ),
        ];
        let found = differences(&wanted, &BTreeMap::new(), &views);
        assert!(found.remove.is_empty());
        assert_eq!(found.put, ["kube-b", "kube-c", "kube-d"]);
    }

    #[test]
    fn attachments_to_keep_are_neither_removed_nor_changed() {
        let kept = KeptAttachment {
            link: ResourceKey {
                namespace: "shop".to_owned(),
                name: "x".to_owned(),
            },
            pod: "shop/a".to_owned(),
        };
        let kept = BTreeMap::from([("kube-a".to_owned(), kept)]);
        let spec = json!({ "target": { "pod": "shop/a" }, "link": { "delay": "1ms" } });
        let views = [view("kube-a", spec.clone()), view("kube-b", spec)];
        let found = differences(&BTreeMap::new(), &kept, &views);
        assert_eq!(found.remove, ["kube-b"]);
        assert!(found.put.is_empty());
    }
}
