//! The read-only control API and view of `replay` and `generate`.

use std::os::unix::net::UnixStream;
use std::path::Path;

use longwire_testbed::support::Folder;
use serde_json::{Value, json};

use super::client::ask;
use crate::common::program::{RunningProgram, eventually, longwire, start};
use crate::common::{assert_refused, count, list, number};

/// Number of frames in the trace, which lasts 60 s; no test waits for its end.
const FRAMES: u64 = 30_000;
const RATE: f64 = 500.0;
const LEN: f64 = 200.0;

/// A replay or a generator with a control API.
struct Replay {
    dir: Folder,
    running: RunningProgram,
}

impl Replay {
    /// Starts a command with these arguments; `TRACE` is a capture of [`FRAMES`] frames.
    fn start(arguments: &str) -> Replay {
        let dir = Folder::new();
        let (trace, socket) = (dir.file("trace.pcap"), dir.file("control.sock"));
        if arguments.contains("TRACE") {
            let pace = format!("--rate {RATE}pps --sizes {LEN} --count {FRAMES}");
            longwire(format!("generate -q {pace} --to pcap:{trace}")).well();
        }
        let arguments = arguments.replace("TRACE", &trace);
        let control = format!("--control {socket} --view --json");
        let running = start(format!("longwire {arguments} {control}"));
        let replay = Replay { dir, running };
        // The socket file exists shortly before it accepts connections.
        eventually("it does not listen", || {
            UnixStream::connect(&socket).is_ok()
        });
        replay
    }

    fn socket(&self) -> String {
        self.dir.file("control.sock")
    }

