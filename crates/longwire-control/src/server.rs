//! The HTTP server, on a separate thread.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use longwire_client::time_limit::LimitTimer;
use longwire_io::rights::{self, Capability};
use longwire_runtime::host::{lower_priority, prompt_priority, return_large_blocks};
use nix::unistd::geteuid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::guard::{Caller, Peer, Tokens, check_origin};
use super::reply::{Body, Refusal};
use super::socket::SocketName;
use super::view::page;
use crate::config::PageFile;
use crate::error::ControlError;
use crate::limits::{Limit, Slot, SlotGuard, SlotTable, StallLimit};

/// Maximum connections per address; a new connection evicts the one that has been idle longest.
/// Requests and streams are limited to fewer ([`super::api`]), so some connections are always idle.
pub const CONNECTIONS_MAX: usize = 256;

/// Time limit for a request head, since the connection was opened or the previous response ended.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Limits for a request head, in bytes and in headers.
const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// Read buffer of a connection, in bytes.
const BUFFER_MAX: usize = 64 << 10;

/// Time allowed at shutdown for responses in progress.
const GRACE: Duration = Duration::from_millis(300);

/// Number of threads for blocking work, and for slow work.
const BLOCKING_MAX: usize = 16;
const SLOW_MAX: usize = 4;

/// Creates the low-priority threads for long, non-urgent work. They start on demand.
///
/// # Errors
/// [`ControlError::Start`].
pub fn slow_pool() -> Result<Runtime, ControlError> {
    Builder::new_current_thread()
        .max_blocking_threads(SLOW_MAX)
        .thread_name("longwire-ctl-s")
        .on_thread_start(lower_priority)
        .build()
        .map_err(ControlError::Start)
}

/// Handler of admitted requests.
pub type Handler = dyn Fn(Request<Incoming>, Caller) -> ResponseFuture + Send + Sync;

/// Task that runs until the server ends.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A response in progress.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Refusal>> + Send>>;

/// Conditions for admission.
pub struct Admission {
    /// Accepted tokens.
    pub tokens: Tokens,
    /// Rate limit for admitted requests.
    pub limit: Limit,
    /// Rate limit for refused requests, which do not count towards `limit`.
    pub refused: Limit,
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// Unix socket, with its path, which is removed when dropped.
    Unix(UnixListener, SocketName),
    /// TCP socket.
    Tcp(TcpListener),
}

