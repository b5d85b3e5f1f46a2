//! Many links: pages, streams, metrics and limits.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use super::client::{connect, exchange, request};
use super::schema::check;
use super::{NETWORK, Stage};
use crate::common::program::eventually;
use crate::common::{list, number};

/// Number of links; each has two directions.
const LINKS: usize = 10_001;

/// A network of many idle links.
fn many() -> String {
    format!(
        "[ports]\nleft = \"packet:l0\"\nright = \"packet:r0\"\n\
         [[link]]\nname = \"n{{n}}\"\ncount = {LINKS}\nmatch = \"sport={{n}}\"\nrate = \"1mbit\"\n"
    )
}

#[test]
fn many_links_are_listed_by_pages_and_singly_within_bounds() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(&many(), &format!("--control {socket} --metrics-links each"));
    let mut names = Vec::new();
    let mut next = Some(String::new());
    while let Some(after) = next {
        let page = stage.get(&format!("/v1/links?limit=1000&after={after}"));
        let links = list(&page["links"]).iter();
        names.extend(links.filter_map(|link| link["name"].as_str().map(str::to_owned)));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(names.len(), LINKS);
    assert!(names.is_sorted());
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), LINKS);
    // 20,002 directions exceed the limit for metrics and per-link streams.
    for target in ["/metrics", "/v1/stats/stream?links=each"] {
        let answer = stage.ask(&format!("GET {target}"), "");
        assert_eq!(answer.status, 400, "{target}");
        let why = answer.json()["error"].to_string();
        let says = why.contains("20002 directions match") && why.contains("?match=");
        assert!(says, "{why}");
    }
    let sums = stage.ask("GET /metrics?links=sum", "");
    assert_eq!(sums.status, 200, "{sums:?}");
    for line in [
        "longwire_links 20002",
        "longwire_link_received_bytes_total 0\n",
    ] {
        assert!(sums.body.contains(&format!("\n{line}")), "{}", sums.body);
    }
    let headers = ["Host: x", "Accept: application/openmetrics-text"];
    let some = request("GET /metrics?match=n1?", &headers, "");
    let some = exchange(connect(&socket), &some).body;
    let line = "\nlongwire_link_received_bytes_total{link=\"n17\",direction=\"down\"} 0\n";
    assert!(some.contains(line) && some.ends_with("# EOF\n"), "{some}");
    check_metrics(&some);
}

/// Asserts that every sample belongs to a previously described family, and that no sample is
/// repeated (OpenMetrics 1.0).
fn check_metrics(text: &str) {
    let mut families = BTreeSet::new();
    let mut samples = BTreeSet::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            family = described.split(' ').next().expect("a name").to_owned();
            let is_new = families.insert(family.clone());
            assert!(is_new, "{family} is described twice");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            assert!(sample.starts_with(&family), "{line} is not of {family}");
            assert!(samples.insert(sample), "{sample} is repeated");
            assert!(
                value.parse::<f64>().is_ok_and(|value| value >= 0.0),
                "{line}"
            );
        }
    }
    assert!(families.len() > 20, "{families:?}");
}

#[test]
fn statistics_are_sent_as_events() {
    let Some(stage) = Stage::new() else { return };
    let (socket, _running) = (stage.socket(), stage.start_at_socket(NETWORK));
    let document = stage.get("/v1/openapi.json");
    let schema = &document["components"]["schemas"]["StatsEvent"];
    let mut stream = connect(&socket);
    let line = "GET /v1/stats/stream?match=adsl*&every=100ms&links=each";
    let began = Instant::now();
    let text = request(line, &["Host: x"], "");
    stream.write_all(text.as_bytes()).expect("it is sent");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut events = lines.filter_map(|line| {
        let data = line.strip_prefix("data: ")?.to_owned();
        Some(serde_json::from_str::<Value>(&data).expect("JSON"))
    });
    let mut next = || {
        let event = events.next().expect("an event");
        check(&event, schema, &document, "event").expect("it is as the document says");
        event
    };
    let first = next();
    assert_eq!(first["rates"], Value::Null);
    assert_eq!(first["links"], 6);
    let names = list(&first["each"])
        .iter()
        .filter_map(|link| link["name"].as_str());
    let expected = [1, 2, 3].map(|n| format!("adsl{n}.down adsl{n}.up"));
    assert_eq!(names.collect::<Vec<_>>().join(" "), expected.join(" "));
    for _ in 0..5 {
        let event = next();
        assert!(number(&event["interval_s"]) > 0.0, "{event}");
        assert_eq!(event["rates"]["bits_in_per_s"], 0.0);
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500), "{took:?}");
    // A removed link is no longer listed.
    assert_eq!(stage.ask("DELETE /v1/links/adsl3", "").status, 200);
    let removed = stage.get("/v1")["elapsed_s"].as_f64();
    // Skip earlier events, which are still in the socket.
    let later = std::iter::repeat_with(next).find(|event| event["elapsed_s"].as_f64() > removed);
    let later = later.expect("an event");
    assert_eq!(
        (&later["links"], list(&later["each"]).len()),
        (&4.into(), 4)
    );
}

/// Server timeout for an incomplete request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Returns whether the server has closed a connection, even if its last data is still unread.
fn is_closed_by_peer(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).expect("a socket");
    let events = polled[0].revents();
    events.is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

#[test]
fn clients_that_do_not_read_stop_no_other() {
    let Some(stage) = Stage::new() else { return };
    let (socket, _running) = (stage.socket(), stage.start_at_socket(&many()));
    // Responses of several megabytes that no client reads.
    let mut stuck: Vec<_> = (0..20).map(|_| connect(&socket)).collect();
    let text = request("GET /v1/links?limit=2500", &["Host: x"], "");
    for stream in &mut stuck {
        stream.write_all(text.as_bytes()).expect("it is sent");
    }
    // The server answers in order, so the earlier responses exist once this one does.
    let page = stage.get("/v1/links?limit=10000");
    assert_eq!(list(&page["links"]).len(), 10_000);
    // Incomplete request heads and unread responses time out; unread responses are truncated.
    let began = Instant::now();
    let mut half = connect(&socket);
    half.write_all(b"GET /v1 HTTP/1.1\r\nHost")
        .expect("it is sent");
    half.read_to_end(&mut Vec::new()).expect("it is closed");
    assert!(began.elapsed() >= HEAD_TIME, "{:?}", began.elapsed());
    let all_closed = || stuck.iter().all(is_closed_by_peer);
    eventually("connections stay open", all_closed);
    for stream in &mut stuck {
        let mut taken = Vec::new();
        let read = stream.read_to_end(&mut taken);
        let head = String::from_utf8_lossy(&taken[..taken.len().min(400)]).to_lowercase();
        let said = head.split_once("content-length: ");
        let said = said.and_then(|(_, rest)| rest.split("\r\n").next()?.parse::<usize>().ok());
        let whole = said.is_some_and(|said| taken.len() > said);
        assert!(!whole, "{read:?}: {} bytes", taken.len());
    }
    assert_eq!(stage.ask("GET /v1/links/n5", "").status, 200);
}
