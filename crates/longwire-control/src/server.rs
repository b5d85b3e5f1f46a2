//! The server: it listens, and answers on a separate thread.

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
use longwire_io::rights::{self, Capability};
use longwire_runtime::host::{lower_priority, prompt_priority, return_large_blocks};
use nix::unistd::geteuid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::guard::{Caller, Peer, Tokens, check_origin};
use super::limit::Limit;
use super::patience::Patience;
use super::places::{Held, Places, Seat};
use super::refusal::Refusal;
use super::reply::Body;
use super::socket::Named;
use super::time_limit::LimitTimer;
use super::view::page;
use super::view_config::PageFile;
use crate::error::ControlError;

/// The most connections at one address. For one more, the one that has been
/// idle longest is closed. Fewer than these can have a request that is being
/// worked on ([`super::api`]), so that no others are kept out.
pub const CONNECTIONS_MAX: usize = 256;

/// A request's head must be there so soon after its connection, or after the
/// answer before it.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// The most of a request's head, in bytes and in headers.
const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// The most bytes that are read ahead of each connection.
const AHEAD_MAX: usize = 64 << 10;

/// The longest time for which a client may read nothing of an answer.
const STALL_TIME: Duration = Duration::from_secs(10);

/// At the end, answers that have begun may take so long.
const GRACE: Duration = Duration::from_millis(300);

/// Threads for work that waits for the fabric, and for work that takes long.
const BLOCKING_MAX: usize = 16;
const SLOW_MAX: usize = 4;

/// Threads for what takes long and is not urgent, of less priority than all
/// others.
pub struct Slow(Runtime);

impl Slow {
    /// Threads that are made when they are needed.
    ///
    /// # Errors
    /// If the system has no room for them.
    pub fn new() -> Result<Slow, ControlError> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(SLOW_MAX)
            .thread_name("longwire-ctl-s")
            .on_thread_start(lower_priority)
            .build();
        runtime.map(Slow).map_err(ControlError::Start)
    }

    /// To which work is given.
    pub fn handle(&self) -> Handle {
        self.0.handle().clone()
    }
}

/// A function that answers admitted requests.
pub type Handler = dyn Fn(Request<Incoming>, Caller) -> Answering + Send + Sync;

/// Work that the server does until it ends.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An answer that is being made.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// The conditions of admission.
pub struct Gate {
    /// With which tokens.
    pub tokens: Tokens,
    /// The limit of requests.
    pub limit: Limit,
    /// The limit of refused requests, which do not use up the limit of the others.
    pub strangers: Limit,
}

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// At a path, removed with it.
    Unix(UnixListener, Named),
    /// On TCP.
    Tcp(TcpListener),
}

