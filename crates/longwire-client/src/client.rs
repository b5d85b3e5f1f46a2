//! Blocking and asynchronous clients.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::Address;
use super::connection::{self, Connection, RequestParts, Response};
use super::error::{ClientError, Refusal};
use super::time_limit::within;

/// Maximum idle time of a connection that is reused; servers close idle connections.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Maximum silence on an event stream; servers send a heartbeat every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Default maximum length of a response: several times that of a page of 10,000 links.
const RESPONSE_MAX: usize = 256 << 20;

/// HTTP client on the caller's tokio runtime.
pub struct AsyncClient {
    address: Address,
    authorization: Option<HeaderValue>,
    idle: Option<(Connection, Instant)>,
    time_limit: Option<Duration>,
    response_max: usize,
}

impl AsyncClient {
    /// Creates a client that sends `token` with each request. It connects at the first request.
    ///
    /// # Errors
    /// [`ClientError::Token`] if the token is not a valid header value.
    pub fn new(address: Address, token: Option<&[u8]>) -> Result<AsyncClient, ClientError> {
        let authorization = token.map(|token| {
            let value = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
            let mut value = value.map_err(|_| ClientError::Token)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(AsyncClient {
            address,
            authorization: authorization.transpose()?,
            idle: None,
            time_limit: None,
            response_max: RESPONSE_MAX,
        })
    }

    /// Limits the total time of each request, including the time to connect.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = Some(limit);
    }

    /// Limits the length of responses, in bytes.
    pub fn set_response_max(&mut self, bytes: usize) {
        self.response_max = bytes;
    }

    /// Sends a request and parses the JSON response.
    ///
    /// # Errors
    /// Any [`ClientError`]; `Refused` for an error status.
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        self.fetch(method, path, body).await?.json(&self.address)
    }

    /// Sends a request and returns the response, even if it is an error.
    ///
    /// # Errors
    /// Any [`ClientError`] except `Refused`.
    pub async fn fetch(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, ClientError> {
        let idle = self.idle.take();
        let idle = idle.filter(|(_, used)| used.elapsed() < IDLE_MAX);
        let request = RequestParts {
            method,
            path,
            body,
            authorization: self.authorization.as_ref(),
        };
        let exchange = async {
            let mut connection = match idle {
                Some((connection, _)) if connection.is_open().await => connection,
                _ => Connection::open(&self.address).await?,
            };
            let response = connection.fetch(&request, self.response_max).await?;
            Ok((response, connection))
        };
        let (response, connection) = match self.time_limit {
            None => exchange.await?,
            Some(limit) => within(limit, exchange)
                .await
                .ok_or_else(|| ClientError::timeout(&self.address, "did not respond", limit))??,
        };
        self.idle = Some((connection, Instant::now()));
        Ok(response)
    }
}

/// Blocking HTTP client. Needs no thread, because calls drive the connection.
pub struct Client {
    runtime: Runtime,
    client: AsyncClient,
    /// Attachment of the node whose run receives the requests.
    attachment: Option<String>,
}

/// Reason for the end of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The caller stopped it.
    Stopped,
    /// The server closed it.
    Closed,
}

impl Client {
    /// Creates a client that sends `token` with each request. It connects at the first request.
    ///
    /// # Errors
    /// [`ClientError::System`], or [`ClientError::Token`] if the token is not a valid header
    /// value.
    pub fn new(address: Address, token: Option<&[u8]>) -> Result<Client, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Client {
            runtime: runtime.map_err(ClientError::System)?,
            client: AsyncClient::new(address, token)?,
            attachment: None,
        })
    }

    /// Sends requests to the run of a node's attachment; paths are those of the run's control API.
    #[must_use]
    pub fn of_attachment(self, name: &str) -> Client {
        Client {
            attachment: Some(name.to_owned()),
            ..self
        }
    }

    fn server_path(&self, path: &str) -> String {
        match &self.attachment {
            Some(name) => format!("/v1/attachments/{name}/{}", relative(path)),
            None => path.to_owned(),
        }
    }

    /// Limits the total time of each request, including the time to connect. Does not apply to
    /// [`Client::stream`].
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.client.set_time_limit(limit);
    }

    /// Limits the length of responses, in bytes.
    pub fn set_response_max(&mut self, bytes: usize) {
        self.client.set_response_max(bytes);
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        &self.client.address
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub fn get(&mut self, path: &str) -> Result<Value, ClientError> {
        self.request(Method::GET, path, None)
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub fn post(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.request(Method::POST, path, Some(body))
    }

    /// Sends a PUT request.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub fn put(&mut self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.request(Method::PUT, path, Some(body))
    }

    /// Sends a DELETE request.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub fn delete(&mut self, path: &str) -> Result<Value, ClientError> {
        self.request(Method::DELETE, path, None)
    }

    fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let path = self.server_path(path);
        let request = self.client.request(method, &path, body);
        self.runtime.block_on(request)
    }

    /// Sends a GET request and returns the response, even if it is an error.
    ///
    /// # Errors
    /// Any [`ClientError`] except `Refused`.
    pub fn fetch(&mut self, path: &str) -> Result<Response, ClientError> {
        let path = self.server_path(path);
        let request = self.client.fetch(Method::GET, &path, None);
        self.runtime.block_on(request)
    }

    /// Reads an event stream and passes each event to `take`, until `take` breaks, `stop` is set or
    /// the stream ends.
    ///
    /// # Errors
    /// Any [`ClientError`], or an error from `take`.
    pub fn stream<E: From<ClientError>>(
        &mut self,
        path: &str,
        stop: &AtomicBool,
        mut take: impl FnMut(Value) -> Result<ControlFlow<()>, E>,
    ) -> Result<StreamEnd, E> {
        let path = &self.server_path(path);
        let request = RequestParts {
            method: Method::GET,
            path,
            body: None,
            authorization: self.client.authorization.as_ref(),
        };
        let address = &self.client.address;
        self.runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let mut stream = connection.event_stream(&request).await?;
            loop {
                let Some(events) = stream.next(SILENCE_MAX, stop).await? else {
                    return Ok(StreamEnd::Closed);
                };
                for event in events {
                    let value = connection::parse(event.data.as_bytes(), address)?;
                    let stops = match event.kind.as_str() {
                        "" => take(value)?.is_break(),
                        "end" => return Ok(StreamEnd::Closed),
                        "error" => return Err(stream_error(value, address).into()),
                        // Ignore kinds of events that a later version may add.
                        _ => false,
                    };
                    if stops {
                        return Ok(StreamEnd::Stopped);
                    }
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(StreamEnd::Stopped);
                }
            }
        })
    }
}

/// Returns a path of a run's control API relative to the attachment.
fn relative(path: &str) -> &str {
    match path.strip_prefix("/v1") {
        // The root is the overview of the run.
        Some("") => "run",
        Some(rest) => rest.trim_start_matches('/'),
        None => path.trim_start_matches('/'),
    }
}

/// Returns the error of a stream that ended early.
fn stream_error(value: Value, address: &Address) -> ClientError {
    const BAD_REQUEST: u16 = 400;
    match serde_json::from_value(value) {
        Ok(body) => ClientError::Refused(Refusal {
            status: BAD_REQUEST,
            body,
        }),
        Err(error) => ClientError::protocol(address, error.to_string()),
    }
}
