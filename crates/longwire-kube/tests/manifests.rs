//! The committed manifests are up to date.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use longwire_kube::manifests::{crds_template, manifests};
use serde::Deserialize;
use serde_norway::{Deserializer, Value};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn read(path: &str) -> String {
    fs::read_to_string(packaging().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn objects(text: &str) -> Vec<Value> {
    let documents = Deserializer::from_str(text);
    documents
        .map(|document| Value::deserialize(document).expect("YAML"))
        .filter(|value| !value.is_null())
        .collect()
}

fn all_objects() -> Vec<Value> {
    let manifests = manifests().expect("the chart is right");
    manifests
        .iter()
        .flat_map(|(_, text)| objects(text))
        .collect()
}

const HOW: &str = "run: longwire-kube manifests packaging";

#[test]
fn plain_manifests_match_the_chart() {
    for (name, text) in manifests().expect("the chart is right") {
        let found = read(&format!("kubernetes/{name}"));
        assert!(found == text, "{name} is old; {HOW}");
    }
}

#[test]
fn the_chart_has_the_definitions_of_the_resources() {
    let text = crds_template().expect("YAML");
    let found = read("helm/longwire/templates/crds.yaml");
    assert!(found == text, "crds.yaml of the chart is old; {HOW}");
    // There must be no further braces, which Helm would expand.
    assert_eq!(text.matches("{{").count(), 2);
}

#[test]
fn kustomize_has_all_manifests() {
    let list = &objects(&read("kubernetes/kustomization.yaml"))[0];
    let listed = list["resources"].as_sequence().expect("a list").iter();
    let listed = listed.map(|name| name.as_str().expect("a name").to_owned());
    let folder = fs::read_dir(packaging().join("kubernetes")).expect("a folder");
    let files = folder.map(|entry| entry.expect("an entry").file_name());
    let files = files.map(|name| name.into_string().expect("a name"));
    let files = files.filter(|name| name.ends_with(".yaml") && name != "kustomization.yaml");
    assert_eq!(
        listed.collect::<BTreeSet<_>>(),
        files.collect::<BTreeSet<_>>()
    );
}

#[test]
fn only_the_emulator_has_rights_on_its_machine() {
    let all = all_objects();
    let pods = all.iter().map(|object| &object["spec"]["template"]["spec"]);
    let pods: Vec<&Value> = pods.filter(|pod| !pod.is_null()).collect();
    assert_eq!(pods.len(), 2);
    for pod in pods {
        assert!(pod["hostNetwork"].is_null());
        for container in pod["containers"].as_sequence().expect("containers") {
            let context = &container["securityContext"];
            assert!(context["privileged"].is_null());
            assert_eq!(context["allowPrivilegeEscalation"], Value::Bool(false));
            assert_eq!(context["capabilities"]["drop"][0], Value::from("ALL"));
            let has_more = !context["capabilities"]["add"].is_null();
            assert_eq!(has_more, container["name"] == "node");
        }
    }
}

/// Returns the permissions of a role, one per line: `resource[/NAME]: verbs`.
fn rights(kind: &str, name: &str) -> Vec<String> {
    let all = all_objects();
    let mut roles = all.iter();
    let role = roles.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    let texts = |value: &Value| {
        let values = value.as_sequence().into_iter().flatten();
        let texts = values.map(|value| value.as_str().expect("a text").to_owned());
        texts.collect::<Vec<String>>()
    };
    let mut rights = Vec::new();
    for rule in role.expect("the role is there")["rules"]
        .as_sequence()
        .expect("rules")
    {
        let verbs = texts(&rule["verbs"]).join(" ");
        for mut resource in texts(&rule["resources"]) {
            resource.extend(
                texts(&rule["resourceNames"])
                    .iter()
                    .map(|name| format!(" {name}")),
            );
            rights.push(format!("{resource}: {verbs}"));
        }
    }
    rights.sort();
    rights
}

#[test]
fn accounts_have_the_required_verbs() {
    let agent = [
        "links/status: patch",
        "links: list watch",
        "namespaces: list watch",
        "networks/status: patch",
        "networks: list",
        "pods: list watch",
        "scenarios: list watch",
    ];
    assert_eq!(rights("ClusterRole", "longwire-agent"), agent);
    assert_eq!(rights("Role", "longwire-agent"), ["secrets: list watch"]);
    let controller = [
        "events: create patch",
        "links/status: patch",
        "links: list watch",
        "namespaces: list watch",
        "networks/status: patch",
        "networks: list watch",
        "nodes: list watch",
        "pods: list watch",
    ];
    assert_eq!(rights("ClusterRole", "longwire-controller"), controller);
    let in_namespace = [
        "deployments longwire-controller: get",
        "leases longwire-controller: get update",
        "leases: create",
        "secrets: create delete list patch watch",
    ];
    assert_eq!(rights("Role", "longwire-controller"), in_namespace);
}
