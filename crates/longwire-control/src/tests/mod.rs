//! The transport over real sockets, with a stub handler.

pub(crate) mod document;
mod relay;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::StatusCode;
use longwire_testbed::support::Folder;

use super::reply::{JSON, Reply};
use super::server::{Handler, Server};
use super::{Address, Config, bind};

/// Creates a file with this mode.
fn secret(folder: &Folder, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    // Remove an existing file, whose mode may forbid overwriting.
    let _ = fs::remove_file(&path);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
    path
}

/// Path of a server's socket.
fn socket(folder: &Folder) -> PathBuf {
    folder.path().join("s.sock")
}

fn unix(path: &Path) -> Config {
    Config {
        addresses: vec![Address::Unix(path.to_owned())],
        ..Config::default()
    }
}

const FULL: &str = "0123456789abcdef-full";
const READ: &str = "0123456789abcdef-read";

/// Configuration with a free TCP port and both tokens.
fn tcp(folder: &Folder) -> Config {
    Config {
        addresses: vec!["tcp:127.0.0.1:0".parse().expect("an address")],
        token_file: Some(secret(folder, "full", &format!("{FULL}\n"), 0o600)),
        read_token_file: Some(secret(folder, "read", READ, 0o400)),
        ..Config::default()
    }
}

/// Starts a server that responds with the client's rights and the body length; returns its TCP
/// address.
fn serve(args: &Config) -> (Server, Option<String>) {
    let handler: Arc<Handler> = Arc::new(|request, caller| {
        Box::pin(async move {
            let bytes = request.into_body().collect().await;
            let length = bytes.map_or(0, |bytes| bytes.to_bytes().len());
            let reply = Reply {
                status: StatusCode::OK,
                kind: JSON,
                text: format!("{:?} {length}", caller.rights).into(),
            };
            Ok(reply.into_response())
        })
    });
    let bound = bind(args).unwrap_or_else(|error| panic!("{error}"));
    let tcp = bound.notes().iter();
    let tcp = tcp.filter_map(|note| note.strip_prefix("control: tcp:"));
    let tcp = tcp.map(str::to_owned).next();
    let server = bound.serve_with(|_, _, _| (handler, None));
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    (server.expect("it has an address"), tcp)
}

