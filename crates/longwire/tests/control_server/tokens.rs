//! Who may ask over TCP, and how often.

use super::client::{Answer, ask, ask_tcp, request};
use super::{NETWORK, Stage};

const FULL: &str = "0123456789abcdef-full";
const READ: &str = "0123456789abcdef-read";
const ADDRESS: &str = "127.0.0.1:9470";

#[test]
fn tokens_say_who_may_read_and_who_may_change() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let refused = stage.refused(&["--control", "tcp:127.0.0.1:9470"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("--control-token-file FILE"),
        "{refused:?}"
    );
    let full = stage.token_file("full", FULL);
    let read = stage.token_file("read", READ);
    let socket = stage.socket();
    let _running = stage.start(
        NETWORK,
        &[
            "--control",
            "tcp:127.0.0.1:9470",
            "--control",
            &socket,
            "--control-token-file",
            &full,
            "--control-read-token-file",
            &read,
        ],
    );
    let host = format!("Host: {ADDRESS}");
    let ask_with = |line: &str, headers: &[&str], body: &str| -> Answer {
        let mut all = vec![host.as_str()];
        all.extend(headers);
        ask_tcp(&stage.namespace, ADDRESS, &request(line, &all, body))
    };
    let full = format!("Authorization: Bearer {FULL}");
    let read = format!("Authorization: Bearer {READ}");
    for wrong in [vec![], vec!["Authorization: Bearer 0123456789abcdef-fulk"]] {
        for line in [
            "GET /v1",
            "GET /metrics",
            "GET /nothing",
            "DELETE /v1/links/home",
        ] {
            let answer = ask_with(line, &wrong, "");
            assert_eq!(answer.status, 401, "{line}: {answer:?}");
            assert_eq!(answer.header("www-authenticate"), Some("bearer"));
        }
    }
    assert_eq!(ask_with("GET /v1/links/home", &[&read], "").status, 200);
    let change = r#"{"delay":"9ms"}"#;
    for (line, body) in [
        ("PATCH /v1/links/home", change),
        ("POST /v1/links", r#"{"name":"x","match":"any"}"#),
        ("DELETE /v1/links/home", ""),
        ("POST /v1/changes", r#"{"down":"home"}"#),
        ("POST /v1/changes?check=true", r#"{"down":"home"}"#),
    ] {
        let answer = ask_with(line, &[&read], body);
        assert_eq!(answer.status, 403, "{line}: {answer:?}");
        assert!(
            answer.json()["error"]
                .as_str()
                .expect("why")
                .contains("read only")
        );
    }
    let delay = || ask(&socket, "GET /v1/links/home", "").json()["up"]["options"]["delay"].clone();
    assert_eq!(delay(), "5ms");
    assert_eq!(
        ask_with("PATCH /v1/links/home", &[&full], change).status,
        200
    );
    assert_eq!(delay(), "9ms");
    // The socket's owner needs none; one that is said there counts.
    let over_socket = |token: &str| {
        let text = request("PATCH /v1/links/home", &["Host: x", token], change);
        super::client::exchange(super::client::connect(&socket), &text).status
    };
    assert_eq!(over_socket(&full), 200);
    assert_eq!(over_socket(&read), 403);
    assert_eq!(over_socket("Authorization: Bearer nonsense"), 401);
    // A page in a browser that has the token all the same.
    let page = ["Origin: http://evil.example", &full];
    assert_eq!(ask_with("GET /v1", &page, "").status, 403);
    let rebound = request("GET /v1", &["Host: evil.example:9470", &full], "");
    assert_eq!(ask_tcp(&stage.namespace, ADDRESS, &rebound).status, 403);
}

#[test]
fn more_requests_than_the_limit_are_put_off() {
    let Some(stage) = Stage::new() else {
        return;
    };
    let socket = stage.socket();
    let arguments = ["--control", &socket, "--control-limit", "5"];
    let _running = stage.start(NETWORK, &arguments);
    let answers: Vec<Answer> = (0..12).map(|_| ask(&socket, "GET /v1", "")).collect();
    let refused: Vec<&Answer> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    // As many as took less than a second.
    assert!(refused.len() >= 3, "{answers:?}");
    assert_eq!(refused[0].header("retry-after"), Some("1"));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(ask(&socket, "GET /v1", "").status, 200);
}
