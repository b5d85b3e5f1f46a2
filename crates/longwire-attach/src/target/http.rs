//! A GET request over a Unix socket (HTTP/1.1, RFC 9112).

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Status, parse_chunk_size};
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket};
use nix::sys::time::TimeVal;

/// Time limit for a complete response.
const TIME: Duration = Duration::from_secs(2);

/// The longest response, in bytes. A list of 1,000 containers has about 2 MB.
const BYTES_MAX: usize = 32 << 20;

/// The most headers of a response.
const HEADERS_MAX: usize = 64;

/// A response of status 200.
#[derive(Debug)]
pub struct HttpResponse {
    /// Names of headers in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends a GET request, and waits for the response.
///
/// # Errors
/// Those of the socket; `TimedOut`; `InvalidData` for another answer than status 200.
pub fn get(path: &Path, target: &str) -> io::Result<HttpResponse> {
    let end = Instant::now() + TIME;
    let mut stream = open(path)?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(response) = parse(&bytes, false)? {
            return Ok(response);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(slow());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return parse(&bytes, true)?.ok_or_else(|| invalid("the answer is cut")),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(slow()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > BYTES_MAX {
            return Err(invalid("the answer is too long"));
        }
    }
}

/// Connects with a time limit: the queue of a daemon that hangs may be full.
fn open(path: &Path) -> io::Result<UnixStream> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    setsockopt(
        &socket,
        SendTimeout,
        &TimeVal::new(TIME.as_secs() as i64, 0),
    )?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn slow() -> io::Error {
    let what = format!("no answer within {} s", TIME.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, what)
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Returns a complete response; `None` if more bytes are needed. `is_end` reports that no
/// more will arrive, which ends a body without a length.
fn parse(bytes: &[u8], is_end: bool) -> io::Result<Option<HttpResponse>> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    let parsed = parsed.map_err(|error| invalid(format!("no HTTP response: {error}")))?;
    let Status::Complete(start) = parsed else {
        return Ok(None);
    };
    if response.code != Some(200) {
        let code = response.code.unwrap_or_default();
        return Err(invalid(format!("answers with status {code}")));
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers: Vec<(String, String)> = response
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
        .collect();
    let value = |name: &str| {
        let header = headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.trim())
    };
    let rest = &bytes[start..];
    let body = if value("transfer-encoding").is_some_and(|value| value.ends_with("chunked")) {
        unchunk(rest)?
    } else if let Some(length) = value("content-length") {
        let length: usize = length.parse().map_err(|_| invalid("invalid length"))?;
        rest.get(..length).map(<[u8]>::to_vec)
    } else {
        is_end.then(|| rest.to_vec())
    };
    Ok(body.map(|body| HttpResponse { headers, body }))
}

/// Joins the chunks of a body; `None` without the last one.
fn unchunk(mut bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let size = parse_chunk_size(bytes).map_err(|_| invalid("invalid chunk"))?;
        let Status::Complete((start, size)) = size else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(Some(body));
        }
        let Some(end) = usize::try_from(size)
            .ok()
            .and_then(|size| start.checked_add(size))
        else {
            return Err(invalid("invalid chunk"));
        };
        let Some(chunk) = bytes.get(start..end) else {
            return Ok(None);
        };
        body.extend_from_slice(chunk);
        // A line break ends a chunk.
        let Some(rest) = bytes.get(end + 2..) else {
            return Ok(None);
        };
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: Docker/27\r\n";

    /// Parses each beginning of a response as it would arrive.
    fn arrive(text: &str) -> HttpResponse {
        for end in 0..text.len() {
            let early = parse(&text.as_bytes()[..end], false).expect("a valid beginning");
            assert!(early.is_none(), "complete after {end} bytes");
        }
        let response = parse(text.as_bytes(), true).expect("valid");
        response.expect("complete")
    }

    #[test]
    fn every_form_of_a_body_is_read() {
        let response = arrive(&format!("{HEAD}Content-Length: 3\r\n\r\nabc"));
        assert_eq!(response.body, b"abc");
        assert_eq!(response.headers[0].1, "Docker/27");
        let chunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n";
        assert_eq!(arrive(&format!("{HEAD}{chunks}")).body, b"abcd");
        assert_eq!(arrive(&format!("{HEAD}\r\nabc")).body, b"abc");
    }

    #[test]
    fn invalid_responses_are_refused() {
        for text in [
            "SSH-2.0-OpenSSH_9\r\n",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ] {
            assert!(parse(text.as_bytes(), true).is_err(), "{text}");
        }
    }
}
