//! The control API: HTTP over a Unix socket or TCP, through which a running
//! network is read and changed.
//!
//! [`bind`] takes the addresses before a run starts, [`Bound::serve`] answers
//! at them from a thread of its own. `routes.rs` has the table of all there is;
//! which request is for what, which methods a path takes and the OpenAPI
//! document follow from it.

mod address;
mod api;
mod args;
mod bodies;
pub mod client;
mod guard;
mod limit;
mod metrics;
mod openapi;
mod patience;
mod places;
mod query;
mod refusal;
mod reply;
mod route;
mod routes;
mod schemas;
mod server;
mod socket;
mod stats;
mod stream;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use self::api::Api;
use self::guard::{Files, Tokens};
use self::limit::Limit;
use self::refusal::Refusal;
use self::server::{Gate, Handler, Listener, Slow, serve};
use crate::Error;
use crate::fabric::Controller;

pub use address::Address;
pub(crate) use args::token;
pub use args::{ControlArgs, Detail};
pub use server::Server;
pub(crate) use socket::CANNOT_LISTEN;

/// Addresses at which somebody will answer. Whoever connects before that
/// waits. Dropping it gives them back.
pub struct Bound {
    listeners: Vec<Listener>,
    notes: Vec<String>,
    tokens: Tokens,
    limit: u32,
    metrics: Detail,
    files: Files,
}

/// Takes the addresses, before anything is started.
///
/// # Errors
/// If the arguments are wrong or an address cannot be had; then none is held.
pub fn bind(args: &ControlArgs) -> Result<Bound, Error> {
    let tokens = args.tokens()?;
    let files = args.files()?;
    let mut listeners = Vec::new();
    let mut notes = Vec::new();
    for address in &args.control {
        match address {
            Address::Unix(path) => {
                let (listener, named) = socket::open(path)?;
                listeners.push(Listener::Unix(listener, named));
                notes.push(format!("control: {address}"));
            }
            Address::Tcp(wanted) => {
                let failed = |error: io::Error| {
                    Error::Failed(format!("--control {address}: cannot listen: {error}"))
                };
                let listener = TcpListener::bind(wanted).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                // With port 0 the system has chosen one.
                let taken = listener.local_addr().map_err(failed)?;
                notes.push(format!("control: {}", Address::Tcp(taken)));
                if !taken.ip().is_loopback() {
                    notes.push(format!(
                        "control: tokens cross the network in the clear to {taken}: use a \
                         tunnel, as of ssh, unless the network is yours alone"
                    ));
                }
                listeners.push(Listener::Tcp(listener));
            }
        }
    }
    Ok(Bound {
        listeners,
        notes,
        tokens,
        limit: args.control_limit,
        metrics: args.metrics_links,
        files,
    })
}

/// Takes the addresses and answers at them.
///
/// # Errors
/// As [`bind`] and [`Bound::serve`].
pub fn start(controller: Arc<Controller>, args: &ControlArgs) -> Result<Option<Server>, Error> {
    bind(args)?.serve(controller)
}

/// The change that a request asks for; `None` if it asks for none. What is
/// sent is read as the server reads it: `target` is the path with its query.
///
/// # Errors
/// Why it would be refused, in one line.
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
    /// Where it listens, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The address at which a program of this run finds it, as `ctl` reads it:
    /// a socket if there is one, which needs no network, as an absolute path.
    /// `None` without addresses.
    ///
    /// # Errors
    /// If the address of a listener cannot be read.
    pub fn address(&self) -> io::Result<Option<OsString>> {
        let is_socket = |listener: &&Listener| matches!(listener, Listener::Unix(..));
        let socket = self.listeners.iter().find(is_socket);
        let Some(listener) = socket.or(self.listeners.first()) else {
            return Ok(None);
        };
        Ok(Some(match listener {
            Listener::Unix(_, named) => std::path::absolute(named.path())?.into(),
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?).to_string().into(),
        }))
    }

    /// Answers about this run until the server is dropped. `None` when there
    /// are no addresses.
    ///
    /// # Errors
    /// If the thread cannot be had.
    pub fn serve(self, controller: Arc<Controller>) -> Result<Option<Server>, Error> {
        if self.listeners.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = watch::channel(false);
        let slow = Slow::new()?;
        let api = Api::new(
            controller,
            self.metrics,
            self.files.clone(),
            stopped,
            slow.handle(),
        );
        let api = Arc::new(api);
        let handler: Arc<Handler> =
            Arc::new(move |request, caller| Box::pin(Arc::clone(&api).answer(request, caller)));
        self.serve_with(handler, stop, slow).map(Some)
    }

    /// Answers with anything.
    fn serve_with(
        self,
        handler: Arc<Handler>,
        stop: watch::Sender<bool>,
        slow: Slow,
    ) -> Result<Server, Error> {
        let gate = Gate {
            tokens: self.tokens,
            limit: Limit::new(self.limit),
            strangers: Limit::new(self.limit),
        };
        serve(self.listeners, gate, handler, stop, slow)
    }
}
