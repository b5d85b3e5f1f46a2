//! A connection, with its requests and responses.

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

use super::Address;
use super::error::{ClientError, Refusal, reason};
use super::events::{EVENT_MAX, Event, Events};
use super::time_limit::within;

/// Time limit for connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Period for retrying while an accept queue is full.
const ACCEPT_PERIOD: Duration = Duration::from_millis(10);

/// Time limit for a response. The server waits up to 10 s for the run, after it has parsed the
/// change.
const RESPONSE_TIME: Duration = Duration::from_secs(60);

/// Period for polling the stop flag.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// A request, without its address.
pub(super) struct RequestParts<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub authorization: Option<&'a HeaderValue>,
}

/// A connection that carries one request at a time.
pub(super) struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    /// Status code.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
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
        let slow = || ClientError::timeout(address, "did not accept a connection", CONNECT_TIME);
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

    /// Whether the server has kept it open, as far as this process knows.
    pub async fn is_open(&self) -> bool {
        // An idle connection is not polled. The runtime needs one turn to report received bytes,
        // one for the connection to read them, and one to return here.
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
        let collected = collected.ok_or_else(|| self.slow())?;
        let body = collected.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ClientError::protocol(&self.address, format!("longer than {bytes_max} bytes"))
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
        let error = response.json(&self.address).err();
        Err(error.unwrap_or_else(|| {
            ClientError::protocol(&self.address, "the response is not an event stream")
        }))
    }
}

/// Connects to a Unix socket, and waits while its accept queue is full: a non-blocking connect then
/// fails with EAGAIN, and epoll does not report when to retry.
pub(super) async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(ACCEPT_PERIOD).await,
            connected => return connected,
        }
    }
}

/// Starts HTTP on a stream. The caller that waits for a response drives it.
async fn start_http(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> hyper::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Errors reach the caller through its request.
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

/// Parses JSON.
pub(super) fn parse(text: &[u8], address: &Address) -> Result<Value, ClientError> {
    serde_json::from_slice(text)
        .map_err(|error| ClientError::protocol(address, format!("invalid JSON: {error}")))
}

impl Response {
    /// Parses the body of a success; returns the error of another status.
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
            Err(_) => ClientError::protocol(address, format!("status {}", self.status)),
        })
    }
}

impl EventStream {
    /// Returns the next events; none once `stop` is set, and `None` at the end of the stream.
    pub async fn next(
        &mut self,
        silence_max: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Event>>, ClientError> {
        // Counted in periods: time in which this process is stopped is not silence.
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
                return Err(ClientError::timeout(
                    &self.address,
                    "sent nothing",
                    silence_max,
                ));
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
