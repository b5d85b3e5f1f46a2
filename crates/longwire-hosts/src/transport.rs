//! The thread that carries frames between hosts, on one UDP socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use longwire_engine::{Bytes, Nanos};
use longwire_io::Bell;
use longwire_runtime::deciding::{
    RemoteFrame, RemoteParts, RemoteReader, RemoteWriter, remote_line,
};
use longwire_runtime::record::Epoch;
use longwire_runtime::report::{HostsReport, PeerReport};
use longwire_runtime::sync::locked;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::{ClockShift, Stamp, WallClockWatch};
use crate::event::PeerEvent;
use crate::key::Key;
use crate::peer::{Identity, Peer, Rejection};
use crate::socket::{DatagramSocket, Outbox};

/// Maximum number of frames sent to a host before datagrams are received again.
const BURST: usize = 64;

/// Memory of each frame queue to or from another host.
const LINE_MEMORY: Bytes = Bytes(256 << 20);

/// Maximum sleep of the thread.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Interval at which the report is published.
const REPORT_EVERY: Nanos = Nanos::from_millis(100);

/// Time from the connection of all hosts to the epoch, long enough to announce the epoch to them.
const EPOCH_AHEAD: Nanos = Nanos::from_millis(500);

/// Setup of another host.
#[derive(Clone, Debug)]
pub struct PeerSetup {
    /// Index in the topology file.
    pub index: u16,
    /// Name in the topology file.
    pub name: String,
    /// UDP address.
    pub address: SocketAddr,
}

/// A transport's setup.
#[derive(Clone, Debug)]
pub struct TransportSetup {
    /// Name of this host.
    pub name: String,
    /// This host's identity. The host with index 0 chooses the epoch.
    pub identity: Identity,
    /// Key that all hosts of the network share.
    pub key: Key,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The other hosts.
    pub peers: Vec<PeerSetup>,
    /// Wall clock offset, for tests.
    pub shift: ClockShift,
}

/// Failure to start a transport.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The socket cannot be opened.
    #[error("cannot listen on {address}: {error}; `listen` must be a local address")]
    Socket {
        /// The address to listen on.
        address: SocketAddr,
        /// The I/O error.
        error: io::Error,
    },
    /// Out of memory or threads.
    #[error("cannot start communication with other hosts: {0}")]
    System(String),
}

/// An event in the exchange with other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Time on the monotonic clock.
    pub at: Nanos,
    /// Index among the peers; `None` for this host.
    pub peer: Option<usize>,
    /// The event.
    pub event: PeerEvent,
}

/// The exchange with all other hosts, in a thread that ends on drop.
#[derive(Debug)]
pub struct Transport {
    shared: Arc<Shared>,
    events: Receiver<HostEvent>,
    thread: Option<JoinHandle<()>>,
}

/// Reads a transport's report, even after the transport has ended.
#[derive(Clone, Debug)]
pub struct HostsReader(Arc<Shared>);

impl HostsReader {
    /// Returns the report, at most 0.1 s old.
    pub fn report(&self) -> HostsReport {
        locked(&self.0.report).clone()
    }
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    bell: Arc<Bell>,
    epoch: OnceLock<Stamp>,
    report: Mutex<HostsReport>,
}