/// A control API that answers. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Starts to answer, `page` without a token. What `stop` sends `true` to ends streams; it
/// ends the server too. `background` ends with it.
///
/// # Errors
/// If the thread cannot be had.
pub fn serve(
    listeners: Vec<Listener>,
    (gate, page): (Gate, &'static [PageFile]),
    handler: Arc<Handler>,
    (stop, slow): (watch::Sender<bool>, Slow),
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
    let mut doors = Vec::new();
    {
        let _within = runtime.enter();
        for listener in listeners {
            doors.push(match listener {
                Listener::Unix(listener, name) => {
                    names.push(name);
                    Door::Unix(
                        tokio::net::UnixListener::from_std(listener)
                            .map_err(ControlError::Start)?,
                    )
                }
                Listener::Tcp(listener) => Door::Tcp(
                    tokio::net::TcpListener::from_std(listener).map_err(ControlError::Start)?,
                ),
            });
        }
    }
    let house = Arc::new(House {
        gate,
        page,
        handler,
        stopped: stop.subscribe(),
    });
    let thread = std::thread::Builder::new()
        .name("longwire-ctl".to_owned())
        .spawn(move || {
            // Before a client is heard: this thread and those that it starts
            // open files that clients name.
            let _ = rights::give_up(&[Capability::DacOverride]);
            prompt_priority();
            run(runtime, doors, &house, background);
            slow.0.shutdown_background();
            // No path is left at which no server answers.
            drop(names);
        })
        .map_err(ControlError::Start)?;
    Ok(Server {
        stop,
        thread: Some(thread),
    })
}

impl Server {
    /// Ends it, streams and all, within a second; sockets are removed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for the end.
pub async fn ended(stopped: &mut watch::Receiver<bool>) {
    // Without anybody left to say it, it has come.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// The state that all connections share.
struct House {
    gate: Gate,
    page: &'static [PageFile],
    handler: Arc<Handler>,
    stopped: watch::Receiver<bool>,
}

/// A socket at which connections come.
enum Door {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

fn run(runtime: Runtime, doors: Vec<Door>, house: &Arc<House>, background: Option<Background>) {
    runtime.block_on(async {
        if let Some(background) = background {
            tokio::spawn(background);
        }
        // Nothing is ever sent: that all senders are gone says that the last
        // connection has ended.
        let (open, mut closed) = mpsc::channel(1);
        for door in doors {
            tokio::spawn(listen(door, Arc::clone(house), open.clone()));
        }
        drop(open);
        let mut stopped = house.stopped.clone();
        ended(&mut stopped).await;
        let _ = timeout(GRACE, closed.recv()).await;
    });
    // Work that waits for the fabric is not waited for.
    runtime.shutdown_timeout(GRACE);
}

/// Lets connections in until the end.
async fn listen(door: Door, house: Arc<House>, open: mpsc::Sender<()>) {
    let places = Places::new(CONNECTIONS_MAX);
    let mut stopped = house.stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = ended(&mut stopped) => return,
        };
        let accepted = match accepted {
            Ok(Some(accepted)) => accepted,
            Ok(None) => continue,
            // Out of descriptors, say: others may be given back.
            Err(_) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let held = tokio::select! {
            held = places.take() => held,
            () = ended(&mut stopped) => return,
        };
        let (house, open) = (Arc::clone(&house), open.clone());
        match accepted {
            Accepted::Unix(stream) => {
                tokio::spawn(converse(stream, Peer::Unix, house, held, open));
            }
            Accepted::Tcp(stream, peer) => {
                tokio::spawn(converse(stream, peer, house, held, open));
            }
        }
    }
}

enum Accepted {
    Unix(tokio::net::UnixStream),
    Tcp(tokio::net::TcpStream, Peer),
}

impl Door {
    /// The next connection; `None` for one that is shut in its face.
    async fn accept(&self) -> io::Result<Option<Accepted>> {
        match self {
            Door::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                // The mode says so already, unless somebody changed it.
                let peer = stream.peer_cred()?.uid();
                let may = peer == geteuid().as_raw() || peer == 0;
                Ok(may.then_some(Accepted::Unix(stream)))
            }
            Door::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                let local = stream.local_addr()?;
                stream.set_nodelay(true)?;
                Ok(Some(Accepted::Tcp(stream, Peer::Tcp(local))))
            }
        }
    }
}

/// Answers the requests of one connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + AsFd + Send + Unpin + 'static,
    peer: Peer,
    house: Arc<House>,
    held: Held,
    _open: mpsc::Sender<()>,
) {
    let seat = Arc::clone(&held.0);
    let mut stopped = house.stopped.clone();
    let service = service_fn(|request| {
        let (house, seat) = (Arc::clone(&house), Arc::clone(&seat));
        async move { Ok::<_, Infallible>(house.answer(request, peer, seat).await) }
    });
    seat.keep_socket(stream.as_fd());
    let stream = Patience::new(stream, Arc::clone(&seat), STALL_TIME);
    let connection = http1::Builder::new()
        // A client may close its half before the answer, as `nc -N` does.
        .half_close(true)
        .timer(LimitTimer)
        .header_read_timeout(HEAD_TIME)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(AHEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // What goes wrong on a connection is the affair of its other side.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = seat.evicted() => return,
        () = ended(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

impl House {
    /// Answers a request if who asks may.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        seat: Arc<Seat>,
    ) -> Response<Body> {
        if let Some(response) = self.page_file(&request, peer) {
            return response;
        }
        match self.admit(&request, peer, seat) {
            Ok(caller) => (self.handler)(request, caller).await,
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Returns the response to a request for a file of the page.
    fn page_file(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Body>> {
        let file = page::file(self.page, request)?;
        let checked = check_origin(peer, request.uri(), request.headers())
            .and_then(|()| self.gate.strangers.take().map_err(Refusal::too_many));
        Some(checked.map_or_else(Refusal::into_response, |()| file))
    }

    fn admit(
        &self,
        request: &Request<Incoming>,
        peer: Peer,
        seat: Arc<Seat>,
    ) -> Result<Caller, Refusal> {
        let known = check_origin(peer, request.uri(), request.headers())
            .and_then(|()| self.gate.tokens.rights(peer, request.headers()));
        let limit = match &known {
            Ok(_) => &self.gate.limit,
            Err(_) => &self.gate.strangers,
        };
        limit.take().map_err(Refusal::too_many)?;
        let rights = known?;
        Ok(Caller { rights, peer, seat })
    }
}
