//! TCP flows.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt,
};

use super::{Path, TrafficError, during};

/// Results of a TCP flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpFlow {
    /// Payload rate at the receiver after the warm-up, in bit/s.
    pub goodput: f64,
    /// Total payload bytes.
    pub bytes: u64,
}

/// Bytes per write.
const CHUNK: usize = 128 << 10;

/// Sends for `duration` over one connection; goodput excludes the first `warm_up`.
///
/// # Errors
/// If a namespace cannot be entered, a socket operation fails, or no connection is established.
pub fn tcp_flow(
    path: Path<'_>,
    duration: Duration,
    warm_up: Duration,
) -> Result<TcpFlow, TrafficError> {
    windowed_tcp_flow(path, duration, warm_up, None)
}

/// Like [`tcp_flow`], with a receive window of at most about `window` bytes, if given. If the
/// bottleneck queue can hold the whole window, no segment is lost, and the goodput of a slow link
/// is exact even with few frames.
///
/// # Errors
/// The errors of [`tcp_flow`].
pub fn windowed_tcp_flow(
    path: Path<'_>,
    duration: Duration,
    warm_up: Duration,
    window: Option<usize>,
) -> Result<TcpFlow, TrafficError> {
    let listen = || {
        let Some(window) = window else {
            return TcpListener::bind((path.to.address, 0));
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        // Accepted sockets inherit the buffer size.
        setsockopt(&socket, sockopt::RcvBuf, &window)?;
        let address = SocketAddrV4::new(path.to.address, 0);
        bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
        nix::sys::socket::listen(&socket, Backlog::new(1)?)?;
        Ok(TcpListener::from(socket))
    };
    let listener = path.to.namespace.run(listen)?.map_err(during("listen"))?;
    let target = listener.local_addr().map_err(during("name a socket"))?;
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            path.from.namespace.run(|| {
                let timeout = Duration::from_secs(10);
                let stream = TcpStream::connect_timeout(&target, timeout)
                    .map_err(during("connect over the link"))?;
                send(stream, duration)
            })
        });
        let received = accept(&listener, duration, warm_up);
        let sent = sending
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent??;
        received
    })
}

fn send(mut stream: TcpStream, duration: Duration) -> Result<(), TrafficError> {
    let chunk = vec![0x5au8; CHUNK];
    let stall = Some(Duration::from_secs(10));
    stream.set_write_timeout(stall).map_err(during("wait"))?;
    let end = Instant::now() + duration;
    while Instant::now() < end {
        match stream.write_all(&chunk) {
            Ok(()) => {}
            // The receiver has finished.
            Err(error) if is_closed(&error) => return Ok(()),
            Err(error) => return Err(during("send")(error)),
        }
    }
    // Discard the bytes that are still queued.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(())
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn accept(
    listener: &TcpListener,
    duration: Duration,
    warm_up: Duration,
) -> Result<TcpFlow, TrafficError> {
    listener.set_nonblocking(true).map_err(during("listen"))?;
    let deadline = Instant::now() + Duration::from_secs(12);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return Err(TrafficError::Silence(12)),
        }
    };
    stream.set_nonblocking(false).map_err(during("accept"))?;
    let stall = Some(Duration::from_secs(5));
    stream.set_read_timeout(stall).map_err(during("wait"))?;
    let start = Instant::now();
    let mut flow = TcpFlow::default();
    let mut buffer = vec![0u8; 2 * CHUNK];
    let mut counted: Option<(Instant, u64)> = None;
    let mut last = start;
    while start.elapsed() < duration {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => flow.bytes += bytes as u64,
        }
        last = Instant::now();
        if counted.is_none() && last.duration_since(start) >= warm_up {
            counted = Some((last, flow.bytes));
        }
    }
    if let Some((from, before)) = counted {
        let time = last.duration_since(from).as_secs_f64();
        flow.goodput = (flow.bytes - before) as f64 * 8.0 / time.max(1e-9);
    }
    Ok(flow)
}
