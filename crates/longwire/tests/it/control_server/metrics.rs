//! Metrics in Prometheus format, validated by `promtool`.

use std::io::Write;
use std::process::Stdio;

use super::client::{Answer, connect, exchange, request};
use super::{NETWORK, Stage};
use crate::common::have;
use crate::common::program::{Ran, RunningProgram, piped};

/// Returns the output of `promtool check metrics` for a text.
fn promtool(text: &str) -> Ran {
    let mut command = piped("promtool check metrics");
    let mut running = RunningProgram::spawn(command.stdin(Stdio::piped()));
    let mut input = running.child().stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    running.end()
}

fn metrics(stage: &Stage, query: &str, accept: &[&str]) -> Answer {
    let accept: Vec<String> = accept
        .iter()
        .map(|kind| format!("Accept: {kind}"))
        .collect();
    let mut headers = vec!["Host: x"];
    headers.extend(accept.iter().map(String::as_str));
    let line = format!("GET /metrics{query}");
    exchange(connect(&stage.socket()), &request(&line, &headers, ""))
}

#[test]
fn promtool_finds_nothing_wrong() {
    let Some(stage) = Stage::new().filter(|_| have("promtool")) else {
        return;
    };
    let _running = stage.start_at_socket(NETWORK);
    for query in ["", "?links=each", "?links=each&match=radio*"] {
        let answer = metrics(&stage, query, &[]);
        let plain = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(answer.header("content-type"), Some(plain));
        let said = promtool(&answer.body).well();
        assert_eq!((&*said.stdout, &*said.stderr), ("", ""), "{}", answer.body);
    }
    // Check that promtool would detect an error.
    let said = promtool("# TYPE a counter\na 1\n");
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn each_format_is_had_by_asking_for_it() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // The `Accept` header of Prometheus 2.
    let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    for accept in [
        vec![scraper],
        vec!["text/plain;q=0.2", "application/openmetrics-text"],
    ] {
        let answer = metrics(&stage, "", &accept);
        assert_eq!(answer.header("content-type"), Some(open), "{accept:?}");
        let body = answer.body;
        let is_open = body.ends_with("# EOF\n") && body.contains("# TYPE longwire_build info\n");
        assert!(is_open, "{body}");
    }
    let plain = metrics(&stage, "", &["*/*"]);
    assert!(!plain.body.contains("# EOF"), "{}", plain.body);
    let counted = "# TYPE longwire_port_received_frames_total counter\n\
                   longwire_port_received_frames_total{port=\"left\"} ";
    assert!(plain.body.contains(counted), "{}", plain.body);
}
