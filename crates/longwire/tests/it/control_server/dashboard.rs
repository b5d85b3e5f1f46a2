//! The Grafana dashboard: runs every query against a real Prometheus that scrapes a run with
//! traffic.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use longwire_testbed::support::{have, within};
use serde_json::Value;

use super::Stage;
use crate::common::program::{RunningProgram, background, start_in, wait_for};
use crate::common::write;

const DASHBOARD: &str = include_str!("../../../../../packaging/grafana/longwire.json");
const METRICS: &str = include_str!("../../../../../docs/metrics.md");

const RUN: &str = "127.0.0.1:9471";
const PROMETHEUS: &str = "127.0.0.1:9472";

/// Returns the queries of the dashboard's panels with their titles, and the queries of its
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

/// Replaces Grafana's variables as Grafana does if all values are selected.
fn with_values(query: &str) -> String {
    let query = query
        .replace("$__rate_interval", "6s")
        .replace("$__range", "20s");
    let names = ["$instance", "$link", "$direction", "$port"];
    names
        .iter()
        .fold(query, |query, name| query.replace(name, ".*"))
}

/// Queries Prometheus; returns the series.
fn ask(stage: &Stage, path: &str, (name, value): (&str, &str)) -> Option<Vec<Value>> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--get", &format!("http://{PROMETHEUS}{path}")]);
    command.args(["--data-urlencode", &format!("{name}={value}")]);
    let output = within(&stage.namespace, || command.output());
    let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    assert_eq!(answer["status"], "success", "{value}: {answer}");
    let data = &answer["data"];
    data["result"].as_array().or(data.as_array()).cloned()
}

/// Starts a run that drops, marks, corrupts and duplicates frames of real traffic.
fn start_run(stage: &Stage) -> RunningProgram {
    let read = stage.token_file("read", "0123456789abcdef-read");
    let full = stage.token_file("full", "0123456789abcdef-full");
    let link = "--rate 4mbit --delay 5ms --queue codel:ecn=true --loss 2% --corrupt 1% \
                --duplicate 1% --metrics-links each";
    let tokens = format!("--control-token-file {full} --control-read-token-file {read}");
    let ping = "ping -q -s 1200 -i 0.002 far";
    let line = format!("longwire exec {link} --control tcp:{RUN} {tokens} -- {ping}");
    start_in(&stage.namespace, line).ready("control:")
}

/// Starts a Prometheus that scrapes the run; `None` if it is not installed.
fn start_prometheus(stage: &Stage) -> Option<RunningProgram> {
    if !have("prometheus") {
        return None;
    }
    let [token, file, data] = ["read", "prometheus.yml", "tsdb"].map(|name| stage.dir.file(name));
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: longwire\n    \
         authorization: {{ credentials_file: {token} }}\n    \
         static_configs: [{{ targets: [\"{RUN}\"] }}]\n"
    );
    write(&file, config);
    let files = format!("--config.file={file} --storage.tsdb.path={data}");
    let line = format!("prometheus {files} --web.listen-address={PROMETHEUS}");
    Some(background(&stage.namespace, &line))
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
    let whole = panels.len() > 20 && variables.len() == 4;
    assert!(whole, "{panels:?} {variables:?}");
    // A quantile of an empty set is NaN.
    let is_number = |series: &Value| {
        let value = series["value"][1].as_str();
        value
            .and_then(|text| text.parse().ok())
            .is_some_and(f64::is_finite)
    };
    let query = |query: &str| ask(&stage, "/api/v1/query", ("query", query));
    let mut without = panels;
    wait_for("no data", || {
        without.retain(|(_, panel)| {
            let found = query(&with_values(panel));
            !found.is_some_and(|series| series.iter().any(is_number))
        });
        std::thread::sleep(Duration::from_millis(500));
        if without.is_empty() {
            Ok(())
        } else {
            Err(without.clone())
        }
    });
    // A panel that shows 0 passes the check above, so metrics of events that certainly occur must
    // not be 0. Refused frames need not occur; their panel shows 0 if the series is absent.
    for metric in [
        "longwire_link_delivered_bytes_total",
        "longwire_link_dropped_frames_total{reason=\"loss\"}",
        "longwire_link_corrupted_frames_total",
        "longwire_link_duplicated_frames_total",
    ] {
        let found = query(&format!("sum({metric})")).expect("an answer");
        assert_ne!(found[0]["value"][1], "0", "{metric}");
    }
    for variable in variables {
        let inside = variable
            .strip_prefix("label_values(")
            .expect("a list of values");
        let (series, label) = inside.rsplit_once(", ").expect("a metric and a label");
        let path = format!("/api/v1/label/{}/values", label.trim_end_matches(')'));
        let found = ask(&stage, &path, ("match[]", &with_values(series)));
        assert!(found.is_some_and(|values| !values.is_empty()), "{variable}");
    }
}

/// The dashboard contains exactly the documented metrics of a run.
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
    let documented = rows.filter_map(|line| line.split('`').nth(1));
    let documented: BTreeSet<String> = documented.map(str::to_owned).collect();
    let unknown: Vec<&String> = used.difference(&documented).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let absent = documented.difference(&used);
    // The dashboard omits the metrics of runs on several hosts.
    let absent = absent.filter(|name| !name.starts_with("longwire_host_"));
    let absent: Vec<&String> = absent.collect();
    // Exceptions: the version, frame counts that duplicate byte counts, and rare switch events.
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
