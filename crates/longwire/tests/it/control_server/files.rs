//! Files named by changes: which are read, which parts are reported; none blocks the
//! control API or the end of the run.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::client::{Answer, ask, ask_tcp, request};
use super::{NETWORK, Stage};
use crate::common::write;

/// Contents of a file that is not a trace, such as a password file.
const SECRET: &str = "root:$y$j9T$secret$hash:20000";

const TOKEN: &str = "0123456789abcdef-full";
const ADDRESS: &str = "127.0.0.1:9470";

/// Returns changes that name a file, one per option that accepts a file.
fn naming(path: &str) -> Vec<(&'static str, String)> {
    let set = |option: &str, value: String| {
        (
            "PATCH /v1/links/home",
            format!(r#"{{"{option}": "{value}"}}"#),
        )
    };
    let mut all = vec![
        set("rate", format!("trace:{path}")),
        set("rate", format!("mahimahi:{path}")),
        set("delay", format!("trace:{path}")),
        set("delay", format!("table:mean=20ms,stddev=1ms,file={path}")),
        set("delay", format!("samples:{path}")),
        set("loss", format!("plugin:{path}")),
    ];
    all.push((
        "POST /v1/links",
        format!(r#"{{"name": "n", "match": "src=10.9.0.1", "delay": "samples:{path}"}}"#),
    ));
    all.push(("POST /v1/links", format!(r#"{{"csv": "{path}"}}"#)));
    all.push((
        "POST /v1/links",
        format!(
            r#"{{"name": "n", "match": "src=10.9.0.1", "preset": "errant:file={path},country=se,operator=a"}}"#
        ),
    ));
    all
}

/// Returns the response, or fails if there is none within the limit.
fn within(limit: Duration, ask: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(ask());
    });
    answers.recv_timeout(limit).expect("an answer in time")
}

#[test]
fn a_fifo_holds_up_neither_the_api_nor_the_end() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let running = stage.start(NETWORK, &["--control", &socket]);
    let fifo = stage.dir.file("fifo");
    mkfifo(fifo.as_str(), Mode::S_IRWXU).expect("a FIFO");
    let mut waiting = Vec::new();
    for (line, body) in naming(&fifo) {
        let socket = socket.clone();
        waiting.push(std::thread::spawn(move || {
            (body.clone(), ask(&socket, line, &body))
        }));
    }
    // Other requests are answered meanwhile.
    let other = socket.clone();
    let read = within(Duration::from_secs(5), move || {
        ask(&other, "GET /v1/links", "")
    });
    assert_eq!(read.status, 200);
    for thread in waiting {
        let (body, answer) = thread.join().expect("an answer");
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        let error = answer.json()["error"].as_str().expect("why").to_owned();
        assert!(error.contains("regular file"), "{body}: {error}");
    }
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    assert_eq!(running.end().code, 0);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn contents_of_files_are_not_in_responses() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let secret = stage.dir.file("secret");
    // With and without a final newline: the last line takes another code path.
    for text in [
        SECRET.to_owned(),
        format!("{SECRET}\n{SECRET}\n"),
        format!("time,{SECRET}\n1,2\n"),
    ] {
        write(&secret, text.as_bytes());
        for (line, body) in naming(&secret) {
            let answer = ask(&socket, line, &body);
            assert_eq!(answer.status, 422, "{body}: {answer:?}");
            for word in ["secret$hash", "root:", "j9T", "20000"] {
                let body_said = answer.body.replace(&secret, "FILE");
                assert!(!body_said.contains(word), "{body}: {body_said}");
            }
        }
    }
    let changes = ask(&socket, "GET /v1/changes", "");
    assert!(!changes.body.contains("secret$hash"), "{changes:?}");
}

/// Sends a request over TCP with the token that permits changes.
fn ask_with_token(stage: &Stage, line: &str, body: &str) -> Answer {
    let headers = [
        format!("Host: {ADDRESS}"),
        format!("Authorization: Bearer {TOKEN}"),
    ];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    ask_tcp(&stage.namespace, ADDRESS, &request(line, &headers, body))
}

#[test]
fn over_tcp_no_file_is_read_unless_a_folder_is_given() {
    let Some(stage) = Stage::new() else { return };
    let token = stage.token_file("token", TOKEN);
    let tcp = format!("tcp:{ADDRESS}");
    let file = stage.dir.file("delays");
    write(&file, b"5ms\n6ms\n");
    let arguments = ["--control", &tcp, "--control-token-file", &token];
    let _running = stage.start(NETWORK, &arguments);
    for (line, body) in naming(&file) {
        let answer = ask_with_token(&stage, line, &body);
        assert_eq!(answer.status, 422, "{body}: {answer:?}");
        assert!(
            answer.body.contains("--control-files"),
            "{body}: {answer:?}"
        );
    }
    // A missing file gets the same answer.
    let body = r#"{"delay": "samples:/no/such/file"}"#;
    let answer = ask_with_token(&stage, "PATCH /v1/links/home", body);
    assert!(answer.body.contains("--control-files"), "{answer:?}");
    // Files given to the run itself may be used again.
    let answer = ask_with_token(&stage, "PATCH /v1/links/home", r#"{"delay": "7ms"}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// longwire-capture tests the paths that lead out of a folder.
#[test]
fn with_a_folder_only_what_is_in_it_is_read() {
    let Some(stage) = Stage::new() else { return };
    let token = stage.token_file("token", TOKEN);
    let tcp = format!("tcp:{ADDRESS}");
    let folder = stage.dir.file("files");
    fs::create_dir_all(format!("{folder}/deep")).expect("a folder");
    let outside = stage.dir.file("outside");
    for file in [&outside, &format!("{folder}/deep/delays")] {
        write(file, b"5ms\n6ms\n");
    }
    symlink("deep/delays", format!("{folder}/inner")).expect("a link");
    symlink("../outside", format!("{folder}/escape")).expect("a link");
    let socket = stage.socket();
    let mut arguments = vec!["--control", &tcp, "--control-token-file", &token];
    arguments.extend(["--control", &socket, "--control-files", &folder]);
    let _running = stage.start(NETWORK, &arguments);
    let within = format!("{folder}/deep/delays");
    for (name, status) in [
        ("inner", 200),
        (&within, 200),
        ("escape", 422),
        (&outside, 422),
        ("none", 422),
    ] {
        let body = format!(r#"{{"delay": "samples:{name}"}}"#);
        let answer = ask_with_token(&stage, "PATCH /v1/links/home", &body);
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        let answer = ask(&socket, "PATCH /v1/links/home", &body);
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
}

#[test]
fn links_of_a_template_have_its_files_over_tcp_too() {
    let Some(stage) = Stage::new() else { return };
    let token = stage.token_file("token", TOKEN);
    let tcp = format!("tcp:{ADDRESS}");
    let file = stage.dir.file("delays");
    write(&file, b"5ms\n6ms\n");
    let network = format!("{NETWORK}\n[templates.slow]\ndelay = \"samples:{file}\"\n");
    let _running = stage.start(
        &network,
        &["--control", &tcp, "--control-token-file", &token],
    );
    let body = r#"{"name": "n", "match": "src=10.9.0.1", "template": "slow"}"#;
    let answer = ask_with_token(&stage, "POST /v1/links", body);
    assert_eq!(answer.status, 200, "{answer:?}");
}
