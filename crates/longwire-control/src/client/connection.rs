//! One connection to a running Longwire.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::error::{ClientError, ONLY_OWNER, Refused};
use super::events::{EVENT_MAX, Event, Events};
use crate::Address;
use crate::time_limit::within;

/// The longest time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// An answer is there so soon: the server itself waits for the run for ten
/// seconds at most, and a change of very many links is read before.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// The largest answer: a page of ten thousand links, several times over.
const ANSWER_MAX: usize = 256 << 20;

/// The delay after which a signal is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// A request.
pub(super) struct Wanted<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub authorization: Option<&'a HeaderValue>,
}

/// A connection.
pub(super) struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
}

/// An answer, all of it.
pub(super) struct Asked {
    status: StatusCode,
    text: Bytes,
}

/// A stream of events that is being read.
pub(super) struct Flow {
    address: Address,
    body: Incoming,
    events: Events,
}

impl Connection {
    /// Connects.
    pub async fn open(address: &Address) -> Result<Connection, ClientError> {
        let refused = |error: io::Error| ClientError::Nobody {
            address: address.clone(),
            reason: reason(&error),
        };
        let slow = || ClientError::Slow {
            address: address.clone(),
            what: "did not let anybody in",
            seconds: CONNECT_TIME.as_secs(),
        };
        let sender = match address {
            Address::Unix(path) => {
                let stream = within(CONNECT_TIME, UnixStream::connect(path)).await;
                greet(stream.ok_or_else(slow)?.map_err(refused)?).await
            }
            Address::Tcp(socket) => {
                let stream = within(CONNECT_TIME, TcpStream::connect(socket)).await;
                let stream = stream.ok_or_else(slow)?.map_err(refused)?;
                stream.set_nodelay(true).map_err(refused)?;
                greet(stream).await
            }
        };
        Ok(Connection {
            address: address.clone(),
            sender: sender.map_err(|error| failed(address, &error))?,
        })
    }

    /// Whether the other side has kept it open, as far as is known here.
    pub async fn is_open(&self) -> bool {
        // An idle connection is not polled: once for the system to report received
        // bytes, once for the connection to read them, and once more to be after both.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.sender.is_ready()
    }

    async fn send(&mut self, wanted: &Wanted<'_>) -> Result<Response<Incoming>, ClientError> {
        let request = request(&self.address, wanted)?;
        let answered = within(ANSWER_TIME, self.sender.send_request(request)).await;
        let answered = answered.ok_or_else(|| self.slow())?;
        answered.map_err(|error| failed(&self.address, &error))
    }

    fn slow(&self) -> ClientError {
        ClientError::Slow {
            address: self.address.clone(),
            what: "did not answer",
            seconds: ANSWER_TIME.as_secs(),
        }
    }

    /// Asks, and reads the whole answer.
    pub async fn ask(&mut self, wanted: &Wanted<'_>) -> Result<Asked, ClientError> {
        let response = self.send(wanted).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX);
        let collected = within(ANSWER_TIME, body.collect()).await;
        let collected = collected.ok_or_else(|| self.slow())?;
        let text = collected.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ClientError::strange(&self.address, "its answer has no end")
            } else {
                cut(&self.address, &*error)
            }
        })?;
        Ok(Asked {
            status,
            text: text.to_bytes(),
        })
    }

    /// Asks for a stream of events.
    pub async fn flow(
        &mut self,
        wanted: &Wanted<'_>,
        address: &Address,
    ) -> Result<Flow, ClientError> {
        let response = self.send(wanted).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.map(|kind| kind.as_bytes().to_ascii_lowercase());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        if response.status().is_success() && is_stream {
            return Ok(Flow {
                address: address.clone(),
                body: response.into_body(),
                events: Events::default(),
            });
        }
        let status = response.status();
        let body = Limited::new(response.into_body(), EVENT_MAX).collect();
        let body = within(ANSWER_TIME, body).await.ok_or_else(|| self.slow())?;
        let text = body.map_err(|error| cut(address, &*error))?.to_bytes();
        let told = Asked { status, text }.json(address);
        Err(told.err().unwrap_or_else(|| {
            ClientError::strange(address, "it answered with something else than events")
        }))
    }
}

/// Speaks HTTP on a stream, driven by the caller that waits for an answer.
async fn greet(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> hyper::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its errors are reported to the caller that waits for an answer.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn request(address: &Address, wanted: &Wanted<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
    let host = match address {
        Address::Unix(_) => "localhost".to_owned(),
        Address::Tcp(socket) => socket.to_string(),
    };
    let mut request = Request::builder()
        .method(wanted.method.clone())
        .uri(wanted.path)
        .header(HOST, host)
        .header(ACCEPT, "application/json, text/event-stream");
    if let Some(authorization) = wanted.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let text = match wanted.body {
        Some(body) => {
            request = request.header(CONTENT_TYPE, "application/json");
            Bytes::from(body.to_string())
        }
        None => Bytes::new(),
    };
    let invalid = |error: hyper::http::Error| ClientError::System(io::Error::other(error));
    request.body(Full::new(text)).map_err(invalid)
}

/// Reads JSON.
pub(super) fn parse(text: &[u8], address: &Address) -> Result<Value, ClientError> {
    serde_json::from_slice(text)
        .map_err(|error| ClientError::strange(address, format!("it does not say JSON ({error})")))
}

impl Asked {
    /// The value in it, if it is good.
    pub fn json(&self, address: &Address) -> Result<Value, ClientError> {
        if self.status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if self.status.is_success() {
            return parse(&self.text, address);
        }
        let refused = serde_json::from_slice::<Refused>(&self.text);
        let refused = refused.map_err(|_| {
            ClientError::strange(
                address,
                format!("it answered {} in words of its own", self.status),
            )
        })?;
        Err(ClientError::Refused(Refused {
            status: self.status.as_u16(),
            ..refused
        }))
    }
}

impl Flow {
    /// The next events, none of them when somebody should look at `stop`;
    /// `None` at the end.
    pub async fn next(
        &mut self,
        silence_max: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<Event>>, ClientError> {
        // A stop of the process is no silence: only looks count.
        let mut silence = Duration::ZERO;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(Some(Vec::new()));
            }
            let Ok(frame) = timeout(LOOK, self.body.frame()).await else {
                silence += LOOK;
                if silence < silence_max {
                    continue;
                }
                return Err(ClientError::Slow {
                    address: self.address.clone(),
                    what: "sent nothing",
                    seconds: silence_max.as_secs(),
                });
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| cut(&self.address, &error))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            let events = self.events.take(&bytes);
            let events =
                events.map_err(|_| ClientError::strange(&self.address, "an event has no end"))?;
            return Ok(Some(events));
        }
    }
}

/// Returns the error of a failed request.
fn failed(address: &Address, error: &hyper::Error) -> ClientError {
    if error.is_parse() || error.is_parse_too_large() {
        ClientError::strange(address, format!("it does not speak HTTP ({error})"))
    } else {
        cut(address, error)
    }
}

fn cut(address: &Address, error: &(dyn std::error::Error + 'static)) -> ClientError {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    ClientError::Cut {
        address: address.clone(),
        reason: match last.downcast_ref::<io::Error>() {
            Some(error) => reason(error),
            None => last.to_string(),
        },
    }
}

/// In words, with a remedy where one is known.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such socket".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::PermissionDenied => ONLY_OWNER.to_owned(),
        _ => error.to_string(),
    }
}