impl Transport {
    /// Starts the exchange. Also returns the deciding stage's queues to and from the peers. `exits`
    /// maps each port to its host's index among the peers; `None` for a port of this host.
    ///
    /// # Errors
    /// The socket cannot be opened, or memory or threads are exhausted.
    pub fn start(
        setup: TransportSetup,
        exits: Vec<Option<usize>>,
    ) -> Result<(Transport, RemoteParts), TransportError> {
        let socket = DatagramSocket::open(setup.listen);
        let socket = socket.map_err(|error| TransportError::Socket {
            address: setup.listen,
            error,
        })?;
        let system = |error: &dyn std::fmt::Display| TransportError::System(error.to_string());
        let bell = Arc::new(Bell::new().map_err(|error| system(&error))?);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            bell: Arc::clone(&bell),
            epoch: OnceLock::new(),
            report: Mutex::default(),
        });
        let deciding = Arc::new(OnceLock::new());
        let mut parts = RemoteParts {
            exits,
            outbound: Vec::new(),
            inbound: Vec::new(),
            bell,
            deciding: Arc::clone(&deciding),
        };
        let mut peers = Vec::new();
        for peer in &setup.peers {
            let (writer, outbound) = remote_line(LINE_MEMORY).map_err(|error| system(&error))?;
            let (inbound, reader) = remote_line(LINE_MEMORY).map_err(|error| system(&error))?;
            parts.outbound.push(writer);
            parts.inbound.push(reader);
            let identity = setup.identity.clone();
            peers.push(ConnectedPeer {
                peer: Peer::new(identity, setup.key.clone(), peer.index, &peer.name),
                address: peer.address,
                outbound,
                inbound,
                send_error: None,
                foreign: 0,
                next: Nanos::ZERO,
            });
        }
        let (events, received) = channel();
        let exchange = Exchange {
            name: setup.name,
            is_first: setup.identity.index == 0,
            socket,
            peers,
            shared: Arc::clone(&shared),
            deciding,
            events,
            shift: setup.shift,
            wall: WallClockWatch::default(),
            foreign: 0,
            report_at: Nanos::ZERO,
        };
        let thread = std::thread::Builder::new().name("longwire-hosts".to_owned());
        let thread = thread.spawn(move || exchange.run());
        let transport = Transport {
            shared,
            events: received,
            thread: Some(thread.map_err(|error| system(&error))?),
        };
        Ok((transport, parts))
    }

    /// Returns the run's epoch, once agreed.
    pub fn epoch(&self) -> Option<Epoch> {
        let Stamp { monotonic, wall } = *self.shared.epoch.get()?;
        Some(Epoch { monotonic, wall })
    }

    /// Returns the events since the last call.
    pub fn events(&self) -> Vec<HostEvent> {
        self.events.try_iter().collect()
    }

    /// Returns the report, at most 0.1 s old.
    pub fn report(&self) -> HostsReport {
        self.reader().report()
    }

    /// Returns a reader for the report.
    pub fn reader(&self) -> HostsReader {
        HostsReader(Arc::clone(&self.shared))
    }

    /// Ends the exchange and returns the final report.
    pub fn stop(mut self) -> HostsReport {
        self.end();
        self.report()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked leaves no final report.
            let _ = thread.join();
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.end();
    }
}

/// A peer with its address and queues.
struct ConnectedPeer {
    peer: Peer,
    address: SocketAddr,
    outbound: RemoteReader,
    inbound: RemoteWriter,
    /// Last error when sending to the peer.
    send_error: Option<Errno>,
    /// Foreign datagrams from the peer's address.
    foreign: u64,
    /// Time of the next poll.
    next: Nanos,
}

/// State of the transport's thread.
struct Exchange {
    name: String,
    is_first: bool,
    socket: DatagramSocket,
    peers: Vec<ConnectedPeer>,
    shared: Arc<Shared>,
    deciding: Arc<OnceLock<Arc<Bell>>>,
    events: Sender<HostEvent>,
    shift: ClockShift,
    wall: WallClockWatch,
    foreign: u64,
    report_at: Nanos,
}