    fn get(&self, path: &str) -> Value {
        let answer = ask(&self.socket(), &format!("GET {path}"), "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }
}

fn column(columns: &Value, name: &str) -> Vec<f64> {
    list(&columns[name])
        .iter()
        .filter_map(Value::as_f64)
        .collect()
}

/// Checks the samples of the link's last two seconds.
fn assert_history(columns: &Value) {
    let carried = column(columns, "bits_in_per_s");
    let bits = 8.0 * LEN * RATE;
    // Periods vary in length with the sampler's wake-ups, so compare the mean over the last 20.
    let ends = column(columns, "elapsed_s");
    let first = carried.len().saturating_sub(20).max(1);
    let periods = (first..carried.len()).map(|at| (carried[at], ends[at] - ends[at - 1]));
    let (sent, time) = periods.fold((0.0, 0.0), |(sent, time), (rate, period)| {
        (sent + rate * period, time + period)
    });
    let carried = sent / time;
    assert!((carried / bits - 1.0).abs() < 0.1, "{columns}");
    let rates = column(columns, "rate_bits_per_s");
    assert!(rates.iter().all(|rate| *rate == 1e6), "{rates:?}");
    // Serialisation takes 1.6 ms, and the delay is 20 ms.
    let delays = column(columns, "delay_p50_us");
    let right = delays
        .iter()
        .all(|delay| (delay / 21_600.0 - 1.0).abs() < 0.01);
    assert!(!delays.is_empty() && right, "{delays:?}");
    assert!(columns["drops_per_s"]["loss"].is_array(), "{columns}");
}

/// Checks progress, fidelity, ports and the table.
fn assert_state(replay: &Replay) {
    let overview = replay.get("/v1");
    assert_eq!([&overview["may_change"], &overview["view"]], [false, true]);
    let progress = number(&overview["replay"]["sent"]);
    let expected = number(&overview["elapsed_s"]) * RATE / FRAMES as f64;
    // Frames dropped by the link count as sent immediately.
    assert!(progress > 0.0 && progress < expected + 0.11, "{overview}");
    let fidelity = replay.get("/v1/fidelity");
    assert!(!list(&fidelity["histogram"]).is_empty(), "{fidelity}");
    let verdict = fidelity["verdict"].as_str().expect("a sentence");
    assert!(verdict.contains("faithful"), "{verdict}");
    let port = &replay.get("/v1/ports")["ports"][0];
    assert_eq!(
        (&port["name"], &port["packets_in"]),
        (&json!("out"), &json!(0))
    );
    assert_eq!(replay.get("/v1/table")["rows"][0]["name"], "out");
}

#[test]
fn a_replay_shows_what_it_sends_as_of_now() {
    let replay = Replay::start("replay TRACE --to null --link-rate 1mbit --delay 20ms --loss 10%");
    // The trace is read completely at the start, but frames are counted at their times.
    let read = || replay.get("/v1")["replay"]["inputs"][0]["read"] == 1.0;
    eventually("it is not read", read);
    let elapsed = || number(&replay.get("/v1")["elapsed_s"]);
    eventually("no time passes", || elapsed() > 3.0);
    let before = elapsed();
    let stats = replay.get("/v1/stats");
    let after = elapsed();
    let totals = &stats["totals"];
    let offered = number(&totals["packets_in"]);
    // The count may lag by log entries, each of which covers 2 ms and thus one frame.
    let expected = RATE * before - 4.0..=RATE * after + 1.0;
    assert!(expected.contains(&offered), "{offered}: {expected:?}");
    let lost = number(&totals["drops"]["loss"]);
    // 5 standard deviations of a binomial distribution.
    let deviation = 5.0 * (offered * 0.1 * 0.9).sqrt();
    assert!(
        (lost - 0.1 * offered).abs() <= deviation,
        "{lost} of {offered}"
    );
    let sent = number(&totals["packets_out"]);
    assert!(sent > 0.0 && sent <= offered - lost, "{stats}");

    let history = replay.get("/v1/history/out");
    assert_history(&history);
    // The live view requests `out.up`, as for any link.
    let view = column(&replay.get("/v1/history/out.up"), "elapsed_s");
    let out = column(&history, "elapsed_s");
    assert!(out.len() >= 3 && view.starts_with(&out), "{out:?}");
    assert_state(&replay);

    let Replay { running, dir } = replay;
    let report = running.stop().json();
    assert_eq!(report["links"][0]["packets_in"], FRAMES, "all were read");
    assert!(number(&report["links"][0]["packets_out"]) >= sent);
    assert!(!Path::new(&dir.file("control.sock")).exists());
}

#[test]
fn a_replay_refuses_changes_with_a_reason() {
    let replay = Replay::start("replay TRACE --to null --delay 20ms");
    let options = json!({ "delay": "9ms" }).to_string();
    let change = json!({ "set": { "out": { "delay": "9ms" } } }).to_string();
    for (line, body) in [
        ("PATCH /v1/links/out", options.as_str()),
        ("PATCH /v1/links/out?check=true", &options),
        ("POST /v1/changes", &change),
        ("POST /v1/links", "{}"),
        ("DELETE /v1/links/out", ""),
        ("POST /v1/scenario/skip", ""),
    ] {
        let answer = ask(&replay.socket(), line, body);
        assert_eq!(answer.status, 409, "{line}: {answer:?}");
        let error = answer.json()["error"].to_string();
        assert!(error.starts_with("\"a replay cannot be changed"), "{error}");
    }
    let flows = ask(&replay.socket(), "GET /v1/flows/out", "");
    assert_eq!(flows.status, 409, "{flows:?}");
    let link = replay.get("/v1/links/out");
    assert_eq!(link["up"]["options"]["delay"], "20ms");
    assert_eq!(replay.get("/v1/changes")["changes"], json!([]));
}

#[test]
fn generated_traffic_has_a_view_unless_it_is_no_single_live_run() {
    let replay = Replay::start("generate --rate 1kpps --time 60s --to null");
    eventually("nothing leaves", || {
        count(&replay.get("/v1/stats")["totals"]["packets_out"]) > 100
    });
    let overview = replay.get("/v1");
    assert!(number(&overview["replay"]["sent"]) < 1.0, "{overview}");
    assert_eq!(overview["may_change"], false);
    let out = replay.dir.file("out.pcap");
    let generate = "generate --rate 1kpps --time 1s --view";
    assert_refused(&format!(
        "
        {generate} --to pcap:{out} | 2 | --view
        {generate} --to null --receive null --profile rfc2544 | 2 | --view
        "
    ));
}
