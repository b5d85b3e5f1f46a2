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
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use self::api::{Api, WORK_MAX};
use self::guard::{Files, Tokens};
use self::node::{Attachments, NodeApi};
use self::server::{Admission, Background, Handler, Listener, serve, slow_pool};
use self::state::ApiState;
use self::view::{View, random_tokens};
pub use crate::config::{Judge, Judgement, PageFile, ViewConfig};
pub use crate::guard::read_token;
use crate::limits::Limit;
use crate::reply::Refusal;
use crate::route::Work;

/// Bound addresses. Connections wait until the server starts. Dropping the value closes the
/// sockets.
pub struct Bound {
    listeners: Vec<Listener>,
    notes: Vec<String>,
    tokens: Tokens,
    files: Files,
    /// URLs of the view, if there is one.
    view: Option<ViewUrls>,
    config: Config,
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
/// If the configuration is invalid or an address cannot be bound. On error, no address stays
/// bound.
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
                let (listener, taken) = listen(*wanted).map_err(ControlError::listen(*wanted))?;
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
    let view = config.view.as_ref();
    let view = view.map(|view| bind_view(view, &mut listeners, &mut notes, &mut tokens));
    Ok(Bound {
        listeners,
        notes,
        tokens,
        files,
        view: view.transpose()?,
        config: config.clone(),
    })
}

/// Listens at an address, and returns the one taken: for port 0, the system chooses a port.
fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let taken = listener.local_addr()?;
    Ok((listener, taken))
}

/// Binds the address of a view, and adds its tokens.
fn bind_view(
    config: &ViewConfig,
    listeners: &mut Vec<Listener>,
    notes: &mut Vec<String>,
    tokens: &mut Tokens,
) -> Result<ViewUrls, ControlError> {
    let failed = ControlError::listen(config.address);
    let (listener, taken) = listen(config.address).map_err(&failed)?;
    let [full, read] = random_tokens().map_err(failed)?;
    let url = |token: &str| format!("http://{}/#token={token}", shown(taken));
    if !taken.ip().is_loopback() {
        notes.push(format!(
            "view: its token crosses the network unencrypted to {taken}; use a tunnel such as ssh \
             unless the network is private"
        ));
    }
    let urls = ViewUrls {
        full: url(&full),
        read: url(&read),
    };
    tokens.add(full.into_bytes(), read.into_bytes());
    listeners.push(Listener::Tcp(listener));
    Ok(urls)
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

/// Returns the change that a request makes, if any, as parsed by the server. `target` is the path
/// with its query.
///
/// # Errors
/// The refusal in one line.
pub fn requested_change(method: &str, target: &str, body: &[u8]) -> Result<Option<Value>, String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let read = || {
        let (route, mut call) = api::read_head(method, path, Some(query))?;
        if route.body.is_some() {
            call.body = api::parse_body(body)?;
        }
        Ok(match route.work {
            Work::Change(make, _) => Some(make(&call)),
            _ => None,
        })
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
        self.view.as_ref()
    }

    /// Serves a run until the server is dropped. Returns `None` without addresses.
    ///
    /// # Errors
    /// [`ControlError::Start`].
    pub fn serve(self, controller: Arc<Controller>) -> Result<Option<Server>, ControlError> {
        let view = Arc::new(View::new(self.view.is_some(), self.config.judge));
        let metrics = self.config.metrics;
        self.serve_with(|files, stopped, slow| {
            let state = ApiState::new(controller, metrics, stopped, slow);
            let state = Arc::new(ApiState { view, ..state });
            let work = Arc::new(Semaphore::new(WORK_MAX));
            let api = Arc::new(Api::new(Arc::clone(&state), files, work));
            let handler: Arc<Handler> =
                Arc::new(move |request, caller| Box::pin(Arc::clone(&api).answer(request, caller)));
            (handler, Some(Box::pin(view::answers::sample(state))))
        })
    }

    /// Serves a node until the server is dropped. Returns `None` without addresses.
    ///
    /// # Errors
    /// [`ControlError::Start`].
    pub fn serve_node(
        self,
        attachments: Arc<dyn Attachments>,
    ) -> Result<Option<Server>, ControlError> {
        self.serve_with(|files, stopped, slow| {
            let api = Arc::new(NodeApi::new(attachments, files, stopped, slow));
            let handler: Arc<Handler> =
                Arc::new(move |request, caller| Box::pin(Arc::clone(&api).answer(request, caller)));
            (handler, None)
        })
    }

    /// Starts a server with the handler that `make` returns, unless there are no addresses.
    fn serve_with(
        self,
        make: impl FnOnce(Files, watch::Receiver<bool>, Handle) -> (Arc<Handler>, Option<Background>),
    ) -> Result<Option<Server>, ControlError> {
        if self.listeners.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = watch::channel(false);
        let slow = slow_pool()?;
        let (handler, background) = make(self.files, stopped, slow.handle().clone());
        let admission = Admission {
            tokens: self.tokens,
            limit: Limit::new(self.config.limit),
            refused: Limit::new(self.config.limit),
        };
        let page = self.config.view.map_or(&[][..], |view| view.files);
        let site = (admission, page);
        serve(self.listeners, site, handler, (stop, slow), background).map(Some)
    }
}
