//! Metrics in Prometheus format, validated by its `promtool`.

use std::io::Write;
use std::process::{Command, Stdio};

use super::client::{Answer, connect, exchange, request};
use super::{NETWORK, Stage};
use crate::common::{Ran, ran};
use longwire_testbed::support::skip;

/// Returns the output of `promtool check metrics` for a text; `None` where it is not
/// installed.
fn promtool(text: &str) -> Option<Ran> {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        return skip("promtool is not installed");
    };
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    Some(ran(child.wait_with_output().expect("it ends")))
}

fn metrics(socket: &str, query: &str, accept: &[&str]) -> Answer {
    let accept: Vec<String> = accept
        .iter()
        .map(|kind| format!("Accept: {kind}"))
        .collect();
    let mut headers = vec!["Host: x"];
    headers.extend(accept.iter().map(String::as_str));
    let line = format!("GET /metrics{query}");
    exchange(connect(socket), &request(&line, &headers, ""))
}

#[test]
fn promtool_finds_nothing_wrong() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    for query in ["", "?links=each", "?links=each&match=radio*"] {
        let answer = metrics(&socket, query, &[]);
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
        let Some(said) = promtool(&answer.body) else {
            return;
        };
        assert_eq!(said.code, 0, "{said:?}\n{}", answer.body);
        assert_eq!(
            (said.stdout.as_str(), said.stderr.as_str()),
            ("", ""),
            "{}",
            answer.body
        );
    }
    // Checks that promtool detects errors.
    let said = promtool("# TYPE a counter\na 1\n").expect("it is there");
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn each_format_is_had_by_asking_for_it() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // The request header of Prometheus 2.
    let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    for accept in [
        vec![scraper],
        vec!["text/plain;q=0.2", "application/openmetrics-text"],
    ] {
        let answer = metrics(&socket, "", &accept);
        assert_eq!(answer.header("content-type"), Some(open), "{accept:?}");
        assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
        assert!(
            answer.body.contains("# TYPE longwire_build info\n"),
            "{}",
            answer.body
        );
    }
    let plain = metrics(&socket, "", &["*/*"]);
    assert!(!plain.body.contains("# EOF"), "{}", plain.body);
    let counted = "# TYPE longwire_port_received_frames_total counter\n\
                   longwire_port_received_frames_total{port=\"left\"} ";
    assert!(plain.body.contains(counted), "{}", plain.body);
}
