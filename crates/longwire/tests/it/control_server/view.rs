//! The live view: its page and tokens, the table of directions, and events of the scenario.

use serde_json::{Value, json};

use super::client::{Answer, ask, ask_tcp, request};
use super::{NETWORK, Stage};
use crate::common::process::{RunningProgram, eventually};

const ADDRESS: &str = "127.0.0.1:9471";

/// Starts a network with a view; returns the printed tokens, the one with all rights
/// first.
fn viewed(stage: &Stage, network: &str) -> (RunningProgram, [String; 2]) {
    let view = format!("--view={ADDRESS}");
    let socket = stage.socket();
    let mut command = stage.command(network, &["--control", &socket, &view]);
    let log = stage.dir.file("stderr");
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let running = RunningProgram::start(&stage.namespace, &mut command);
    let mut text = String::new();
    eventually("no tokens", || {
        text = std::fs::read_to_string(&log).expect("the notes");
        text.matches("#token=").count() == 2
    });
    let tokens = text.lines().filter_map(|line| line.split("#token=").nth(1));
    let tokens: Vec<String> = tokens.map(str::to_owned).collect();
    (running, tokens.try_into().expect("two tokens"))
}

fn ask_view(stage: &Stage, line: &str, headers: &[&str], body: &str) -> Answer {
    let host = format!("Host: {ADDRESS}");
    let mut all = vec![host.as_str()];
    all.extend(headers);
    ask_tcp(&stage.namespace, ADDRESS, &request(line, &all, body))
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

#[test]
fn the_page_needs_no_token_and_everything_else_does() {
    let Some(stage) = Stage::new() else { return };
    let (_running, [full, read]) = viewed(&stage, NETWORK);
    assert_ne!(full, read);
    let page = ask_view(&stage, "GET /", &[], "");
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'self'"), "{policy}");
    // A name that resolves to this host (DNS rebinding), and a page of another origin.
    let elsewhere = request("GET /", &["Host: evil.example"], "");
    assert_eq!(ask_tcp(&stage.namespace, ADDRESS, &elsewhere).status, 403);
    assert_eq!(
        ask_view(&stage, "GET /", &["Origin: http://evil.example"], "").status,
        403
    );

    for path in [
        "/v1",
        "/v1/table",
        "/v1/fidelity",
        "/v1/models",
        "/assets/x",
    ] {
        assert_eq!(
            ask_view(&stage, &format!("GET {path}"), &[], "").status,
            401,
            "{path}"
        );
    }
    let change = json!({ "delay": "9ms" }).to_string();
    for (token, may_change, status) in [(&full, true, 200), (&read, false, 403)] {
        let overview = ask_view(&stage, "GET /v1", &[&bearer(token)], "").json();
        assert_eq!(overview["may_change"], may_change, "{overview}");
        assert_eq!(overview["view"], true, "{overview}");
        let changed = ask_view(
            &stage,
            "PATCH /v1/links/home.up",
            &[&bearer(token)],
            &change,
        );
        assert_eq!(changed.status, status, "{changed:?}");
        let skipped = ask_view(&stage, "POST /v1/scenario/skip", &[&bearer(token)], "");
        assert_eq!(skipped.status, status, "{skipped:?}");
    }
}

#[test]
fn a_run_without_a_page_records_what_clients_read() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    for path in ["/v1/table", "/v1/fidelity", "/v1/flows/home.up"] {
        let answer = ask(&socket, &format!("GET {path}"), "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let samples = || {
        let columns = ask(&socket, "GET /v1/history/home.up", "").json();
        columns["elapsed_s"].as_array().expect("a column").len()
    };
    assert_eq!(samples(), 0, "nothing is recorded before a client reads it");
    eventually("no samples", || samples() >= 3);
    assert_eq!(ask(&socket, "GET /v1", "").json()["view"], false);
    assert_eq!(ask(&socket, "GET /", "").status, 404);
}

#[test]
fn the_table_sorts_selects_and_pages() {
    let Some(stage) = Stage::new() else { return };
    let network = NETWORK.replace("count = 3", "count = 200");
    let (_running, _) = viewed(&stage, &network);
    let socket = stage.socket();
    let page = |query: &str| ask(&socket, &format!("GET /v1/table?{query}"), "").json();
    let names = |page: &Value| -> Vec<String> {
        let rows = page["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let first = page("limit=3");
    assert_eq!(
        (&first["directions"], &first["fitting"]),
        (&json!(403), &json!(403))
    );
    assert_eq!(names(&first), ["adsl1.down", "adsl1.up", "adsl10.down"]);
    let last = page("limit=3&order=desc");
    assert_eq!(names(&last), ["radio/1", "home.up", "home.down"]);
    let next = page("match=adsl*.up&limit=2&offset=199");
    assert_eq!(
        (&next["fitting"], names(&next)),
        (&json!(200), vec!["adsl99.up".to_owned()])
    );
    // A name without direction matches both.
    assert_eq!(
        names(&page("match=home&sort=drops&order=desc")),
        ["home.down", "home.up"]
    );
    for wrong in ["sort=colour", "limit=0", "limit=501", "order=up"] {
        assert_eq!(
            ask(&socket, &format!("GET /v1/table?{wrong}"), "").status,
            400,
            "{wrong}"
        );
    }
    // In a large network, only directions that are read are recorded.
    let recorded = ask(&socket, "GET /v1/history/adsl7.up", "").json();
    assert_eq!(recorded["elapsed_s"], json!([]), "{recorded}");
    let samples = |name: &str| {
        let columns = ask(&socket, &format!("GET /v1/history/{name}"), "").json();
        columns["elapsed_s"].as_array().expect("a column").len()
    };
    eventually("no samples", || samples("adsl7.up") >= 3);
    assert_eq!(ask(&socket, "GET /v1/history/adsl7", "").status, 404);
    let stream = "GET /v1/history/stream?directions=adsl7.up,nowhere";
    assert_eq!(ask(&socket, stream, "").status, 404);
}

#[test]
fn an_event_of_the_scenario_is_skipped_to() {
    let Some(stage) = Stage::new() else { return };
    let (_running, _) = viewed(&stage, NETWORK);
    let socket = stage.socket();
    let upcoming = || ask(&socket, "GET /v1/scenario", "").json();
    let events = upcoming()["events"].clone();
    assert_eq!(
        events,
        json!([{ "at_ns": 500_000_000_000u64, "change": { "off": ["home"] } }])
    );
    let skipped = ask(&socket, "POST /v1/scenario/skip", "").json();
    let at = skipped["at_ns"].as_u64().expect("it was skipped to");
    assert!(at < 400_000_000_000, "{skipped}");
    let is_down = || ask(&socket, "GET /v1/links/home", "").json()["up"]["state"] == "off";
    eventually("it is not down", is_down);
    let changes = ask(&socket, "GET /v1/changes", "").json();
    assert_eq!(changes["changes"][0]["at_ns"], at, "{changes}");
    assert_eq!(upcoming()["events"], json!([]));
    assert_eq!(
        ask(&socket, "POST /v1/scenario/skip", "").json()["at_ns"],
        Value::Null
    );
}

#[test]
fn an_address_in_use_is_refused() {
    let Some(stage) = Stage::new() else { return };
    let (_running, _) = viewed(&stage, NETWORK);
    let refused = stage.refused(&[&format!("--view={ADDRESS}")]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains(ADDRESS), "{refused:?}");
}
