//! Files named by changes: which files are read, and which of their contents are reported. No file
//! blocks the control API or the end of the run.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use longwire_testbed::support::FileOption;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::client::ask;
use super::{NETWORK, Stage, TOKEN};
use crate::common::write;

/// Contents of a file that is not a trace, such as a password file.
const SECRET: &str = "root:$y$j9T$secret$hash:20000";

/// Some of the models that accept a file, with their options.
const FILE_MODELS: [(&str, &str); 7] = [
    ("rate", "trace"),
    ("rate", "mahimahi"),
    ("delay", "trace"),
    ("delay", "table"),
    ("delay", "samples"),
    ("loss", "plugin"),
    ("preset", "errant"),
];

/// Returns one change per option that accepts a file, naming this file.
fn naming(stage: &Stage, path: &str) -> Vec<(&'static str, String)> {
    let link = |option: &str, value: &str| {
        let body = json!({ "name": "n", "match": "src=10.9.0.1", option: value });
        ("POST /v1/links", body.to_string())
    };
    let set = FileOption::all().into_iter().map(|of| {
        let model = of.text(path, stage.dir.path());
        match of.option {
            "preset" => link("preset", &model),
            option => ("PATCH /v1/links/home", json!({ option: model }).to_string()),
        }
    });
    let set: Vec<_> = set.collect();
    for (option, model) in FILE_MODELS {
        let is_named = |(_, body): &(&str, String)| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            let text = body[option].as_str().unwrap_or_default();
            text.starts_with(&format!("{model}:")) && text.contains(path)
        };
        assert!(set.iter().any(is_named), "no {option} {model}: {set:?}");
    }
    let table = ("POST /v1/links", json!({ "csv": path }).to_string());
    set.into_iter()
        .chain([link("delay", &format!("samples:{path}")), table])
        .collect()
}

#[test]
fn a_fifo_holds_up_neither_the_api_nor_the_end() {
    let Some(stage) = Stage::new() else { return };
    let running = stage.start_at_socket(NETWORK);
    let fifo = stage.dir.file("fifo");
    mkfifo(fifo.as_str(), Mode::S_IRWXU).expect("a FIFO");
    let start = |(line, body): (&'static str, String)| {
        let socket = stage.socket();
        std::thread::spawn(move || (ask(&socket, line, &body), body))
    };
    let waiting: Vec<_> = naming(&stage, &fifo).into_iter().map(start).collect();
    // The server still answers other requests.
    let (sender, answers) = channel();
    let socket = stage.socket();
    std::thread::spawn(move || sender.send(ask(&socket, "GET /v1/links", "")));
    let read = answers.recv_timeout(Duration::from_secs(5));
    assert_eq!(read.expect("an answer in time").status, 200);
    for thread in waiting {
        let (answer, body) = thread.join().expect("an answer");
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        let error = answer.json()["error"].to_string();
        assert!(error.contains("regular file"), "{body}: {error}");
    }
    let began = Instant::now();
    running.stop();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn contents_of_files_are_not_in_responses() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    let secret = stage.dir.file("secret");
    // Test files with and without a final newline, because the last line takes a different code
    // path.
    for text in [
        SECRET.to_owned(),
        format!("{SECRET}\n{SECRET}\n"),
        format!("time,{SECRET}\n1,2\n"),
    ] {
        write(&secret, text);
        for (line, body) in naming(&stage, &secret) {
            let answer = stage.ask(line, &body);
            assert_eq!(answer.status, 422, "{body}: {answer:?}");
            let body_said = answer.body.replace(&secret, "FILE");
            for word in ["secret$hash", "root:", "j9T", "20000"] {
                assert!(!body_said.contains(word), "{body}: {body_said}");
            }
        }
    }
    let changes = stage.ask("GET /v1/changes", "");
    assert!(!changes.body.contains("secret$hash"), "{changes:?}");
}

#[test]
fn over_tcp_no_file_is_read_unless_a_folder_is_given() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.dir.file("delays");
    write(&file, "5ms\n6ms\n");
    let _running = stage.start_on_tcp(NETWORK, "");
    // The answer does not reveal whether a file exists.
    let missing = r#"{"delay": "samples:/no/such/file"}"#.to_owned();
    let named = naming(&stage, &file).into_iter();
    for (line, body) in named.chain([("PATCH /v1/links/home", missing)]) {
        let answer = stage.ask_tcp(line, TOKEN, &body);
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        assert!(
            answer.body.contains("--control-files"),
            "{body}: {answer:?}"
        );
    }
    let answer = stage.ask_tcp("PATCH /v1/links/home", TOKEN, r#"{"delay": "7ms"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Tests in longwire-capture cover paths that lead out of a folder.
#[test]
fn with_a_folder_only_files_in_it_are_read() {
    let Some(stage) = Stage::new() else { return };
    let [folder, outside] = ["files", "outside"].map(|name| stage.dir.file(name));
    let within = format!("{folder}/deep/delays");
    fs::create_dir_all(format!("{folder}/deep")).expect("a folder");
    for file in [&outside, &within] {
        write(file, "5ms\n6ms\n");
    }
    symlink("deep/delays", format!("{folder}/inner")).expect("a link");
    symlink("../outside", format!("{folder}/escape")).expect("a link");
    let _running = stage.start_on_tcp(NETWORK, &format!("--control-files {folder}"));
    for (name, status) in [
        ("inner", 200),
        (&within, 200),
        ("escape", 422),
        (&outside, 422),
        ("none", 422),
    ] {
        let body = format!(r#"{{"delay": "samples:{name}"}}"#);
        let over_tcp = stage.ask_tcp("PATCH /v1/links/home", TOKEN, &body);
        let over_socket = stage.ask("PATCH /v1/links/home", &body);
        for answer in [over_tcp, over_socket] {
            assert_eq!(answer.status, status, "{name}: {answer:?}");
        }
    }
}

#[test]
fn links_of_a_template_have_its_files_over_tcp_too() {
    let Some(stage) = Stage::new() else { return };
    let file = stage.dir.file("delays");
    write(&file, "5ms\n6ms\n");
    let network = format!("{NETWORK}\n[templates.slow]\ndelay = \"samples:{file}\"\n");
    let _running = stage.start_on_tcp(&network, "");
    let body = r#"{"name": "n", "match": "src=10.9.0.1", "template": "slow"}"#;
    let answer = stage.ask_tcp("POST /v1/links", TOKEN, body);
    assert_eq!(answer.status, 200, "{answer:?}");
}
