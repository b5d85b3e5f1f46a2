//! Placement of networks with a fake API server. Its watches are silent, so the caches never
//! contain the controller's writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::runtime::events::Reporter;
use serde_json::{Value, json};

use super::events::EventPublisher;
use super::networks::{Networks, udp_port};
use crate::fake_api::{Change, FakeApi};
use crate::metrics::Metrics;
use crate::network::{PlacedNetwork, secret_name};
use crate::plan::ResourceKey;
use crate::watch::Watcher;

const SYSTEM: &str = "longwire-system";
const SECRETS: &str = "/api/v1/namespaces/longwire-system/secrets";
const NETWORKS: &str = "/apis/longwire.dev/v1alpha1/networks";

fn pod(namespace: &str, name: &str, node: &str, ip: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": namespace, "uid": name,
                      "labels": { "app": name } },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "phase": "Running", "podIPs": [{ "ip": ip }] },
    })
}

fn network(name: &str) -> Value {
    let app = |app: &str| json!({ "podSelector": { "matchLabels": { "app": app } } });
    json!({
        "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1 },
        "spec": { "topology": { "link": [{ "name": "wan", "delay": "20ms" }] },
                  "ports": { "a": app("a"), "b": app("b") } },
    })
}

fn secret_of(name: &str) -> String {
    secret_name(&ResourceKey::new("shop", name))
}

/// Returns a cluster with these networks, and two pods on two nodes.
fn cluster(networks: &[&str]) -> FakeApi {
    let api = FakeApi::default();
    let pods = vec![
        pod("shop", "a", "n1", "10.0.1.1"),
        pod("shop", "b", "n2", "10.0.2.1"),
    ];
    let emulators = vec![
        pod(SYSTEM, "e1", "n1", "10.1.0.1"),
        pod(SYSTEM, "e2", "n2", "10.1.0.2"),
    ];
    api.set("/api/v1/pods", pods);
    api.set("/api/v1/namespaces/longwire-system/pods", emulators);
    api.set(
        NETWORKS,
        networks.iter().map(|name| network(name)).collect(),
    );
    api
}

fn controller(api: &FakeApi) -> Networks {
    let events = EventPublisher::new(api.client(), Reporter::from("test"));
    let owner = OwnerReference {
        kind: "Deployment".to_owned(),
        name: "longwire-controller".to_owned(),
        uid: "uid-of-the-deployment".to_owned(),
        ..OwnerReference::default()
    };
    let watcher = Watcher {
        client: api.client(),
        changed: Arc::default(),
        metrics: Metrics::default(),
    };
    Networks::new(watcher, SYSTEM, Some(owner), events)
}

/// Runs rounds until one changes something, then a few more.
async fn rounds(networks: &mut Networks, api: &FakeApi) -> Vec<Change> {
    let nodes = BTreeSet::from(["n1".to_owned(), "n2".to_owned()]);
    let before = api.changes().len();
    for _ in 0..200 {
        networks.update(&nodes).await.expect("a round");
        if api.changes().len() > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..3 {
        networks.update(&nodes).await.expect("a round");
    }
    api.changes().split_off(before)
}

fn written<'a>(changes: &'a [Change], name: &str) -> Vec<&'a Value> {
    let path = format!("{SECRETS}/{name}");
    let of_secret = changes.iter().filter(|change| {
        change.path == path || change.path == SECRETS && change.body["metadata"]["name"] == name
    });
    of_secret.map(|change| &change.body).collect()
}

fn port_in(secret: &Value) -> u64 {
    use k8s_openapi::ByteString;
    let data = secret["data"]["network"].clone();
    let text: ByteString = serde_json::from_value(data).expect("base64");
    let network: Value = serde_json::from_slice(&text.0).expect("JSON");
    network["udp_port"].as_u64().expect("a port")
}

#[tokio::test]
async fn networks_keep_their_keys_and_ports_while_the_cache_is_late() {
    let api = cluster(&["one", "two"]);
    let mut networks = controller(&api);
    let changes = rounds(&mut networks, &api).await;
    assert_eq!(changes[0].method, Method::POST, "it was not there");
    let ports = ["one", "two"].map(|name| {
        let secrets = written(&changes, &secret_of(name));
        assert!(!secrets.is_empty(), "{changes:?}");
        for secret in &secrets {
            assert_eq!(secret["data"], secrets[0]["data"]);
            let owner = &secret["metadata"]["ownerReferences"][0]["uid"];
            assert_eq!(owner, "uid-of-the-deployment");
        }
        port_in(secrets[0])
    });
    assert_eq!(BTreeSet::from(ports), BTreeSet::from([4800, 4801]));
}

#[tokio::test]
async fn a_secret_that_the_cache_does_not_have_is_not_replaced() {
    let api = cluster(&["wan"]);
    api.add_hidden(&format!("{SECRETS}/{}", secret_of("wan")));
    let mut networks = controller(&api);
    let changes = rounds(&mut networks, &api).await;
    let methods: BTreeSet<&Method> = changes.iter().map(|change| &change.method).collect();
    assert_eq!(methods, BTreeSet::from([&Method::POST]), "{changes:?}");
}

#[test]
fn of_two_networks_with_one_port_the_second_gets_another() {
    let with_port = |name: &str, udp_port: u16| {
        let network = PlacedNetwork {
            udp_port,
            ..PlacedNetwork::default()
        };
        (name.to_owned(), network)
    };
    let networks = [
        with_port("x", 4800),
        with_port("y", 4800),
        with_port("z", 4802),
    ]
    .into();
    let ports = ["x", "y", "z", "new"].map(|name| udp_port(name, &networks));
    assert_eq!(ports, [4800, 4801, 4802, 4801]);
}
