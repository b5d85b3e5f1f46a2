//! UDP flows.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::pace::Pace;
use super::{Path, TrafficError, UDP_HEADERS, during};

/// Receive buffer in bytes, large enough for a receiver that is preempted for a while.
const RECEIVE_BUFFER: usize = 16 << 20;

/// UDP flow settings.
#[derive(Clone, Copy, Debug)]
pub struct UdpFlow {
    /// Frame length in bytes, including the Ethernet header.
    pub frame_len: u32,
    /// Datagrams per second; 0 means as fast as possible.
    pub per_second: u64,
    /// Maximum number of datagrams.
    pub count: Option<u64>,
    /// Maximum duration.
    pub duration: Duration,
    /// Time to wait for late datagrams.
    pub timeout: Duration,
    /// Number of source ports, used in rotation; queues and switches treat each as a flow. 0 and 1
    /// both mean one flow.
    pub flows: u32,
}

impl UdpFlow {
    /// Creates a flow; `per_second` 0 means as fast as possible.
    pub fn new(frame_len: u32, per_second: u64, duration: Duration) -> UdpFlow {
        UdpFlow {
            frame_len,
            per_second,
            count: None,
            duration,
            timeout: Duration::from_millis(200),
            flows: 1,
        }
    }
}

/// Results of a UDP flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagrams {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Time from the first arrival to the last, in seconds.
    pub span_s: f64,
    /// Arrivals per second in steady state, the last three quarters of the sending time.
    pub steady_per_second: f64,
}

/// Opens a socket on the receiving host.
pub(super) fn receiver_of(path: Path<'_>) -> Result<UdpSocket, TrafficError> {
    let bind = || UdpSocket::bind((path.to.address, 0));
    let socket = path.to.namespace.run(bind)?;
    socket.map_err(during("open a socket"))
}

/// Runs `send` with a socket on the sending host, connected to `receiver`, and `receive`
/// concurrently on a separate thread. Sets the flag passed to `receive` once `send` has returned.
/// Returns both results.
///
/// # Errors
/// If a namespace cannot be entered, a socket operation fails, or `send` or `receive` fails.
pub(super) fn exchange<S: Send, R: Send>(
    path: Path<'_>,
    receiver: &UdpSocket,
    receive: impl FnOnce(&AtomicBool) -> Result<R, TrafficError> + Send,
    send: impl FnOnce(&UdpSocket) -> Result<S, TrafficError> + Send,
) -> Result<(S, R), TrafficError> {
    let target = receiver.local_addr().map_err(during("name a socket"))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&done));
        let sent = path.from.namespace.run(|| {
            let socket =
                UdpSocket::bind((path.from.address, 0)).map_err(during("open a socket"))?;
            let connected = socket.connect(target);
            connected.map_err(during("reach the other end"))?;
            send(&socket)
        });
        done.store(true, Ordering::Release);
        let received = receiving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((sent??, received))
    })
}

/// Returns the datagram payload length for this frame length.
pub(super) fn payload_len(frame_len: u32) -> usize {
    frame_len.saturating_sub(UDP_HEADERS) as usize
}

/// Requests a large receive buffer; best effort.
pub(super) fn enlarge_receive_buffer(socket: &UdpSocket) {
    if setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
    }
}

/// Sends a flow and counts arrivals.
///
/// # Errors
/// If a namespace cannot be entered or a socket operation fails.
pub fn udp_flow(path: Path<'_>, flow: UdpFlow) -> Result<Datagrams, TrafficError> {
    let receiver = receiver_of(path)?;
    enlarge_receive_buffer(&receiver);
    let receive = |done: &AtomicBool| count(&receiver, done, flow);
    let send = |socket: &UdpSocket| Ok(send(&with_others(socket, flow.flows)?, flow));
    let (sent, counted) = exchange(path, &receiver, receive, send)?;
    Ok(Datagrams { sent, ..counted })
}

/// Returns `count` sockets with different source ports; the first is a clone of `socket`.
fn with_others(socket: &UdpSocket, count: u32) -> Result<Vec<UdpSocket>, TrafficError> {
    let open = || -> io::Result<UdpSocket> {
        let another = UdpSocket::bind((socket.local_addr()?.ip(), 0))?;
        another.connect(socket.peer_addr()?)?;
        Ok(another)
    };
    let mut sockets = vec![socket.try_clone().map_err(during("open a socket"))?];
    for _ in 1..count {
        sockets.push(open().map_err(during("open a socket per flow"))?);
    }
    Ok(sockets)
}

fn send(sockets: &[UdpSocket], flow: UdpFlow) -> u64 {
    let payload = vec![0u8; payload_len(flow.frame_len)];
    let mut pace = Pace::new(flow.per_second);
    let end = Instant::now() + flow.duration;
    let (mut sent, mut tried) = (0, 0);
    let mut turns = sockets.iter().cycle();
    while flow.count.is_none_or(|count| tried < count) {
        pace.wait();
        // Reading the clock for each datagram would slow down a sender at full speed.
        if tried % 16 == 0 && Instant::now() >= end {
            break;
        }
        tried += 1;
        let sent_one = turns.next().map(|socket| socket.send(&payload));
        sent += u64::from(sent_one.is_some_and(|sent| sent.is_ok()));
    }
    sent
}

fn count(socket: &UdpSocket, done: &AtomicBool, flow: UdpFlow) -> Result<Datagrams, TrafficError> {
    let poll = Some(Duration::from_millis(20));
    socket.set_read_timeout(poll).map_err(during("wait"))?;
    let mut buffer = vec![0u8; 65_536];
    let mut result = Datagrams::default();
    let mut span: Option<(Instant, Instant)> = None;
    // The steady part starts and ends with an arrival, so its duration is exact.
    let mut steady: Option<(Instant, u64)> = None;
    let mut last_read = Instant::now();
    let mut ended: Option<(Instant, u64)> = None;
    loop {
        let sender_done = done.load(Ordering::Acquire);
        if socket.recv(&mut buffer).is_err() {
            if sender_done && last_read.elapsed() > flow.timeout {
                break;
            }
            continue;
        }
        let now = Instant::now();
        last_read = now;
        result.received += 1;
        let first = span.map_or(now, |(first, _)| first);
        span = Some((first, now));
        if !sender_done {
            ended = Some((now, result.received));
        }
        if steady.is_none() && now.duration_since(first) >= flow.duration / 4 {
            steady = Some((now, result.received));
        }
    }
    if let Some((first, last)) = span {
        result.span_s = last.duration_since(first).as_secs_f64();
    }
    if let (Some((from, before)), Some((to, after))) = (steady, ended) {
        let time = to.saturating_duration_since(from).as_secs_f64();
        result.steady_per_second = after.saturating_sub(before) as f64 / time.max(1e-9);
    }
    Ok(result)
}
