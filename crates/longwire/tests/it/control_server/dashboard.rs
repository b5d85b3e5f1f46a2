//! The Grafana dashboard: runs every query against a real Prometheus that scrapes a run
//! with real traffic.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Stage;
use crate::common::process::{RunningProgram, TIMEOUT};
use crate::common::{Ran, write};
use longwire_testbed::support::skip;

const DASHBOARD: &str = include_str!("../../../../../packaging/grafana/longwire.json");
const METRICS: &str = include_str!("../../../../../docs/metrics.md");

const RUN: &str = "127.0.0.1:9471";
const PROMETHEUS: &str = "127.0.0.1:9472";

/// Returns the queries of the dashboard's panels, with their titles, and those of its
/// variables.
fn queries(dashboard: &Value) -> (Vec<(String, String)>, Vec<String>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let panels = list(&dashboard["panels"]);
    let of_panels = panels.iter().flat_map(|panel| {
        let targets = list(&panel["targets"]).into_iter();
        let title = text(&panel["title"]);
        targets.map(move |target| (title.clone(), text(&target["expr"])))
    });
    let variables = list(&dashboard["templating"]["list"]).into_iter();
    let of_variables = variables.filter(|variable| variable["type"] == "query");
    (
        of_panels.collect(),
        of_variables.map(|of| text(&of["definition"])).collect(),
    )
}

/// Replaces Grafana's variables, as Grafana does with all values selected.
fn with_values(query: &str) -> String {
    let query = query
        .replace("$__rate_interval", "6s")
        .replace("$__range", "20s");
    let names = ["$instance", "$link", "$direction", "$port"];
    names
        .iter()
        .fold(query, |query, name| query.replace(name, ".*"))
}

