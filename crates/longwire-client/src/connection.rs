//! A connection: requests, responses and events.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use crate::Address;
use crate::error::{ClientError, Refusal, reason};
use crate::time_limit::within;

/// Time limit for connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Retry interval while the server's accept queue is full.
const ACCEPT_PERIOD: Duration = Duration::from_millis(10);

/// Time limit for a response. The server takes up to 10 s to read the files that a change names.
const RESPONSE_TIME: Duration = Duration::from_secs(60);

/// Polling interval for the stop flag.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// A request without its address.
pub(super) struct RequestParts<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub authorization: Option<&'a HeaderValue>,
}

/// A connection for one request at a time.
pub(super) struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    /// HTTP status code.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    /// Complete response body.
    pub body: Bytes,
}

/// An open event stream.
pub(super) struct EventStream {
    address: Address,
    body: Incoming,
    events: Events,
}

impl Connection {
    pub async fn open(address: &Address) -> Result<Connection, ClientError> {
        let refused = |source: io::Error| ClientError::Unreachable {
            address: address.clone(),
            source,
        };
        let slow = || ClientError::timeout(address, "did not accept the connection", CONNECT_TIME);
        let sender = match address {
            Address::Unix(path) => {
                let stream = within(CONNECT_TIME, connect_unix(path)).await;
                start_http(stream.ok_or_else(slow)?.map_err(refused)?).await
            }
            Address::Tcp(socket) => {
                let stream = within(CONNECT_TIME, TcpStream::connect(socket)).await;
                let stream = stream.ok_or_else(slow)?.map_err(refused)?;
                stream.set_nodelay(true).map_err(refused)?;
                start_http(stream).await
            }
        };
        Ok(Connection {
            address: address.clone(),
            sender: sender.map_err(|error| failed(address, &error))?,
        })
    }

    /// Returns whether the server has kept the connection open, judging by the received bytes.
    pub async fn is_open(&self) -> bool {
        // An idle connection is not polled. The runtime needs one turn to report received bytes,
        // one for the connection to read them, and one to resume this task.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.sender.is_ready()
    }

    async fn send(
        &mut self,
        request: &RequestParts<'_>,
    ) -> Result<hyper::Response<Incoming>, ClientError> {
        let request = build(&self.address, request)?;
        let response = within(RESPONSE_TIME, self.sender.send_request(request)).await;
        let response = response.ok_or_else(|| self.slow())?;
        response.map_err(|error| failed(&self.address, &error))
    }

    fn slow(&self) -> ClientError {
        ClientError::timeout(&self.address, "did not respond", RESPONSE_TIME)
    }

    async fn collect(
        &self,
        response: hyper::Response<Incoming>,
        bytes_max: usize,
    ) -> Result<Response, ClientError> {
        let (head, body) = response.into_parts();
        let collected = within(RESPONSE_TIME, Limited::new(body, bytes_max).collect()).await;
        let body = collected.ok_or_else(|| self.slow())?.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ClientError::protocol(&self.address, format!("over {bytes_max} bytes long"))
            } else {
                lost(&self.address, &*error)
            }
        })?;
        Ok(Response {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }

    /// Sends a request and reads the whole response.
    pub async fn fetch(
        &mut self,
        request: &RequestParts<'_>,
        bytes_max: usize,
    ) -> Result<Response, ClientError> {
        let response = self.send(request).await?;
        self.collect(response, bytes_max).await
    }

    /// Requests an event stream.
    pub async fn event_stream(
        &mut self,
        request: &RequestParts<'_>,
    ) -> Result<EventStream, ClientError> {
        let response = self.send(request).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.map(|kind| kind.as_bytes().to_ascii_lowercase());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        if response.status().is_success() && is_stream {
            return Ok(EventStream {
                address: self.address.clone(),
                body: response.into_body(),
                events: Events::default(),
            });
        }
        let response = self.collect(response, EVENT_MAX).await?;
        Err(response.json(&self.address).err().unwrap_or_else(|| {
            ClientError::protocol(&self.address, "the response is not an event stream")
        }))
    }
}

/// Connects to a Unix socket, retrying while its accept queue is full. A non-blocking connect then
/// fails with EAGAIN, and epoll does not report when to retry.
pub(super) async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(ACCEPT_PERIOD).await,
            connected => return connected,
        }
    }
}

