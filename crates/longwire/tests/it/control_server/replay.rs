//! The read-only control API and view of `replay` and `generate`.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::client::ask;
use crate::common::longwire;
use crate::common::process::{RunningProgram, eventually};
use longwire_testbed::support::Folder;

/// Frames of the trace: 60 s of traffic, for which no test waits.
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
        let trace = dir.file("trace.pcap");
        let mut arguments: Vec<&str> = arguments.split(' ').collect();
        if let Some(place) = arguments.iter().position(|word| *word == "TRACE") {
            let (to, count) = (format!("pcap:{trace}"), FRAMES.to_string());
            let made = format!("generate -q --rate {RATE}pps --sizes {LEN} --count {count} --to");
            let made: Vec<&str> = made.split(' ').chain([to.as_str()]).collect();
            assert_eq!(longwire(&made).code, 0);
            arguments[place] = &trace;
        }
        let socket = dir.file("control.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command
            .args(&arguments)
            .args(["--control", &socket, "--view", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = RunningProgram::of(command.spawn().expect("it starts"));
        let replay = Replay { dir, running };
        // The socket exists shortly before it accepts connections.
        eventually("it does not listen", || {
            UnixStream::connect(replay.socket()).is_ok()
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

/// The page requests `out.up`, as for any link; both names have the same samples.
#[test]
fn the_history_of_an_output_has_the_name_of_a_direction_too() {
    let replay = Replay::start("replay TRACE --to null --link-rate 10mbit");
    let samples = |replay: &Replay, name: &str| {
        let columns = replay.get(&format!("/v1/history/{name}"));
        column(&columns, "elapsed_s")
    };
    eventually("no samples", || samples(&replay, "out.up").len() >= 3);
    let out = samples(&replay, "out");
    assert!(samples(&replay, "out.up").starts_with(&out), "{out:?}");
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

fn column(columns: &Value, name: &str) -> Vec<f64> {
    let values = columns[name].as_array().expect("a column").iter();
    values.filter_map(Value::as_f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Asserts the samples of the link's last two seconds.
fn assert_history(columns: &Value) {
    let carried = column(columns, "bits_in_per_s");
    let bits = 8.0 * LEN * RATE;
    // Single periods depend on the sampler; their total follows the clock.
    let carried = mean(&carried[carried.len().saturating_sub(20)..]);
    assert!((carried / bits - 1.0).abs() < 0.1, "{columns}");
    assert!(
        column(columns, "rate_bits_per_s")
            .iter()
            .all(|rate| *rate == 1e6)
    );
    // 1.6 ms of serialisation, and 20 ms of delay.
    let delays = column(columns, "delay_p50_us");
    assert!(
        !delays.is_empty()
            && delays
                .iter()
                .all(|delay| (delay / 21_600.0 - 1.0).abs() < 0.01)
    );
    assert!(columns["drops_per_s"]["loss"].is_array(), "{columns}");
}

/// Asserts progress, fidelity, ports and the table.
fn assert_state(replay: &Replay) {
    let overview = replay.get("/v1");
    assert_eq!(
        (&overview["may_change"], &overview["view"]),
        (&json!(false), &json!(true))
    );
    let progress = number(&overview["replay"]["sent"]);
    let expected = number(&overview["elapsed_s"]) * RATE / FRAMES as f64;
    // Frames dropped by the link are not awaited.
    assert!(progress > 0.0 && progress < expected + 0.11, "{overview}");
    let fidelity = replay.get("/v1/fidelity");
    assert!(
        !fidelity["histogram"]
            .as_array()
            .expect("classes")
            .is_empty(),
        "{fidelity}"
    );
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
    // The whole trace is read at once, but counts frame by frame.
    eventually("it is not read", || {
        replay.get("/v1")["replay"]["inputs"][0]["read"] == 1.0
    });
    eventually("no time passes", || {
        number(&replay.get("/v1")["elapsed_s"]) > 3.0
    });
    let before = number(&replay.get("/v1")["elapsed_s"]);
    let stats = replay.get("/v1/stats");
    let after = number(&replay.get("/v1")["elapsed_s"]);
    let totals = &stats["totals"];
    let offered = number(&totals["packets_in"]);
    // An entry of the log is 2 ms, and so is the gap between frames.
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

    assert_history(&replay.get("/v1/history/out"));
    assert_state(&replay);

    replay.running.signal(nix::sys::signal::Signal::SIGINT);
    let Replay { running, dir } = replay;
    let ended = running.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    let report = ended.json();
    assert_eq!(report["links"][0]["packets_in"], FRAMES, "all were read");
    assert!(number(&report["links"][0]["packets_out"]) >= sent);
    assert!(!std::path::Path::new(&dir.file("control.sock")).exists());
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
        let error = answer.json()["error"]
            .as_str()
            .expect("a reason")
            .to_owned();
        assert!(error.starts_with("a replay cannot be changed"), "{error}");
    }
    let flows = ask(&replay.socket(), "GET /v1/flows/out", "");
    assert_eq!(flows.status, 409, "{flows:?}");
    assert_eq!(
        replay.get("/v1/links/out")["up"]["options"]["delay"],
        "20ms"
    );
    assert_eq!(replay.get("/v1/changes")["changes"], json!([]));
}

#[test]
fn generated_traffic_is_shown_too_and_what_has_no_one_run_is_not() {
    let replay = Replay::start("generate --rate 1kpps --time 60s --to null");
    eventually("nothing leaves", || {
        number(&replay.get("/v1/stats")["totals"]["packets_out"]) > 100.0
    });
    let overview = replay.get("/v1");
    assert!(number(&overview["replay"]["sent"]) < 1.0, "{overview}");
    assert_eq!(overview["may_change"], false);
    drop(replay);
    let dir = Folder::new();
    for more in [["--to", "pcap:OUT", "--view"], ["--to", "null", "--view"]] {
        let out = more[1].replace("OUT", &dir.file("out.pcap"));
        let mut arguments = vec!["generate", "--rate", "1kpps", "--time", "1s"];
        arguments.extend([more[0], &out, more[2]]);
        if out == "null" {
            arguments.extend(["--receive", "null", "--profile", "rfc2544"]);
        }
        let refused = longwire(&arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("--view"), "{refused:?}");
    }
}
