//! Asking a running Longwire: HTTP/1.1 over its Unix socket or over TCP.
//!
//! A [`Client`] asks one thing after the other and waits for each answer. It
//! needs no thread: the caller drives the connection.

mod connection;
mod error;
mod events;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use self::connection::{Asked, Connection, Wanted};
use super::Address;
use crate::time_limit::within;

pub use error::{ClientError, ONLY_OWNER, Refused};

/// A connection that was not used for so long may have been closed by the
/// other side; a fresh one is taken.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// A stream that sends nothing for so long, not even that it is still there,
/// is dead: the server says that every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Asks a running Longwire.
pub struct Client {
    runtime: Runtime,
    address: Address,
    authorization: Option<HeaderValue>,
    /// The attachment of a node whose run is asked.
    attachment: Option<String>,
    kept: Option<(Connection, Instant)>,
    /// The longest time of a request, less than the limits of its parts.
    time_limit: Option<Duration>,
}

/// The decision of a stream's reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event.
    More,
    /// No more.
    Enough,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reader stopped.
    Here,
    /// The other side closed it.
    There,
}

impl Client {
    /// A client of the Longwire at this address, with the token that it
    /// wants. Nothing is sent yet.
    ///
    /// # Errors
    /// If the system refuses, or the token cannot stand in a header.
    pub fn new(address: Address, token: Option<&[u8]>) -> Result<Client, ClientError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClientError::System)?;
        let authorization = token.map(|token| {
            let mut value = HeaderValue::from_bytes(&[b"Bearer ", token].concat())?;
            value.set_sensitive(true);
            Ok(value)
        });
        let authorization = authorization.transpose();
        let authorization =
            authorization.map_err(|_: hyper::header::InvalidHeaderValue| ClientError::Token)?;
        Ok(Client {
            runtime,
            address,
            authorization,
            attachment: None,
            kept: None,
            time_limit: None,
        })
    }

    /// Asks the run of an attachment of a node: paths are those of its control API.
    #[must_use]
    pub fn of_attachment(self, name: &str) -> Client {
        Client {
            attachment: Some(name.to_owned()),
            ..self
        }
    }

    /// Returns a path as the server knows it.
    fn whole(&self, path: &str) -> String {
        match &self.attachment {
            Some(name) => format!("/v1/attachments/{name}/{}", below(path)),
            None => path.to_owned(),
        }
    }

    /// Limits the time of each request but [`Client::stream`], connecting included.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = Some(limit);
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Reads what is at a path.
    ///
    /// # Errors
    /// If no program answers, the answer is cut short or none of Longwire's, or
    /// the request is refused.
    pub fn get(&mut self, path: &str) -> Result<Value, ClientError> {
        self.ask(Method::GET, path, None)
    }

    /// Has something done.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn post(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask(Method::POST, path, Some(body))
    }

    /// Has something made, or changed into this.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn put(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask(Method::PUT, path, Some(body))
    }

    /// Has something removed.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn delete(&mut self, path: &str) -> Result<Value, ClientError> {
        self.ask(Method::DELETE, path, None)
    }

    fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let path = &self.whole(path);
        let wanted = Wanted {
            method,
            path,
            body,
            authorization: self.authorization.as_ref(),
        };
        let kept = self.kept.take();
        let kept = kept.filter(|(_, used)| used.elapsed() < IDLE_MAX);
        let address = &self.address;
        let ask = async {
            let mut connection = match kept {
                Some((connection, _)) if connection.is_open().await => connection,
                _ => Connection::open(address).await?,
            };
            let asked = connection.ask(&wanted).await?;
            Ok((asked, connection))
        };
        let asked: Result<(Asked, Connection), ClientError> = self.runtime.block_on(async {
            let Some(limit) = self.time_limit else {
                return ask.await;
            };
            let slow = || ClientError::Slow {
                address: address.clone(),
                what: "did not answer",
                seconds: limit.as_secs(),
            };
            within(limit, ask).await.ok_or_else(slow)?
        });
        let (asked, connection) = asked?;
        self.kept = Some((connection, Instant::now()));
        asked.json(&self.address)
    }

    /// Reads a stream of events and hands each to `take`, until that has
    /// enough, `stop` is set, or the stream ends.
    ///
    /// # Errors
    /// As [`Client::get`]; or the error of `take`.
    pub fn stream<E: From<ClientError>>(
        &mut self,
        path: &str,
        stop: &AtomicBool,
        mut take: impl FnMut(Value) -> Result<Next, E>,
    ) -> Result<Ended, E> {
        let path = &self.whole(path);
        let wanted = Wanted {
            method: Method::GET,
            path,
            body: None,
            authorization: self.authorization.as_ref(),
        };
        let address = &self.address;
        self.runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let mut flow = connection.flow(&wanted, address).await?;
            loop {
                let Some(events) = flow.next(SILENCE_MAX, stop).await? else {
                    return Ok(Ended::There);
                };
                for event in events {
                    let value = connection::parse(event.data.as_bytes(), address)?;
                    match event.kind.as_str() {
                        "" => match take(value)? {
                            Next::More => {}
                            Next::Enough => return Ok(Ended::Here),
                        },
                        "end" => return Ok(Ended::There),
                        "error" => return Err(refusal(value, address).into()),
                        // Kinds of later versions are passed over.
                        _ => {}
                    }
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(Ended::Here);
                }
            }
        })
    }
}

/// Returns a path of the control API below that of an attachment.
fn below(path: &str) -> &str {
    match path.strip_prefix("/v1") {
        // The overview of the run.
        Some("") => "run",
        Some(rest) => rest.trim_start_matches('/'),
        None => path.trim_start_matches('/'),
    }
}

/// Returns the error with which a stream ended early.
fn refusal(value: Value, address: &Address) -> ClientError {
    const BAD_REQUEST: u16 = 400;
    match serde_json::from_value::<Refused>(value) {
        Ok(refused) => ClientError::Refused(Refused {
            status: BAD_REQUEST,
            ..refused
        }),
        Err(error) => ClientError::strange(address, error.to_string()),
    }
}