/// Starts HTTP on a stream. Waiting for a response drives the connection.
async fn start_http(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> hyper::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Errors reach the caller through the request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn build(address: &Address, parts: &RequestParts<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
    let host = match address {
        Address::Unix(_) => "localhost".to_owned(),
        Address::Tcp(socket) => socket.to_string(),
    };
    let mut request = Request::builder()
        .method(parts.method.clone())
        .uri(parts.path)
        .header(HOST, host)
        .header(ACCEPT, "application/json, text/event-stream");
    if let Some(authorization) = parts.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let text = match parts.body {
        Some(body) => {
            request = request.header(CONTENT_TYPE, "application/json");
            Bytes::from(body.to_string())
        }
        None => Bytes::new(),
    };
    let invalid = |error: hyper::http::Error| ClientError::System(io::Error::other(error));
    request.body(Full::new(text)).map_err(invalid)
}

pub(super) fn parse(text: &[u8], address: &Address) -> Result<Value, ClientError> {
    serde_json::from_slice(text)
        .map_err(|error| ClientError::protocol(address, format!("invalid JSON: {error}")))
}

impl Response {
    /// Parses the body of a successful response; otherwise returns the error.
    pub(super) fn json(&self, address: &Address) -> Result<Value, ClientError> {
        if self.status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if self.status.is_success() {
            return parse(&self.body, address);
        }
        Err(match serde_json::from_slice(&self.body) {
            Ok(body) => ClientError::Refused(Refusal {
                status: self.status.as_u16(),
                body,
            }),
            Err(_) => ClientError::protocol(address, format!("HTTP status {}", self.status)),
        })
    }
}

impl EventStream {
    /// Returns the next events. The list is empty once `stop` is set; `None` means the end of the
    /// stream.
    pub async fn next(
        &mut self,
        silence_max: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Event>>, ClientError> {
        // Count polling intervals, because time in which this process is stopped does not count as
        // silence.
        let mut silence = Duration::ZERO;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(Vec::new()));
            }
            let Ok(frame) = timeout(POLL_PERIOD, self.body.frame()).await else {
                silence += POLL_PERIOD;
                if silence < silence_max {
                    continue;
                }
                let what = "sent nothing";
                return Err(ClientError::timeout(&self.address, what, silence_max));
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| lost(&self.address, &error))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            let events = self.events.take(&bytes);
            let too_large = |_| ClientError::protocol(&self.address, "an event is too large");
            return Ok(Some(events.map_err(too_large)?));
        }
    }
}

/// Returns the error of a failed request.
fn failed(address: &Address, error: &hyper::Error) -> ClientError {
    if error.is_parse() || error.is_parse_too_large() {
        ClientError::protocol(address, format!("not HTTP ({error})"))
    } else {
        lost(address, error)
    }
}

fn lost(address: &Address, error: &(dyn std::error::Error + 'static)) -> ClientError {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    ClientError::ConnectionLost {
        address: address.clone(),
        reason: match last.downcast_ref::<io::Error>() {
            Some(error) => reason(error),
            None => last.to_string(),
        },
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Name; empty by default.
    pub kind: String,
    /// Event data.
    pub data: String,
}

/// Incremental parser for event streams. Ignores event IDs and retry times.
#[derive(Debug, Default)]
pub struct Events {
    /// Incomplete line.
    line: Vec<u8>,
    /// Whether the last line ended in CR; an LF that follows belongs to that line.
    after_return: bool,
    begun: bool,
    kind: String,
    data: Option<String>,
}

/// Maximum length of an event, in bytes; more than that of an event with the counters of 10,000
/// links.
pub const EVENT_MAX: usize = 64 << 20;

/// The event is longer than [`EVENT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Events {
    /// Returns the events completed by these bytes.
    ///
    /// # Errors
    /// If an event is too large.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.line);
            events.extend(self.end_line(&line));
            let behind = &rest[end + 1..];
            rest = match rest[end] {
                b'\r' if behind.is_empty() => {
                    self.after_return = true;
                    behind
                }
                b'\r' => behind.strip_prefix(b"\n").unwrap_or(behind),
                _ => behind,
            };
        }
        self.line.extend_from_slice(rest);
        let size = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if size > EVENT_MAX {
            Err(TooLarge)
        } else {
            Ok(events)
        }
    }

    /// Parses a line; returns the event that it completes.
    fn end_line(&mut self, line: &[u8]) -> Option<Event> {
        let line = if self.begun {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        self.begun = true;
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            return self.data.take().map(|data| Event { kind, data });
        }
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (name, &mut self.data) {
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", none) => *none = Some(value.to_owned()),
            ("event", _) => self.kind = value.to_owned(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = "\u{feff}: heartbeat\n\ndata: {\"a\":1}\n\nevent: x\r\nid: 7\r\n\
    data: two\r\ndata:lines\r\ndata\r\n\r\nretry: 5\r\rdata: \u{e4}\r\rdata: unfinished\n"
        .as_bytes();

    #[test]
    fn events_do_not_depend_on_chunk_sizes() {
        let event = |kind: &str, data: &str| Event {
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let wanted = [
            event("", "{\"a\":1}"),
            event("x", "two\nlines\n"),
            event("", "\u{e4}"),
        ];
        for step in 1..=STREAM.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for bytes in STREAM.chunks(step) {
                found.extend(events.take(bytes).expect("it is small"));
            }
            assert_eq!(found, wanted, "in steps of {step}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut events = Events::default();
        let chunk = vec![b'x'; 1 << 20];
        let taken = (0..100).find_map(|_| events.take(&chunk).err());
        assert_eq!(taken, Some(TooLarge));
    }
}
