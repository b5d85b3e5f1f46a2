use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use serde_json::from_value;

use super::*;
use crate::facts::fixture;

const NODES: [&str; 3] = ["n0", "n1", "n2"];

fn pod(number: u8, node: &str, labels: &[(&str, &str)]) -> PodFacts {
    PodFacts {
        uid: format!("uid-{number}"),
        ..fixture::pod(&format!("pod-{number}"), labels, node, number)
    }
}

fn link(name: &str, spec: Value) -> Link {
    Link {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("shop".to_owned()),
            generation: Some(3),
            ..ObjectMeta::default()
        },
        spec: from_value(spec).expect("a spec"),
        status: None,
    }
}

fn state(node: &str, links: Vec<Link>, pods: Vec<PodFacts>) -> ClusterState {
    let labels = |name: &str| Labels::from([("team".to_owned(), name.to_owned())]);
    ClusterState {
        node: node.to_owned(),
        links,
        scenarios: Vec::new(),
        pods,
        namespaces: [
            ("shop".to_owned(), labels("a")),
            ("other".to_owned(), labels("b")),
        ]
        .into(),
    }
}

/// Returns the plan of n0 for a link `x`.
fn plan_of(spec: Value, pods: impl Into<Vec<PodFacts>>) -> Plan {
    plan(&state("n0", vec![link("x", spec)], pods.into()))
}

/// Returns the only hindrance of a plan.
fn hindrance(plan: &Plan) -> &Hindrance {
    let mut all = plan.links.values().flat_map(|link| &link.hindrances);
    let one = all.next().expect("a hindrance");
    assert_eq!(all.next(), None);
    one
}

/// Selects pods by their label `app`.
fn apps(value: &str) -> Value {
    json!({ "podSelector": { "matchLabels": { "app": value } } })
}

fn app(number: u8, node: &str, app: &str) -> PodFacts {
    pod(number, node, &[("app", app)])
}

/// Returns the bodies of a plan without their seeds.
fn bodies(plan: &Plan) -> Vec<Value> {
    let wanted = plan.attachments.values();
    let bodies = wanted.map(|wanted| {
        let mut body = wanted.body.clone();
        let seed = body.as_object_mut().and_then(|body| body.remove("seed"));
        assert!(seed.is_some_and(|seed| seed.is_u64()));
        body
    });
    bodies.collect()
}

#[test]
fn a_link_without_peers_takes_all_traffic() {
    let slow = json!({ "from": apps("cart"), "link": { "delay": "40ms" } });
    let pods = [
        app(1, "n0", "cart"),
        app(2, "n0", "web"),
        app(3, "n1", "cart"),
    ];
    let plan = plan_of(slow, pods);
    let names: Vec<&String> = plan.attachments.keys().collect();
    assert_eq!(names, ["kube-shop-x-uid-1"]);
    let expected = json!({
        "target": { "pod": "shop/pod-1" }, "link": { "delay": "40ms" }, "wait": true, "files": false,
    });
    assert_eq!(bodies(&plan), [expected]);
    let link = &plan.links[&ResourceKey::new("shop", "x")];
    assert_eq!(link.pods, ["shop/pod-1"]);
    assert_eq!(link.generation, 3);
}

#[test]
fn each_field_reaches_the_node() {
    let all = json!({
        "from": apps("cart"), "to": { "cidrs": ["10.9.0.0/16", "10.8.0.0/16"] },
        "interface": "eth1", "filter": "tcp", "link": { "up": { "rate": 5 } }, "seed": 7,
        "priority": 2, "fail": "closed",
    });
    let plan = plan_of(all, [app(1, "n0", "cart")]);
    let expected = json!({
        "target": { "pod": "shop/pod-1" }, "interface": "eth1",
        "to": ["10.8.0.0/16", "10.9.0.0/16"], "filter": "tcp", "link": { "up": { "rate": 5 } },
        "priority": 2, "fail": "closed", "wait": true, "files": false,
    });
    assert_eq!(bodies(&plan), [expected]);
    let (key, wanted) = plan.attachments.iter().next().expect("one");
    let seed = attachment_seed(7, &wanted.link, "shop/pod-1", Part::Both);
    assert_eq!(wanted.body["seed"], seed, "{key}");
}

#[test]
fn peers_without_an_address_never_mean_all_traffic() {
    let (mut db, mut ended) = (app(2, "n1", "db"), app(3, "n1", "db"));
    db.addresses.clear();
    ended.has_ended = true;
    let pair = json!({ "from": apps("cart"), "to": apps("db") });
    let plan = plan_of(pair, [app(1, "n0", "cart"), db, ended]);
    assert!(plan.attachments.is_empty());
    assert_eq!(hindrance(&plan).reason, Reason::NoPeers);
}

/// Returns carts on n0 and n1, and a web server on n1.
fn carts_and_web() -> [PodFacts; 3] {
    [
        app(1, "n0", "cart"),
        app(2, "n1", "cart"),
        app(3, "n1", "web"),
    ]
}

