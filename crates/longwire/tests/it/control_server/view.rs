//! The live view: its page and tokens, the table of directions, and scenario events.

use serde_json::{Value, json};

use super::client::{Answer, ask_tcp, request};
use super::{ADDRESS, NETWORK, Stage};
use crate::common::program::{RunningProgram, eventually};
use crate::common::{count, list, read};

/// Starts a network with a view; returns the printed tokens, full access first.
fn viewed(stage: &Stage, network: &str) -> (RunningProgram, [String; 2]) {
    let options = format!("--control {} --view={ADDRESS}", stage.socket());
    let mut command = stage.command(network, &options);
    let log = stage.dir.file("stderr");
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let running = RunningProgram::start(&stage.namespace, &mut command);
    eventually("no tokens", || read(&log).matches("#token=").count() == 2);
    let text = read(&log);
    let tokens = text.lines().filter_map(|line| line.split("#token=").nth(1));
    let tokens: Vec<String> = tokens.map(str::to_owned).collect();
    (running, tokens.try_into().expect("two tokens"))
}

/// Requests a page of the view with these headers.
fn page(stage: &Stage, path: &str, headers: &[&str]) -> Answer {
    let text = request(&format!("GET {path}"), headers, "");
    ask_tcp(&stage.namespace, ADDRESS, &text)
}

impl Stage {
    /// Waits until a direction's history has samples.
    fn wait_for_samples(&self, direction: &str) {
        let path = format!("/v1/history/{direction}");
        eventually("no samples", || {
            list(&self.get(&path)["elapsed_s"]).len() >= 3
        });
    }
}

#[test]
fn the_page_needs_no_token_and_everything_else_does() {
    let Some(stage) = Stage::new() else { return };
    let (_running, [full, read]) = viewed(&stage, NETWORK);
    assert_ne!(full, read);
    let host = format!("Host: {ADDRESS}");
    let html = page(&stage, "/", &[&host]);
    assert_eq!(html.status, 200, "{html:?}");
    assert_eq!(
        html.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = html.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'self'"), "{policy}");
    // Requests with a name that resolves to this host (DNS rebinding), and from a page of another
    // origin.
    let origin = "Origin: http://evil.example";
    for headers in [&["Host: evil.example"][..], &[&host, origin]] {
        assert_eq!(page(&stage, "/", headers).status, 403, "{headers:?}");
    }
    for path in [
        "/v1",
        "/v1/table",
        "/v1/fidelity",
        "/v1/models",
        "/assets/x",
    ] {
        assert_eq!(page(&stage, path, &[&host]).status, 401, "{path}");
    }
    let change = json!({ "delay": "9ms" }).to_string();
    for (token, may_change, status) in [(&full, true, 200), (&read, false, 403)] {
        let overview = stage.ask_tcp("GET /v1", token, "").json();
        assert_eq!(
            [&overview["may_change"], &overview["view"]],
            [may_change, true]
        );
        for (line, body) in [
            ("PATCH /v1/links/home.up", &*change),
            ("POST /v1/scenario/skip", ""),
        ] {
            let changed = stage.ask_tcp(line, token, body);
            assert_eq!(changed.status, status, "{changed:?}");
        }
    }
}

#[test]
fn a_run_without_a_page_records_what_clients_read() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    for path in ["/v1/table", "/v1/fidelity", "/v1/flows/home.up"] {
        let answer = stage.ask(&format!("GET {path}"), "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    // Recording starts when a client first reads the history.
    assert_eq!(stage.get("/v1/history/home.up")["elapsed_s"], json!([]));
    stage.wait_for_samples("home.up");
    assert_eq!(stage.get("/v1")["view"], false);
    assert_eq!(stage.ask("GET /", "").status, 404);
}

#[test]
fn the_table_sorts_selects_and_pages() {
    let Some(stage) = Stage::new() else { return };
    let network = NETWORK.replace("count = 3", "count = 200");
    let (_running, _) = viewed(&stage, &network);
    for (query, fitting, expected) in [
        ("limit=3", 403, "adsl1.down adsl1.up adsl10.down"),
        ("limit=3&order=desc", 403, "radio/1 home.up home.down"),
        ("match=adsl*.up&limit=2&offset=199", 200, "adsl99.up"),
        // A name without a direction matches both directions.
        ("match=home&sort=drops&order=desc", 2, "home.down home.up"),
    ] {
        let page = stage.get(&format!("/v1/table?{query}"));
        assert_eq!(
            [&page["directions"], &page["fitting"]],
            [403, fitting],
            "{query}"
        );
        let names = list(&page["rows"])
            .iter()
            .filter_map(|row| row["name"].as_str());
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{query}");
    }
    for wrong in ["sort=colour", "limit=0", "limit=501", "order=up"] {
        let answer = stage.ask(&format!("GET /v1/table?{wrong}"), "");
        assert_eq!(answer.status, 400, "{wrong}");
    }
    // In a large network, only the directions that clients read are recorded.
    let recorded = stage.get("/v1/history/adsl7.up");
    assert_eq!(recorded["elapsed_s"], json!([]), "{recorded}");
    stage.wait_for_samples("adsl7.up");
    for path in ["adsl7", "stream?directions=adsl7.up,nowhere"] {
        let answer = stage.ask(&format!("GET /v1/history/{path}"), "");
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[test]
fn an_event_of_the_scenario_is_skipped_to() {
    let Some(stage) = Stage::new() else { return };
    let (_running, _) = viewed(&stage, NETWORK);
    let event = json!({ "at_ns": 500_000_000_000u64, "change": { "off": ["home"] } });
    assert_eq!(stage.get("/v1/scenario")["events"], json!([event]));
    let skip = || stage.ask("POST /v1/scenario/skip", "").json()["at_ns"].clone();
    let at = count(&skip());
    assert!(at < 400_000_000_000, "{at}");
    let is_down = || stage.get("/v1/links/home")["up"]["state"] == "off";
    eventually("the link is not off", is_down);
    let changes = stage.get("/v1/changes");
    assert_eq!(changes["changes"][0]["at_ns"], at, "{changes}");
    assert_eq!(stage.get("/v1/scenario")["events"], json!([]));
    assert_eq!(skip(), Value::Null);
}

#[test]
fn an_address_in_use_is_refused() {
    let Some(stage) = Stage::new() else { return };
    let (_running, _) = viewed(&stage, NETWORK);
    stage
        .refuses(&format!("--view={ADDRESS}"), ADDRESS)
        .exits(1);
}
