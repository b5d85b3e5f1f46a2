//! The agent with a real node: the program whose path is in the variable `LONGWIRE`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::apply::{Attempts, remove_all};
use super::slices::hindrance_of;
use crate::api::{Network, Reason};
use crate::facts::fixture;
use crate::metrics::Metrics;
use crate::network::place;
use crate::node::{AttachmentView, NETWORKS, NodeClient, NodeError};

/// A running node with its directory; both are removed on drop.
struct RunningNode {
    program: Child,
    folder: PathBuf,
}

impl RunningNode {
    /// Starts a node; `None` without a program.
    async fn start(name: &str) -> Option<(RunningNode, NodeClient)> {
        let Some(program) = std::env::var_os("LONGWIRE") else {
            eprintln!("skipped: LONGWIRE names no program");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("lw-kube-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let socket = folder.join("node.sock");
        let mut command = Command::new(program);
        command.arg("node").arg("--control").arg(&socket);
        command.arg("--state").arg(folder.join("state"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let program = command.spawn().expect("the program starts");
        let node = RunningNode { program, folder };
        let client = NodeClient::new(&socket);
        let begin = Instant::now();
        while client.attachments().await.is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "it is not ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some((node, client))
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wanted(attachments: &[(&str, Value)]) -> BTreeMap<String, Value> {
    let all = attachments.iter().cloned();
    all.map(|(name, body)| (name.to_owned(), body)).collect()
}

fn body(link: Value, to: &str) -> Value {
    json!({ "target": { "pod": "shop/cart-0" }, "link": link, "to": [to], "wait": true })
}

/// Applies attachments. Returns the attachments of the node afterwards, by name.
async fn apply(
    attempts: &mut Attempts,
    node: &NodeClient,
    wanted: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    let views = node.attachments().await.expect("a list");
    let metrics = Metrics::default();
    let kept = BTreeMap::new();
    attempts.apply(node, wanted, &kept, views, &metrics).await;
    let views = node.attachments().await.expect("a list").into_iter();
    views.map(|view| (view.name, view.spec)).collect()
}

#[tokio::test]
async fn foreign_attachments_are_kept() {
    let Some((_running, node)) = RunningNode::start("wanted").await else {
        return;
    };
    let mine = body(json!({ "loss": "1%" }), "10.0.0.9/32");
    node.put("web", &mine).await.expect("another's attachment");
    let mut attempts = Attempts::default();
    for (link, to) in [
        (json!({ "delay": "20ms" }), "10.0.0.1/32"),
        (
            json!({ "delay": "40ms", "up": { "rate": "5mbit" } }),
            "10.0.0.1/32",
        ),
        // If the selection changes, the node may have to restart the link.
        (json!({ "delay": "40ms" }), "10.0.0.2/32"),
    ] {
        let body = body(link, to);
        let wanted = wanted(&[("kube-shop-a-1", body.clone())]);
        let found = apply(&mut attempts, &node, &wanted).await;
        assert!(attempts.errors.is_empty(), "{:?}", attempts.errors);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["kube-shop-a-1", "web"]);
        assert_eq!(found["kube-shop-a-1"]["link"], body["link"]);
        assert_eq!(found["kube-shop-a-1"]["to"], body["to"]);
        // The node returns specifications unchanged, so there are no differences.
        let views = node.attachments().await.expect("a list");
        let same = crate::agent::apply::differences(&wanted, &BTreeMap::new(), &views);
        assert_eq!(same, crate::agent::apply::Differences::default());
    }
    let found = apply(&mut attempts, &node, &BTreeMap::new()).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["web"]);
    let other = body(json!({ "loss": "1%" }), "10.0.0.8/32");
    node.put("kube-shop-b-1", &other).await.expect("it is made");
    let mut network = json!({ "file": network_of_pairs() });
    for name in ["kube-shop-wan", "mine"] {
        let put = node.put_network(name, &network).await;
        put.expect("the node knows the names of all tables");
    }
    // A misspelt table shows that the node validates the topology.
    network["file"]["switch"] = network["file"]["switching"].take();
    let put = node.put_network("kube-shop-wrong", &network).await;
    assert!(matches!(put, Err(NodeError::Refused { .. })), "{put:?}");
    let removed = remove_all(&node).await.expect("they are removed");
    assert_eq!(removed, ["kube-shop-b-1", "kube-shop-wan"]);
    assert_eq!(node.attachments().await.expect("a list").len(), 1);
    let networks = node.networks().await.expect("a list");
    assert_eq!(networks.len(), 1);
    assert_eq!(networks[0].name, "mine");
    node.delete(NETWORKS, "mine").await.expect("it is removed");
}

/// Returns the topology of a Network whose ports are in pairs; two ports belong to the same pod.
fn network_of_pairs() -> Value {
    let app = |app: &str| json!({ "podSelector": { "matchLabels": { "app": app } } });
    let spec = json!({
        "topology": {
            "switching": { "pairs": [["ab", "ba"], ["ac", "ca"]] },
            "link": [{ "name": "wan", "match": "in-port=ab", "delay": "20ms" }],
        },
        "ports": { "ab": app("a"), "ac": app("a"), "ba": app("b"), "ca": app("c") },
    });
    let mut network = Network::new("wan", serde_json::from_value(spec).expect("a spec"));
    network.metadata.namespace = Some("shop".to_owned());
    let pods = [("a", 1), ("b", 2), ("c", 3)]
        .map(|(app, last)| fixture::pod(app, &[("app", app)], "n0", last));
    let agents = [("n0".to_owned(), IpAddr::from([127, 0, 0, 1]))].into();
    let placed = place(&network, &pods, &BTreeMap::new(), &agents, &[], 4800);
    Value::Object(placed.expect("it is placed").file)
}

#[tokio::test]
async fn refusals_and_conflicts_have_a_remedy() {
    let Some((_running, node)) = RunningNode::start("refused").await else {
        return;
    };
    let mut attempts = Attempts::default();
    let same = body(json!({ "delay": "20ms" }), "10.0.0.1");
    let good = wanted(&[("kube-shop-a-1", same.clone())]);
    apply(&mut attempts, &node, &good).await;
    let wrong = json!({ "up": { "delay": "soon" } });
    let bad = wanted(&[("kube-shop-a-1", body(wrong, "10.0.0.1"))]);
    let found = apply(&mut attempts, &node, &bad).await;
    assert_eq!(found["kube-shop-a-1"]["link"]["delay"], "20ms", "it stays");
    let error = &attempts.errors["kube-shop-a-1"];
    assert!(matches!(error, NodeError::Refused { .. }), "{error}");
    let hindrance = hindrance_of("shop/cart-0", error, &|_| None);
    assert_eq!(hindrance.reason, Reason::Refused);
    assert_eq!(hindrance.pointer.as_deref(), Some("/link/up/delay"));
    let remedy = hindrance.remedy.expect("one");
    assert!(!remedy.contains("longwire "), "{remedy}");
    let wait = attempts.retry_after().expect("it is repeated");
    assert!(wait > Duration::from_secs(5), "{wait:?}");
    // A valid request does not wait for the retry delay.
    apply(&mut attempts, &node, &good).await;
    assert!(attempts.errors.is_empty());
    // A second link must not select the same traffic.
    let error = node.put("kube-shop-b-1", &same).await;
    let error = error.expect_err("a conflict");
    let resource_of = |name: &str| (name == "kube-shop-a-1").then(|| "Link shop/a".to_owned());
    let hindrance = hindrance_of("shop/cart-0", &error, &resource_of);
    assert_eq!(hindrance.reason, Reason::Conflict);
    let (message, remedy) = (hindrance.message, hindrance.remedy.expect("one"));
    let start = "shop/cart-0: Link shop/a ";
    assert!(message.starts_with(start), "{message}");
    let has_command = message.contains("kube-") || message.contains("longwire ");
    assert!(!has_command, "{message}");
    assert!(remedy.contains("`filter`"), "{remedy}");
}

#[tokio::test]
async fn removals_at_an_unavailable_node_are_retried() {
    let node = NodeClient::new(&std::env::temp_dir().join("lw-kube-nowhere.sock"));
    let error = node.attachments().await.expect_err("there is none");
    assert!(matches!(error, NodeError::Unavailable { .. }), "{error}");
    let view = json!({ "name": "kube-shop-a-1", "state": "attached", "spec": {} });
    let view: AttachmentView = serde_json::from_value(view).expect("a view");
    let (none, kept) = (BTreeMap::new(), BTreeMap::new());
    let mut attempts = Attempts::default();
    let metrics = Metrics::default();
    attempts
        .apply(&node, &none, &kept, vec![view], &metrics)
        .await;
    let wait = attempts.retry_after().expect("it is repeated");
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
}