#[test]
fn mutual_peers_shape_only_what_they_send() {
    let mesh = json!({
        "from": apps("cart"), "to": { "podSelector": {} }, "link": { "delay": "40ms" },
    });
    let plan = plan_of(mesh, carts_and_web());
    let wanted: Vec<(&str, &Value, Option<&Value>)> = plan
        .attachments
        .iter()
        .map(|(name, wanted)| {
            let body = &wanted.body;
            (name.as_str(), &body["to"], body.get("direction"))
        })
        .collect();
    let (both, up) = (json!(["10.0.0.3/32"]), json!(["10.0.0.2/32"]));
    assert_eq!(
        wanted,
        [
            ("kube-shop-x-uid-1", &both, None),
            ("kube-shop-x-uid-1-up", &up, Some(&json!("up"))),
        ]
    );
}

#[test]
fn options_of_down_are_unused_between_mutual_peers_alone() {
    let is_unused = |link_options: Value, to: Value| {
        let spec = json!({ "from": apps("cart"), "to": to, "link": link_options });
        let plan = plan_of(spec, carts_and_web());
        plan.links.values().any(|link| link.is_down_unused)
    };
    let all = json!({ "podSelector": {} });
    let down = json!({ "down": { "delay": "50ms" } });
    assert!(is_unused(down.clone(), all.clone()));
    assert!(!is_unused(down, apps("web")));
    assert!(!is_unused(json!({ "delay": "50ms", "down": {} }), all));
}

#[test]
fn host_networks_are_never_touched() {
    let mut system = pod(1, "n0", &[]);
    system.is_host_network = true;
    let plan = plan_of(json!({ "from": { "podSelector": {} } }), [system]);
    assert!(plan.attachments.is_empty());
    assert_eq!(hindrance(&plan).reason, Reason::HostNetwork);
}

#[test]
fn invalid_specs_are_refused_with_a_pointer() {
    let expression = |operator: &str, values: &[&str]| {
        let one = json!({ "key": "app", "operator": operator, "values": values });
        json!({ "podSelector": { "matchExpressions": [one] } })
    };
    let (operator, without) = (expression("Like", &["x"]), expression("NotIn", &[]));
    let all = json!({ "podSelector": {} });
    for (spec, pointer) in [
        (json!({ "from": operator }), "/from/podSelector"),
        (json!({ "from": without }), "/from/podSelector"),
        (json!({ "from": all, "to": operator }), "/to/podSelector"),
        (json!({ "from": all, "scenario": "none" }), "/scenario"),
    ] {
        let plan = plan_of(spec, [pod(1, "n0", &[]), pod(2, "n1", &[])]);
        assert!(plan.attachments.is_empty());
        // Attachments created before the spec became invalid are kept.
        let kept: Vec<&String> = plan.kept.keys().collect();
        assert_eq!(kept, ["kube-shop-x-uid-1", "kube-shop-x-uid-1-up"]);
        let hindrance = hindrance(&plan);
        assert_eq!(hindrance.reason, Reason::Refused);
        assert_eq!(hindrance.pointer.as_deref(), Some(pointer));
    }
}

#[test]
fn a_link_that_is_refused_keeps_those_of_selected_pods_alone() {
    let wrong = json!({ "from": apps("cart"), "scenario": "none" });
    let plan = plan_of(wrong, [app(1, "n0", "cart"), app(2, "n0", "web")]);
    assert!(plan.kept.contains_key("kube-shop-x-uid-1"));
    let pods: Vec<&str> = plan.kept.values().map(|kept| kept.pod.as_str()).collect();
    assert_eq!(pods, ["shop/pod-1", "shop/pod-1"]);
}

#[test]
fn more_peers_than_a_node_takes_are_refused_with_their_number() {
    let peers = |count: usize| {
        let mut pods = vec![app(1, "n0", "cart")];
        pods.extend((0..count).map(|number| {
            let mut peer = app(2, "n1", "db");
            peer.uid = format!("peer-{number}");
            let [_, _, high, low] = (number as u32).to_be_bytes();
            peer.addresses = vec![IpAddr::from([10, 1, high, low])];
            peer
        }));
        plan_of(json!({ "from": apps("cart"), "to": apps("db") }), pods)
    };
    let most = &bodies(&peers(PREFIXES_MAX))[0];
    assert_eq!(most["to"].as_array().map(Vec::len), Some(PREFIXES_MAX));
    let more = peers(PREFIXES_MAX + 1);
    assert!(more.attachments.is_empty());
    assert!(more.kept.contains_key("kube-shop-x-uid-1"));
    let hindrance = hindrance(&more);
    assert_eq!(hindrance.reason, Reason::Refused);
    assert_eq!(hindrance.pointer.as_deref(), Some("/to"));
    assert!(hindrance.message.contains("513") && hindrance.remedy.is_some());
}