/// Queries Prometheus; returns the list of series.
fn ask(stage: &Stage, path: &str, parameters: &[(&str, &str)]) -> Option<Vec<Value>> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--get", &format!("http://{PROMETHEUS}{path}")]);
    for (name, value) in parameters {
        command.args(["--data-urlencode", &format!("{name}={value}")]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ran { stdout, .. } = RunningProgram::start(&stage.namespace, &mut command).end();
    let answer: Value = serde_json::from_str(&stdout).ok()?;
    assert_eq!(answer["status"], "success", "{parameters:?}: {stdout}");
    let data = &answer["data"];
    data["result"].as_array().or(data.as_array()).cloned()
}

/// Starts a run that drops, marks, corrupts and duplicates frames of real traffic.
fn start_run(stage: &Stage) -> RunningProgram {
    let token = stage.token_file("read", "0123456789abcdef-read");
    let full = stage.token_file("full", "0123456789abcdef-full");
    let mut run = Command::new(env!("CARGO_BIN_EXE_longwire"));
    run.args(["exec", "--rate", "4mbit", "--delay", "5ms"]);
    run.args([
        "--queue",
        "codel:ecn=true",
        "--loss",
        "2%",
        "--corrupt",
        "1%",
    ]);
    run.args(["--duplicate", "1%", "--metrics-links", "each"]);
    run.args([
        "--control",
        &format!("tcp:{RUN}"),
        "--control-token-file",
        &full,
    ]);
    run.args([
        "--control-read-token-file",
        &token,
        "--",
        "ping",
        "-q",
        "-s",
        "1200",
    ]);
    run.args(["-i", "0.002", "far"]);
    run.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = RunningProgram::start(&stage.namespace, &mut run);
    crate::common::process::wait_for_word(&mut running, "control:");
    running
}

/// Starts a Prometheus that scrapes the run; `None` where it is not installed.
fn start_prometheus(stage: &Stage) -> Option<RunningProgram> {
    let installed = Command::new("prometheus").arg("--version").output();
    if installed.is_err() {
        return skip("prometheus is not installed");
    }
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: longwire\n    \
         authorization: {{ credentials_file: {} }}\n    \
         static_configs: [{{ targets: [\"{RUN}\"] }}]\n",
        stage.dir.file("read")
    );
    let file = stage.dir.file("prometheus.yml");
    write(&file, config.as_bytes());
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={file}"));
    command.arg(format!("--storage.tsdb.path={}", stage.dir.file("tsdb")));
    command.arg(format!("--web.listen-address={PROMETHEUS}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Some(RunningProgram::start(&stage.namespace, &mut command))
}

#[test]
fn every_query_returns_data_of_a_real_run() {
    let Some(stage) = Stage::new() else { return };
    let _run = start_run(&stage);
    let Some(_prometheus) = start_prometheus(&stage) else {
        return;
    };
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let (panels, variables) = queries(&dashboard);
    assert!(
        panels.len() > 20 && variables.len() == 4,
        "{panels:?} {variables:?}"
    );
    let mut without: Vec<(String, String)> = panels;
    let start = Instant::now();
    // A quantile of an empty set is NaN.
    let is_number = |series: &Value| {
        let value = series["value"][1]
            .as_str()
            .and_then(|text| text.parse::<f64>().ok());
        value.is_some_and(f64::is_finite)
    };
    while !without.is_empty() {
        without.retain(|(_, query)| {
            let query = with_values(query);
            let found = ask(&stage, "/api/v1/query", &[("query", &query)]);
            !found.is_some_and(|series| series.iter().any(is_number))
        });
        assert!(start.elapsed() < TIMEOUT, "no data: {without:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
    // Figures of certain events are not 0. The switch refuses no frame, and the
    // dashboard shows 0 for the absent series.
    for query in [
        "sum(longwire_link_delivered_bytes_total)",
        "sum(longwire_link_dropped_frames_total{reason=\"loss\"})",
        "sum(longwire_link_corrupted_frames_total)",
        "sum(longwire_link_duplicated_frames_total)",
    ] {
        let found = ask(&stage, "/api/v1/query", &[("query", query)]).expect("an answer");
        assert_ne!(found[0]["value"][1], "0", "{query}");
    }
    for variable in variables {
        let inside = variable
            .strip_prefix("label_values(")
            .expect("a list of values");
        let (series, label) = inside.rsplit_once(", ").expect("a metric and a label");
        let path = format!("/api/v1/label/{}/values", label.trim_end_matches(')'));
        let found = ask(&stage, &path, &[("match[]", &with_values(series))]);
        assert!(found.is_some_and(|values| !values.is_empty()), "{variable}");
    }
}

/// Every metric of the dashboard is documented, and every documented figure of a run is
/// on the dashboard.
#[test]
fn the_dashboard_has_the_metrics_of_the_documentation() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let (panels, _) = queries(&dashboard);
    let names = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = words.filter(|word| word.starts_with("longwire_"));
        names
            .map(|name| name.trim_end_matches("_bucket").to_owned())
            .collect()
    };
    let used: BTreeSet<String> = panels.iter().flat_map(|(_, query)| names(query)).collect();
    let rows = METRICS
        .lines()
        .filter(|line| line.starts_with("| `longwire_"));
    let documented: BTreeSet<String> = rows
        .filter_map(|line| line.split('`').nth(1))
        .map(str::to_owned)
        .collect();
    let unknown: Vec<&String> = used.difference(&documented).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let absent = documented.difference(&used);
    // Most runs have a single host.
    let absent = absent.filter(|name| !name.starts_with("longwire_host_"));
    let absent: Vec<&String> = absent.collect();
    // The version, frame counts that duplicate byte counts, and rare events of
    // switches.
    let expected = [
        "longwire_build_info",
        "longwire_link_delivered_frames_total",
        "longwire_port_received_frames_total",
        "longwire_port_sent_frames_total",
        "longwire_switch_loop_signs_total",
        "longwire_switch_stations_learnt_total",
        "longwire_switch_stations_moved_total",
    ];
    assert_eq!(absent, expected);
}
