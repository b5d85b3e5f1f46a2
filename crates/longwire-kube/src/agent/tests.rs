//! The agent's requests to a real node: the program that the variable `LONGWIRE` names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::apply::{Attempts, remove_all};
use super::slices::hindrance_of;
use crate::api::Reason;
use crate::metrics::Metrics;
use crate::node::{NodeClient, NodeError};

/// A node that runs, with its folder. Both end with this.
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
        // It may have ended already.
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

/// Applies what is wanted. Returns the node's attachments then, by name.
async fn apply(
    attempts: &mut Attempts,
    node: &NodeClient,
    wanted: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    let views = node.attachments().await.expect("a list");
    let metrics = Metrics::default();
    attempts.apply(node, wanted, views, &metrics).await;
    let views = node.attachments().await.expect("a list").into_iter();
    views.map(|view| (view.name, view.spec)).collect()
}

#[tokio::test]
async fn a_node_has_what_is_wanted_and_what_others_made() {
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
        // Another place: the node may have to begin again.
        (json!({ "delay": "40ms" }), "10.0.0.2/32"),
    ] {
        let body = body(link, to);
        let wanted = wanted(&[("kube-shop-a-1", body.clone())]);
        let found = apply(&mut attempts, &node, &wanted).await;
        assert!(attempts.errors().is_empty(), "{:?}", attempts.errors());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["kube-shop-a-1", "web"]);
        assert_eq!(found["kube-shop-a-1"]["link"], body["link"]);
        assert_eq!(found["kube-shop-a-1"]["to"], body["to"]);
        // Equal ones are no difference: the node answers with what it was asked.
        let views = node.attachments().await.expect("a list");
        let same = super::differences::differences(&wanted, &views);
        assert_eq!(same, super::differences::Differences::default());
    }
    let found = apply(&mut attempts, &node, &BTreeMap::new()).await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["web"]);
    // The same traffic has one link.
    let same = node.put("kube-shop-b-1", &mine).await;
    assert!(matches!(same, Err(NodeError::Conflict(_))), "{same:?}");
    let other = body(json!({ "loss": "1%" }), "10.0.0.8/32");
    node.put("kube-shop-b-1", &other).await.expect("it is made");
    let removed = remove_all(&node).await.expect("they are removed");
    assert_eq!(removed, ["kube-shop-b-1"]);
    assert_eq!(node.attachments().await.expect("a list").len(), 1);
}

#[tokio::test]
async fn wrong_options_are_refused_with_their_place_and_a_remedy() {
    let Some((_running, node)) = RunningNode::start("refused").await else {
        return;
    };
    let mut attempts = Attempts::default();
    let good = wanted(&[(
        "kube-shop-a-1",
        body(json!({ "delay": "20ms" }), "10.0.0.1"),
    )]);
    apply(&mut attempts, &node, &good).await;
    let wrong = json!({ "up": { "delay": "soon" } });
    let bad = wanted(&[("kube-shop-a-1", body(wrong, "10.0.0.1"))]);
    let found = apply(&mut attempts, &node, &bad).await;
    assert_eq!(found["kube-shop-a-1"]["link"]["delay"], "20ms", "it stays");
    let error = &attempts.errors()["kube-shop-a-1"];
    assert!(matches!(error, NodeError::Refused { .. }), "{error}");
    let hindrance = hindrance_of("shop/cart-0", error);
    assert_eq!(hindrance.reason, Reason::Refused);
    assert_eq!(hindrance.pointer.as_deref(), Some("/link/up/delay"));
    assert!(hindrance.remedy.is_some());
    let wait = attempts.retry_after().expect("it is repeated");
    assert!(wait > Duration::from_secs(5), "{wait:?}");
    // A right one is not kept waiting.
    apply(&mut attempts, &node, &good).await;
    assert!(attempts.errors().is_empty());
}

#[tokio::test]
async fn a_node_that_is_away_is_an_error_of_its_own_kind() {
    let nowhere = std::env::temp_dir().join("lw-kube-nowhere.sock");
    let node = NodeClient::new(&nowhere);
    let error = node.attachments().await.expect_err("there is none");
    assert!(matches!(error, NodeError::Unavailable { .. }), "{error}");
}
