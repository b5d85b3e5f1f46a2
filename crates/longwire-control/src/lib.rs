//! HTTP server of the control API, over a Unix socket or TCP. Clients read and change a running
//! network.
//!
//! ```
//! use longwire_control::{Address, Config, bind, requested_change};
//!
//! # let directory = std::env::temp_dir().join(format!("doc-control-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).expect("a directory");
//! # let path = directory.join("net.sock");
//! let bound = bind(&Config {
//!     addresses: vec![Address::Unix(path.clone())],
//!     ..Config::default()
//! })?;
//! assert_eq!(bound.notes(), [format!("control: {}", path.display())]);
//!
//! // Requests become changes of the network.
//! let change = requested_change("PATCH", "/v1/links/adsl*", br#"{ "delay": "50ms" }"#);
//! let change = change.expect("a valid request").expect("a change");
//! assert_eq!(change["set"]["adsl*"]["delay"], "50ms");
//! # drop(bound);
//! # std::fs::remove_dir_all(&directory).expect("it was made");
//! # Ok::<(), longwire_control::ControlError>(())
//! ```
//!
//! [`bind`] binds the addresses before a run starts, and [`Bound::serve`] serves a [`Controller`]
//! on a separate thread. Dispatch, methods and the OpenAPI document derive from the table in
//! `routes.rs`. The client is [`longwire_client`].

mod api;
mod config;
mod error;
mod guard;
mod limits;
mod metrics;
pub mod node;
mod openapi;
pub mod registry;
mod reply;
pub mod responses;
mod route;
mod routes;
mod server;
mod socket;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod view;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

pub use config::{Config, Detail, LIMIT_DEFAULT};
pub use error::ControlError;
pub use longwire_client::Address;
use longwire_network::Controller;
use serde_json::Value;
pub use server::Server;
use tokio::sync::watch;

use self::api::Api;
use self::guard::{Files, Tokens};
use self::node::{Attachments, NodeApi};
use self::server::{Admission, Background, Handler, Listener, SlowPool, serve};
use self::state::ApiState;
use self::view::{View, ViewTokens};
pub use crate::config::{Judge, Judgement, PageFile, ViewConfig};
pub use crate::guard::read_token;
use crate::limits::Limit;
use crate::reply::Refusal;

/// Bound addresses. Connections wait until the server starts. Dropping it closes the sockets.
pub struct Bound {
    listeners: Vec<Listener>,
    notes: Vec<String>,
    tokens: Tokens,
    limit: u32,
    metrics: Detail,
    files: Files,
    view: Option<BoundView>,
    judge: Option<Judge>,
}

/// A view whose address is bound.
struct BoundView {
    config: ViewConfig,
    urls: ViewUrls,
}

/// URLs of a view's page, with tokens.
#[derive(Clone, Debug)]
pub struct ViewUrls {
    /// Allows changes.
    pub full: String,
    /// Allows reading.
    pub read: String,
}

/// Binds all addresses, before the run starts.
///
/// # Errors
/// If the configuration is invalid or an address cannot be bound; no address is bound then.
pub fn bind(config: &Config) -> Result<Bound, ControlError> {
    let mut tokens = config.tokens()?;
    let files = config.files()?;
    let mut listeners = Vec::new();
    let mut notes = Vec::new();
    for address in &config.addresses {
        match address {
            Address::Unix(path) => {
                let (listener, named) = socket::open(path)?;
                listeners.push(Listener::Unix(listener, named));
                notes.push(format!("control: {address}"));
            }
            Address::Tcp(wanted) => {
                let failed = |source: io::Error| ControlError::Listen {
                    address: address.clone(),
                    source,
                };
                let listener = TcpListener::bind(wanted).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                // Port 0 lets the system choose one.
                let taken = listener.local_addr().map_err(failed)?;
                notes.push(format!("control: {}", Address::Tcp(taken)));
                if !taken.ip().is_loopback() {
                    notes.push(format!(
                        "control: tokens cross the network unencrypted to {taken}; use a tunnel \
                         such as ssh unless the network is private"
                    ));
                }
                listeners.push(Listener::Tcp(listener));
            }
        }
    }
    if config.view.is_some() && config.addresses.is_empty() {
        match socket::open_own() {
            Ok((listener, named)) => {
                notes.push(format!("control: {}", named.path().display()));
                listeners.push(Listener::Unix(listener, named));
            }
            // Not an error: the page does not need a socket.
            Err(error) => notes.push(format!(
                "control: no socket could be opened for `longwire ctl` and `longwire top`, which \
                 need --control PATH: {error}"
            )),
        }
    }
    let view = match &config.view {
        Some(view) => Some(bind_view(view, &mut listeners, &mut notes, &mut tokens)?),
        None => None,
    };
    Ok(Bound {
        listeners,
        notes,
        tokens,
        limit: config.limit,
        metrics: config.metrics,
        files,
        view,
        judge: config.judge,
    })
}