/// Sends a request with these header lines; returns the whole response.
fn ask(mut stream: impl Read + Write, head: &[&str], body: &str) -> String {
    let head = head.join("\r\n");
    let text = format!("{head}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn ask_unix(path: &Path, head: &[&str], body: &str) -> String {
    let stream = UnixStream::connect(path).expect("somebody listens");
    ask(stream, head, body)
}

fn get(path: &Path) -> String {
    ask_unix(path, &["GET / HTTP/1.1", "Host: x"], "")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn refused(args: &Config) -> String {
    match bind(args) {
        Ok(_) => panic!("{args:?} is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_unix_socket_is_private_and_removed() {
    let folder = Folder::new();
    let path = socket(&folder);
    let (server, _) = serve(&unix(&path));
    let metadata = fs::metadata(&path).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let head = ["POST / HTTP/1.1", "Host: x", "Content-Length: 3"];
    let answer = ask_unix(&path, &head, "abc");
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.ends_with("Change 3"), "{answer}");
    // An idle connection does not delay the end of the server.
    let _idle = UnixStream::connect(&path).expect("it listens");
    let began = Instant::now();
    server.stop();
    let taken = began.elapsed();
    assert!(taken < Duration::from_secs(1), "{taken:?}");
    assert!(!path.exists());
    // A live socket is kept, and a stale one replaced.
    let (server, _) = serve(&unix(&path));
    let why = refused(&unix(&path));
    assert!(why.contains("another program is listening on it"), "{why}");
    // The first server still answers.
    assert_eq!(status(&get(&path)), "200");
    drop(server);
    // A stale socket, as left by a killed run.
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists());
    let (server, _) = serve(&unix(&path));
    assert_eq!(status(&get(&path)), "200");
    drop(server);
}

#[test]
fn one_of_concurrent_starts_gets_a_stale_socket() {
    let folder = Folder::new();
    let path = socket(&folder);
    drop(UnixListener::bind(&path).expect("a socket"));
    let bound = std::thread::scope(|scope| {
        let path = &path;
        let threads = [(); 8].map(|()| scope.spawn(|| bind(&unix(path)).ok()));
        threads.map(|thread| thread.join().expect("it ends"))
    });
    assert_eq!(bound.iter().flatten().count(), 1);
    assert!(path.exists(), "the losers left it alone");
}

#[test]
fn other_files_are_never_removed() {
    let folder = Folder::new();
    let file = secret(&folder, "file", "mine", 0o600);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    for path in [file.as_path(), &link, folder.path()] {
        let why = refused(&unix(path));
        assert!(why.contains("not a socket"), "{why}");
    }
    assert_eq!(fs::read_to_string(&link).expect("it is there"), "mine");
    // A socket that replaces the server's is not removed.
    let path = socket(&folder);
    let (server, _) = serve(&unix(&path));
    fs::remove_file(&path).expect("it was there");
    fs::write(&path, "mine").expect("a file");
    drop(server);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "mine");
    let long = folder.path().join("x".repeat(108));
    let why = refused(&unix(&long));
    assert!(why.contains("107 bytes"), "{why}");
    let why = refused(&unix(&folder.path().join("not/there")));
    assert!(why.contains("mkdir -p"), "{why}");
}

#[test]
fn tcp_wants_a_token() {
    let folder = Folder::new();
    let (_server, address) = serve(&tcp(&folder));
    let address = address.expect("it listens");
    let host = format!("Host: {address}");
    let ask = |token: &[&str]| {
        let mut head = vec!["GET / HTTP/1.1", &host];
        head.extend(token);
        ask(TcpStream::connect(&address).expect("it listens"), &head, "")
    };
    let full = format!("Authorization: Bearer {FULL}");
    let read = format!("Authorization: bearer {READ}");
    assert!(ask(&[&full]).ends_with("Change 0"));
    assert!(ask(&[&read]).ends_with("Read 0"));
    for wrong in [
        vec![],
        vec!["Authorization: Bearer"],
        vec!["Authorization: Bearer "],
        vec!["Authorization: Bearer 0123456789abcdef"],
        vec!["Authorization: Basic dXNlcjpwYXNz"],
        vec![full.as_str(), read.as_str()],
    ] {
        let answer = ask(&wrong);
        assert_eq!(status(&answer), "401", "{wrong:?}: {answer}");
        let answer = answer.to_lowercase();
        assert!(answer.contains("www-authenticate: bearer"), "{answer}");
    }
}

#[test]
fn foreign_origins_are_refused_on_tcp() {
    let folder = Folder::new();
    let (_server, address) = serve(&tcp(&folder));
    let address = address.expect("it listens");
    let port = address.rsplit(':').next().expect("a port");
    let token = format!("Authorization: Bearer {FULL}");
    let ask = |line: &str, others: &str| {
        let mut head = vec![line, &token];
        head.extend(others.lines());
        let answer = ask(TcpStream::connect(&address).expect("it listens"), &head, "");
        status(&answer).to_owned()
    };
    let get = "GET / HTTP/1.1";
    for host in [&address, &format!("localhost:{port}"), "[::1]:80"] {
        for (origin, expected) in [
            (String::new(), "200"),
            (format!("\nOrigin: http://{host}"), "200"),
            ("\nOrigin: http://evil.example".to_owned(), "403"),
            ("\nOrigin: null".to_owned(), "403"),
        ] {
            let headers = format!("Host: {host}{origin}");
            assert_eq!(ask(get, &headers), expected, "{headers}");
        }
    }
    for host in "evil.example 10.0.0.1 localhost.evil.example x@127.0.0.1".split(' ') {
        assert_eq!(ask(get, &format!("Host: {host}")), "403", "{host}");
    }
    assert_eq!(ask(get, ""), "400");
    assert_eq!(ask(get, "Host: localhost\nHost: localhost"), "400");
    let whole = "GET http://evil.example/ HTTP/1.1";
    assert_eq!(ask(whole, "Host: localhost"), "403");
}

#[test]
fn token_files_are_checked() {
    let folder = Folder::new();
    let of = |file: PathBuf| {
        refused(&Config {
            token_file: Some(file),
            read_token_file: None,
            ..tcp(&folder)
        })
    };
    let with = |name: &str, text: &str, mode| of(secret(&folder, name, text, mode));
    let none = Config {
        token_file: None,
        read_token_file: None,
        ..tcp(&folder)
    };
    assert!(refused(&none).contains("--control-token-file FILE"));
    let open = with("open", FULL, 0o640);
    assert!(open.contains("640") && open.contains("chmod 600"), "{open}");
    let short = with("short", "0123456789abcde\nmore", 0o600);
    assert!(short.contains("15 characters"), "{short}");
    let long = with("long", &"x".repeat(5000), 0o600);
    assert!(long.contains("16 to 4096"), "{long}");
    let odd = with("odd", "0123456789 abcdef", 0o600);
    assert!(odd.contains("invalid in an HTTP header"), "{odd}");
    assert!(of(folder.path().join("none")).contains("cannot read the token"));
    let same = Config {
        read_token_file: Some(secret(&folder, "same", FULL, 0o600)),
        ..tcp(&folder)
    };
    assert!(refused(&same).contains("holds the same token as"));
}

#[test]
fn more_requests_than_the_limit_are_put_off() {
    let folder = Folder::new();
    let path = socket(&folder);
    let args = Config {
        limit: 3,
        ..unix(&path)
    };
    let (_server, _) = serve(&args);
    let answers: Vec<String> = (0..4).map(|_| get(&path)).collect();
    let statuses: Vec<&str> = answers.iter().map(|answer| status(answer)).collect();
    assert_eq!(statuses, ["200", "200", "200", "429"]);
    let last = answers[3].to_lowercase();
    assert!(last.contains("retry-after: 1"), "{last}");
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(status(&get(&path)), "200");
}

#[test]
fn an_invalid_request_closes_its_connection() {
    let folder = Folder::new();
    let path = socket(&folder);
    let (_server, _) = serve(&unix(&path));
    for garbage in [
        "\0\0\0\0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET\r\n\r\n",
    ] {
        let mut stream = UnixStream::connect(&path).expect("it listens");
        stream.write_all(garbage.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() || status(&answer) == "400", "{answer}");
    }
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(70 << 10));
    assert_eq!(status(&ask_unix(&path, &[&many], "")), "431");
    assert_eq!(status(&get(&path)), "200");
}
