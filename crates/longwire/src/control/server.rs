//! Listening, and answering on a thread of its own.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use longwire_runtime::host::{lower_priority, prompt_priority};
use nix::unistd::geteuid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::guard::{Peer, Rights, Tokens, check_origin};
use super::limit::Limit;
use super::patience::Patience;
use super::refusal::Refusal;
use super::reply::Body;
use super::socket::Named;
use crate::Error;

/// The most connections at one address; more wait to be let in.
const CONNECTIONS_MAX: usize = 256;

/// A request's head must be there so soon after its connection, or after the
/// answer before it.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// The most of a request's head, in bytes and in headers.
const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// Whoever reads nothing of an answer for so long is let go.
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
    pub fn new() -> Result<Slow, Error> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(SLOW_MAX)
            .thread_name("longwire-ctl-s")
            .on_thread_start(lower_priority)
            .build();
        runtime.map(Slow).map_err(failed)
    }

    /// To which work is given.
    pub fn handle(&self) -> Handle {
        self.0.handle().clone()
    }
}

fn failed(error: io::Error) -> Error {
    Error::Failed(format!("the control API cannot be started: {error}"))
}

/// What answers a request that was let in.
pub type Handler = dyn Fn(Request<Incoming>, Rights) -> Answering + Send + Sync;

/// An answer that is being made.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Who is let in.
pub struct Gate {
    /// With which tokens.
    pub tokens: Tokens,
    /// How often.
    pub limit: Limit,
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

/// Starts to answer. What `stop` sends `true` to ends streams; it ends the
/// server too.
///
/// # Errors
/// If the thread cannot be had.
pub fn serve(
    listeners: Vec<Listener>,
    gate: Gate,
    handler: Arc<Handler>,
    stop: watch::Sender<bool>,
    slow: Slow,
) -> Result<Server, Error> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_name("longwire-ctl-w")
        .build()
        .map_err(failed)?;
    let mut names = Vec::new();
    let mut doors = Vec::new();
    {
        let _within = runtime.enter();
        for listener in listeners {
            doors.push(match listener {
                Listener::Unix(listener, name) => {
                    names.push(name);
                    Door::Unix(tokio::net::UnixListener::from_std(listener).map_err(failed)?)
                }
                Listener::Tcp(listener) => {
                    Door::Tcp(tokio::net::TcpListener::from_std(listener).map_err(failed)?)
                }
            });
        }
    }
    let house = Arc::new(House {
        gate,
        handler,
        stopped: stop.subscribe(),
    });
    let thread = std::thread::Builder::new()
        .name("longwire-ctl".to_owned())
        .spawn(move || {
            prompt_priority();
            run(runtime, doors, &house);
            slow.0.shutdown_background();
            // Nobody finds a path at which nobody answers.
            drop(names);
        })
        .map_err(failed)?;
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

/// What all connections share.
struct House {
    gate: Gate,
    handler: Arc<Handler>,
    stopped: watch::Receiver<bool>,
}

/// A socket at which connections come.
enum Door {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

fn run(runtime: Runtime, doors: Vec<Door>, house: &Arc<House>) {
    runtime.block_on(async {
        // One permit for each connection of any door: they are all back when
        // the last one has ended.
        let count = doors.len() * CONNECTIONS_MAX;
        let all = Arc::new(Semaphore::new(count));
        for door in doors {
            tokio::spawn(listen(door, Arc::clone(house), Arc::clone(&all)));
        }
        let mut stopped = house.stopped.clone();
        ended(&mut stopped).await;
        let _ = timeout(GRACE, all.acquire_many(count as u32)).await;
    });
    // Work that waits for the fabric is not waited for.
    runtime.shutdown_timeout(GRACE);
}

/// Lets connections in until the end.
async fn listen(door: Door, house: Arc<House>, all: Arc<Semaphore>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut stopped = house.stopped.clone();
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let overall = Arc::clone(&all).acquire_owned().await;
        let (Ok(place), Ok(overall)) = (place, overall) else {
            return;
        };
        let held = [place, overall];
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = ended(&mut stopped) => return,
        };
        match accepted {
            Ok(Some(Accepted::Unix(stream))) => {
                tokio::spawn(converse(stream, Peer::Unix, Arc::clone(&house), held));
            }
            Ok(Some(Accepted::Tcp(stream, peer))) => {
                tokio::spawn(converse(stream, peer, Arc::clone(&house), held));
            }
            Ok(None) => {}
            // Out of descriptors, say: others may be given back.
            Err(_) => sleep(Duration::from_millis(50)).await,
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
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    house: Arc<House>,
    _held: [OwnedSemaphorePermit; 2],
) {
    let mut stopped = house.stopped.clone();
    let service = service_fn(|request| {
        let house = Arc::clone(&house);
        async move { Ok::<_, Infallible>(house.answer(request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Patience::new(stream, STALL_TIME)), service);
    let mut connection = std::pin::pin!(connection);
    // What goes wrong on a connection is the affair of its other side.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = ended(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

impl House {
    /// Answers a request if whoever asks may.
    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        match self.admit(&request, peer) {
            Ok(rights) => (self.handler)(request, rights).await,
            Err(refusal) => refusal.into_response(),
        }
    }

    fn admit(&self, request: &Request<Incoming>, peer: Peer) -> Result<Rights, Refusal> {
        self.gate.limit.take().map_err(Refusal::too_many)?;
        check_origin(peer, request.uri(), request.headers())?;
        self.gate.tokens.rights(peer, request.headers())
    }
}