impl Exchange {
    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let received = self.receive();
            let sent = self.send();
            let next = self.poll();
            self.socket.flush();
            self.note_send_errors();
            if received + sent == 0 {
                self.sleep(next);
            }
        }
        self.report(self.shift.now());
    }

    /// Receives datagrams and returns their number.
    fn receive(&mut self) -> usize {
        let indices = self.socket.receive();
        let received = indices.len();
        let mut now = self.shift.now();
        let DatagramSocket { inbox, outbox, .. } = &mut self.socket;
        for index in indices {
            if index % 8 == 7 {
                now = self.shift.now();
            }
            let (datagram, from) = inbox.get(index);
            let mut peers = self.peers.iter_mut();
            let taken = match peers.find(|peer| peer.address == from) {
                Some(peer) => peer.receive(now, datagram, outbox),
                None => Err(Rejection::Foreign),
            };
            self.foreign += u64::from(taken == Err(Rejection::Foreign));
        }
        if received > 0 {
            let mut has_new = false;
            for peer in &mut self.peers {
                has_new |= peer.inbound.publish();
            }
            if has_new && let Some(bell) = self.deciding.get() {
                bell.ring_if_asleep();
            }
        }
        received
    }

    /// Sends the deciding stage's frames and returns their number.
    fn send(&mut self) -> usize {
        let mut sent = 0;
        for peer in &mut self.peers {
            sent += peer.send(&mut self.socket.outbox, self.shift);
            if self.socket.outbox.is_full() {
                self.socket.flush();
            }
        }
        sent
    }

    fn note_send_errors(&mut self) {
        for (address, error) in self.socket.outbox.errors.drain(..) {
            let mut peers = self.peers.iter_mut();
            if let Some(peer) = peers.find(|peer| peer.address == address) {
                peer.send_error = Some(error);
            }
        }
    }

    /// Polls all peers and returns the time of the next poll.
    fn poll(&mut self) -> Nanos {
        let now = self.shift.now();
        let epoch = self.agree(now);
        let mut next = now.monotonic.saturating_add(SLEEP_MAX);
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            let soonest = peer.peer.soonest().unwrap_or(peer.next);
            if now.monotonic >= peer.next.min(soonest) {
                let (outbox, address) = (&mut self.socket.outbox, peer.address);
                peer.next = peer.peer.poll(now, epoch, &mut |datagram| {
                    outbox.push(address, datagram);
                });
            }
            let soonest = peer.peer.soonest().unwrap_or(peer.next);
            next = next.min(peer.next).min(soonest);
            while let Some(event) = self.peers[index].peer.next_event() {
                // A new or resumed session sends a ping immediately.
                self.peers[index].next = Nanos::ZERO;
                self.tell(now, Some(index), event);
            }
        }
        if now.monotonic >= self.report_at {
            self.report_at = now.monotonic.saturating_add(REPORT_EVERY);
            if let Some(step) = self.wall.step(now) {
                self.tell(now, None, PeerEvent::ClockSet(step));
            }
            self.report(now);
        }
        next.min(self.report_at)
    }

    /// Returns the epoch on both clocks, if known: a peer's, or one that the first host chooses
    /// once all are connected.
    fn agree(&self, now: Stamp) -> Option<Stamp> {
        if let Some(epoch) = self.shared.epoch.get() {
            return Some(*epoch);
        }
        let mut known = self.peers.iter();
        let known = known.find_map(|peer| peer.peer.epoch(now.monotonic));
        let all = || self.peers.iter().all(|peer| peer.peer.is_connected());
        let epoch = known.or_else(|| {
            (self.is_first && all()).then(|| Stamp {
                monotonic: now.monotonic.saturating_add(EPOCH_AHEAD),
                wall: now.wall.saturating_add(EPOCH_AHEAD),
            })
        })?;
        Some(*self.shared.epoch.get_or_init(|| epoch))
    }

    fn tell(&self, now: Stamp, peer: Option<usize>, event: PeerEvent) {
        let at = now.monotonic;
        let _ = self.events.send(HostEvent { at, peer, event });
    }

    fn report(&self, now: Stamp) {
        let peers = self.peers.iter().map(|peer| peer.report(now));
        let report = HostsReport {
            name: self.name.clone(),
            foreign: self.foreign,
            receive_overflows: self.socket.inbox.overflows,
            peers: peers.collect(),
        };
        *locked(&self.shared.report) = report;
    }

    /// Sleeps until a datagram arrives, the deciding stage has frames, or `until`.
    fn sleep(&mut self, until: Nanos) {
        let bell = Arc::clone(&self.shared.bell);
        bell.asleep();
        // Frames published before the bell was armed did not ring it.
        let mut is_idle = !self.shared.stop.load(Ordering::SeqCst);
        for peer in &mut self.peers {
            is_idle &= peer.outbound.is_empty();
        }
        if is_idle {
            let now = self.shift.now().monotonic;
            let timeout = until.saturating_sub(now).as_nanos();
            let timeout = TimeSpec::new(0, timeout.min(SLEEP_MAX.as_nanos()) as i64);
            let mut sources = [
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(bell.event().as_fd(), PollFlags::POLLIN),
            ];
            // After an interrupt, the loop checks again.
            let _ = ppoll(&mut sources, Some(timeout), None);
        }
        bell.awake();
        bell.event().clear();
    }
}

impl ConnectedPeer {
    fn receive(
        &mut self,
        now: Stamp,
        datagram: &[u8],
        outbox: &mut Outbox,
    ) -> Result<(), Rejection> {
        let (address, inbound) = (self.address, &mut self.inbound);
        let before = self.peer.is_connected();
        // If memory is exhausted, because the deciding stage is far behind, the queue counts the
        // frame as lost.
        let mut take = |frame: RemoteFrame<'_>| {
            let _ = inbound.push(&frame);
        };
        let mut send = |datagram: &[u8]| outbox.push(address, datagram);
        let taken = self.peer.receive(now, datagram, &mut send, &mut take);
        if before != self.peer.is_connected() || !before {
            self.next = Nanos::ZERO;
        }
        self.foreign += u64::from(taken == Err(Rejection::Foreign));
        taken
    }

    fn report(&self, now: Stamp) -> PeerReport {
        PeerReport {
            frames_dropped: self.outbound.dropped() + self.inbound.dropped(),
            foreign: self.foreign,
            send_error: self.send_error.map(|error| error.desc().to_owned()),
            ..self.peer.report(now)
        }
    }

    fn send(&mut self, outbox: &mut Outbox, shift: ClockShift) -> usize {
        if self.outbound.front().is_none() {
            return 0;
        }
        let (address, now) = (self.address, shift.now().monotonic);
        let mut send = |datagram: &[u8]| outbox.push(address, datagram);
        let mut sent = 0;
        while sent < BURST
            && let Some(frame) = self.outbound.front()
        {
            let to = (frame.port.0, frame.line, frame.release);
            self.peer.push(now, to, frame.bytes, &mut send);
            self.outbound.advance();
            sent += 1;
        }
        self.peer.flush(now, &mut send);
        self.outbound.settle();
        sent
    }
}