#[test]
fn namespaces_are_selected_by_their_labels() {
    let spec = json!({ "from": {
        "podSelector": {}, "namespaceSelector": { "matchLabels": { "team": "b" } } } });
    let mut other = pod(1, "n0", &[]);
    other.namespace = "other".to_owned();
    let mut unknown = pod(2, "n0", &[]);
    unknown.namespace = "new".to_owned();
    let plan = plan_of(spec, [other, unknown, pod(3, "n0", &[])]);
    let pods: Vec<&str> = plan.attachments.values().map(|w| w.pod.as_str()).collect();
    assert_eq!(pods, ["other/pod-1"]);
}

/// Returns how often a link shapes a packet between two pods, at the sender or at the receiver.
fn times_shaped(plans: &[Plan], from: &PodFacts, to: &PodFacts) -> usize {
    let wanted = plans.iter().flat_map(|plan| plan.attachments.values());
    let shapes = |wanted: &&WantedAttachment| {
        let body = &wanted.body;
        let has = |pod: &PodFacts| {
            let prefix = json!(format!("{}/32", pod.addresses[0]));
            body["to"].as_array().is_some_and(|to| to.contains(&prefix))
        };
        let is_up_only = body.get("direction") == Some(&json!("up"));
        let sends = wanted.pod == from.target() && has(to);
        let receives = wanted.pod == to.target() && !is_up_only && has(from);
        sends || receives
    };
    wanted.filter(shapes).count()
}

fn some_pods() -> impl Strategy<Value = Vec<PodFacts>> {
    let one = (0..3usize, 0..3u8, 0..3u8, any::<bool>());
    proptest::collection::vec(one, 1..9).prop_map(|pods| {
        let pods = pods.into_iter().zip(1..);
        pods.map(|((node, app, tier, is_host_network), number)| {
            let (app, tier) = (app.to_string(), tier.to_string());
            let mut pod = pod(number, NODES[node], &[("app", &app), ("tier", &tier)]);
            pod.is_host_network = is_host_network && number % 3 == 0;
            pod
        })
        .collect()
    })
}

fn some_selector() -> impl Strategy<Value = Value> {
    let key = prop_oneof![Just("app"), Just("tier"), Just("absent")];
    let value = (0..3u8).prop_map(|value| value.to_string());
    prop_oneof![
        Just(json!({})),
        (key.clone(), value.clone()).prop_map(|(k, v)| json!({ "matchLabels": { k: v } })),
        (key, value, 0..4usize).prop_map(|(key, value, operator)| {
            let operator = ["In", "NotIn", "Exists", "DoesNotExist"][operator];
            let values = Vec::from_iter(operator.ends_with("In").then_some(value));
            json!({ "matchExpressions":
                [{ "key": key, "operator": operator, "values": values }] })
        }),
    ]
}

/// Evaluates a label selector in JSON, as Kubernetes documents it.
fn selects(selector: &Value, pod: &PodFacts) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    let labels = selector["matchLabels"].as_object();
    let equal = labels
        .into_iter()
        .flatten()
        .all(|(key, value)| label(key) == value.as_str());
    let expressions = selector["matchExpressions"].as_array();
    equal
        && expressions.into_iter().flatten().all(|one| {
            let value = label(one["key"].as_str().expect("a key"));
            let is_in = value.is_some_and(|v| one["values"] == json!([v]));
            match one["operator"].as_str() {
                Some("In") => is_in,
                Some("NotIn") => !is_in,
                Some("Exists") => value.is_some(),
                _ => value.is_none(),
            }
        })
}

proptest! {
    #[test]
    fn each_direction_of_a_pair_is_shaped_once(
        pods in some_pods(),
        from in some_selector(),
        to in some_selector(),
    ) {
        let spec = json!({ "from": { "podSelector": from }, "to": { "podSelector": to } });
        let plans: Vec<Plan> = NODES
            .iter()
            .map(|node| plan(&state(node, vec![link("x", spec.clone())], pods.clone())))
            .collect();
        let has_link = |one: &PodFacts, other: &PodFacts| {
            !one.is_host_network && selects(&from, one) && selects(&to, other)
        };
        for (i, a) in pods.iter().enumerate() {
            for (j, b) in pods.iter().enumerate() {
                let expected = i != j && (has_link(a, b) || has_link(b, a));
                prop_assert_eq!(times_shaped(&plans, a, b), usize::from(expected), "{} {}", i, j);
            }
        }
    }

    #[test]
    fn the_order_of_caches_changes_nothing(
        pods in some_pods(),
        from in some_selector(),
        to in some_selector(),
        turn in 0..9usize,
    ) {
        let spec = json!({ "from": { "podSelector": from }, "to": { "podSelector": to } });
        let other = json!({ "from": { "podSelector": to }, "link": { "loss": "1%" } });
        let links = vec![link("x", spec), link("y", other)];
        let one = state("n0", links.clone(), pods.clone());
        let mut turned = state("n0", links.into_iter().rev().collect(), pods);
        let turn = turn % turned.pods.len();
        turned.pods.rotate_left(turn);
        prop_assert_eq!(plan(&one).attachments, plan(&turned).attachments);
    }
}
