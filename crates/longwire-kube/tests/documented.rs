//! The resources in the documentation are valid.

use std::fs;
use std::path::Path;

use longwire_kube::api::{Link, Network, Scenario};
use longwire_kube::network::{check_links, read_topology};
use longwire_kube::plan::Timeline;
use serde::de::DeserializeOwned;
use serde_norway::Value;

/// Returns the resources in a page's code blocks, as YAML or in a command that applies YAML.
fn resources(page: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = fs::read_to_string(path).expect("a page");
    let blocks = text.split("```").skip(1).step_by(2);
    let texts = blocks.filter_map(|block| {
        let (_, resource) = block.split_once("apiVersion: longwire.dev")?;
        let resource = resource.split("\nEOF").next()?;
        Some(format!("apiVersion: longwire.dev{resource}"))
    });
    texts
        .map(|text| serde_norway::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

fn read<T: DeserializeOwned>(resource: &Value) -> T {
    let read = serde_norway::from_value(resource.clone());
    read.unwrap_or_else(|error| panic!("{error}: {resource:?}"))
}

#[test]
fn documented_resources_are_valid() {
    let resources = resources("clusters.md");
    let mut kinds: Vec<&str> = Vec::new();
    for resource in &resources {
        let kind = resource["kind"].as_str().expect("a kind");
        kinds.push(kind);
        match kind {
            "Link" => drop(read::<Link>(resource)),
            "Scenario" => {
                let scenario = read::<Scenario>(resource);
                Timeline::read(&scenario.spec, None).expect("a timeline");
            }
            "Network" => {
                let network = read::<Network>(resource);
                let file = read_topology(&network.spec.topology).expect("a topology");
                check_links(&file, network.spec.ports.len()).expect("links with frames");
            }
            other => panic!("{other}"),
        }
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["Link", "Network", "Network", "Scenario"]);
}