/// Binds the address of a view, and adds its tokens.
fn bind_view(
    config: &ViewConfig,
    listeners: &mut Vec<Listener>,
    notes: &mut Vec<String>,
    tokens: &mut Tokens,
) -> Result<BoundView, ControlError> {
    let failed = |source: io::Error| ControlError::Listen {
        address: Address::Tcp(config.address),
        source,
    };
    let listener = TcpListener::bind(config.address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let taken = listener.local_addr().map_err(failed)?;
    let own = ViewTokens::random().map_err(failed)?;
    let url = |token: &str| format!("http://{}/#token={token}", shown(taken));
    if !taken.ip().is_loopback() {
        notes.push(format!(
            "view: its token crosses the network unencrypted to {taken}; use a tunnel such as ssh \
             unless the network is private"
        ));
    }
    let urls = ViewUrls {
        full: url(&own.full),
        read: url(&own.read),
    };
    tokens.add(own.full.into_bytes(), own.read.into_bytes());
    listeners.push(Listener::Tcp(listener));
    Ok(BoundView {
        config: config.clone(),
        urls,
    })
}

/// Returns the address at which a browser on this machine reaches the page.
fn shown(taken: SocketAddr) -> SocketAddr {
    let mut shown = taken;
    if taken.ip().is_unspecified() {
        shown.set_ip(match taken {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    shown
}

/// Binds all addresses and starts the server.
///
/// # Errors
/// See [`bind`] and [`Bound::serve`].
pub fn start(controller: Arc<Controller>, config: &Config) -> Result<Option<Server>, ControlError> {
    bind(config)?.serve(controller)
}

/// Returns the change that a request makes, if any, as parsed by the server. `target` is the path
/// with its query.
///
/// # Errors
/// The refusal in one line.
pub fn requested_change(method: &str, target: &str, body: &[u8]) -> Result<Option<Value>, String> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let read = || {
        let (route, mut call) = api::read_head(method, path, query)?;
        if route.body.is_some() {
            call.body = api::parse_body(body)?;
        }
        Ok(route.change(&call))
    };
    read().map_err(|refusal: Refusal| refusal.line().to_owned())
}

impl Bound {
    /// Returns notes on the addresses, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns whether there are addresses for clients.
    pub fn takes_clients(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Returns the address for programs of this run, in the format of `ctl`. Prefers the absolute
    /// path of a socket, which needs no network. Returns `None` without addresses, or with only the
    /// view's address.
    ///
    /// # Errors
    /// If the address of a listener is unknown.
    pub fn address(&self) -> io::Result<Option<OsString>> {
        let is_socket = |listener: &&Listener| matches!(listener, Listener::Unix(..));
        let socket = self.listeners.iter().find(is_socket);
        let first = self
            .listeners
            .first()
            .filter(|_| self.view.is_none() || self.listeners.len() > 1);
        let Some(listener) = socket.or(first) else {
            return Ok(None);
        };
        Ok(Some(match listener {
            Listener::Unix(_, named) => std::path::absolute(named.path())?.into(),
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?).to_string().into(),
        }))
    }

    /// Returns the URLs of the view's page; `None` without a view.
    pub fn view_urls(&self) -> Option<&ViewUrls> {
        self.view.as_ref().map(|view| &view.urls)
    }

    /// Serves a run until the server is dropped. Returns `None` without addresses.
    ///
    /// # Errors
    /// [`ControlError::Start`].
    pub fn serve(self, controller: Arc<Controller>) -> Result<Option<Server>, ControlError> {
        if self.listeners.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = watch::channel(false);
        let slow = SlowPool::new()?;
        let state = ApiState::new(controller, self.metrics, stopped, slow.handle());
        let view = View::new(self.view.is_some(), self.judge);
        let state = Arc::new(state.with_view(view));
        let api = Arc::new(Api::new(Arc::clone(&state), self.files.clone()));
        let handler: Arc<Handler> =
            Arc::new(move |request, caller| Box::pin(Arc::clone(&api).answer(request, caller)));
        let sampling: Background = Box::pin(view::answers::sample(state));
        self.serve_with(handler, stop, slow, Some(sampling))
            .map(Some)
    }

    /// Serves a node until the server is dropped. Returns `None` without addresses.
    ///
    /// # Errors
    /// [`ControlError::Start`].
    pub fn serve_node(
        self,
        attachments: Arc<dyn Attachments>,
    ) -> Result<Option<Server>, ControlError> {
        if self.listeners.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = watch::channel(false);
        let slow = SlowPool::new()?;
        let api = NodeApi::new(attachments, self.files.clone(), stopped, slow.handle());
        let api = Arc::new(api);
        let handler: Arc<Handler> =
            Arc::new(move |request, caller| Box::pin(Arc::clone(&api).answer(request, caller)));
        self.serve_with(handler, stop, slow, None).map(Some)
    }

    /// Starts a server with a handler.
    fn serve_with(
        self,
        handler: Arc<Handler>,
        stop: watch::Sender<bool>,
        slow: SlowPool,
        background: Option<Background>,
    ) -> Result<Server, ControlError> {
        let admission = Admission {
            tokens: self.tokens,
            limit: Limit::new(self.limit),
            refused: Limit::new(self.limit),
        };
        let page = self.view.map_or(&[][..], |view| view.config.files);
        serve(
            self.listeners,
            (admission, page),
            handler,
            (stop, slow),
            background,
        )
    }
}