/// A running server, stopped on drop.
#[derive(Debug)]
pub struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the server. `page` needs no token. Sending `true` to `stop` ends the streams, then the
/// server with its `background` task.
///
/// # Errors
/// [`ControlError::Start`].
pub fn serve(
    listeners: Vec<Listener>,
    (admission, page): (Admission, &'static [PageFile]),
    handler: Arc<Handler>,
    (stop, slow): (watch::Sender<bool>, Runtime),
    background: Option<Background>,
) -> Result<Server, ControlError> {
    return_large_blocks();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_name("longwire-ctl-w")
        .build()
        .map_err(ControlError::Start)?;
    let mut names = Vec::new();
    let within = runtime.enter();
    let acceptors = listeners.into_iter().map(|listener| match listener {
        Listener::Unix(listener, name) => {
            names.push(name);
            tokio::net::UnixListener::from_std(listener).map(Acceptor::Unix)
        }
        Listener::Tcp(listener) => tokio::net::TcpListener::from_std(listener).map(Acceptor::Tcp),
    });
    let acceptors = acceptors.collect::<io::Result<Vec<Acceptor>>>();
    let acceptors = acceptors.map_err(ControlError::Start)?;
    drop(within);
    let state = Arc::new(ServerState {
        admission,
        page,
        handler,
        stopped: stop.subscribe(),
    });
    let thread = std::thread::Builder::new()
        .name("longwire-ctl".to_owned())
        .spawn(move || {
            // This thread and its children open files named by clients.
            let _ = rights::give_up(&[Capability::DacOverride]);
            prompt_priority();
            run(runtime, acceptors, &state, background);
            slow.shutdown_background();
            // Remove the sockets once they are no longer served.
            drop(names);
        })
        .map_err(ControlError::Start)?;
    Ok(Server {
        stop,
        thread: Some(thread),
    })
}

impl Server {
    /// Stops the server and its streams within a second, and removes its sockets.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for the server to end.
pub async fn ended(stopped: &mut watch::Receiver<bool>) {
    // On an error, the sender has been dropped, so the server has ended too.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// State shared by all connections.
struct ServerState {
    admission: Admission,
    page: &'static [PageFile],
    handler: Arc<Handler>,
    stopped: watch::Receiver<bool>,
}

/// A listening socket of the async runtime.
enum Acceptor {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

fn run(
    runtime: Runtime,
    acceptors: Vec<Acceptor>,
    state: &Arc<ServerState>,
    background: Option<Background>,
) {
    runtime.block_on(async {
        if let Some(background) = background {
            tokio::spawn(background);
        }
        // Each connection holds a sender; the channel closes after the last one.
        let (open, mut closed) = mpsc::channel(1);
        for acceptor in acceptors {
            tokio::spawn(listen(acceptor, Arc::clone(state), open.clone()));
        }
        drop(open);
        let mut stopped = state.stopped.clone();
        ended(&mut stopped).await;
        let _ = timeout(GRACE, closed.recv()).await;
    });
    // Do not wait for tasks that are waiting for the network.
    runtime.shutdown_timeout(GRACE);
}

/// Accepts connections until the server ends.
async fn listen(acceptor: Acceptor, state: Arc<ServerState>, open: mpsc::Sender<()>) {
    let places = SlotTable::new(CONNECTIONS_MAX);
    let mut stopped = state.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            () = ended(&mut stopped) => return,
        };
        let accepted = match accepted {
            Ok(Some(accepted)) => accepted,
            Ok(None) => continue,
            // Usually the process is out of descriptors, some of which become free as connections
            // end.
            Err(_) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let held = tokio::select! {
            held = places.take() => held,
            () = ended(&mut stopped) => return,
        };
        let (state, open) = (Arc::clone(&state), open.clone());
        tokio::spawn(serve_connection(accepted, state, held, open));
    }
}

/// The socket of a connection.
trait Socket: AsyncRead + AsyncWrite + AsFd + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + AsFd + Send + Unpin> Socket for S {}

/// An accepted connection.
type Accepted = (Box<dyn Socket>, Peer);

impl Acceptor {
    /// Accepts a connection; `None` if it belongs to another user.
    async fn accept(&self) -> io::Result<Option<Accepted>> {
        match self {
            Acceptor::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                // The socket's mode excludes other users, unless the mode was changed.
                let peer = stream.peer_cred()?.uid();
                let may = peer == geteuid().as_raw() || peer == 0;
                Ok(may.then(|| (Box::new(stream) as _, Peer::Unix)))
            }
            Acceptor::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                let local = stream.local_addr()?;
                stream.set_nodelay(true)?;
                Ok(Some((Box::new(stream), Peer::Tcp(local))))
            }
        }
    }
}

async fn serve_connection(
    (stream, peer): Accepted,
    state: Arc<ServerState>,
    held: SlotGuard,
    _open: mpsc::Sender<()>,
) {
    let slot = Arc::clone(&held.0);
    let mut stopped = state.stopped.clone();
    let service = service_fn(|request| {
        let (state, slot) = (Arc::clone(&state), Arc::clone(&slot));
        async move { Ok::<_, Infallible>(state.answer(request, peer, slot).await) }
    });
    slot.keep_socket(stream.as_fd());
    let stream = StallLimit::new(stream, Arc::clone(&slot));
    let connection = http1::Builder::new()
        // A client such as `nc -N` closes its sending direction before the response.
        .half_close(true)
        .timer(LimitTimer)
        .header_read_timeout(HEAD_TIME)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Ignore errors, which concern only this client.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = slot.evicted.notified() => return,
        () = ended(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

impl ServerState {
    /// Answers a request if it is admitted.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        slot: Arc<Slot>,
    ) -> Response<Body> {
        if let Some(response) = self.page_file(&request, peer) {
            return response;
        }
        let answered = async {
            let caller = self.admit(&request, peer, slot)?;
            (self.handler)(request, caller).await
        };
        answered.await.unwrap_or_else(Refusal::into_response)
    }

    /// Returns a static file of the page if the request is for one.
    fn page_file(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Body>> {
        let file = page::file(self.page, request)?;
        let checked = check_origin(peer, request.uri(), request.headers())
            .and_then(|()| self.admission.refused.take().map_err(Refusal::too_many));
        Some(checked.map_or_else(Refusal::into_response, |()| file))
    }

    fn admit(
        &self,
        request: &Request<Incoming>,
        peer: Peer,
        slot: Arc<Slot>,
    ) -> Result<Caller, Refusal> {
        let known = check_origin(peer, request.uri(), request.headers())
            .and_then(|()| self.admission.tokens.rights(peer, request.headers()));
        let limit = match &known {
            Ok(_) => &self.admission.limit,
            Err(_) => &self.admission.refused,
        };
        limit.take().map_err(Refusal::too_many)?;
        let rights = known?;
        Ok(Caller { rights, peer, slot })
    }
}
