//! The protocol with one other host: sessions, frames and clock offsets. It does no I/O and takes
//! the time as an argument.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use longwire_packet::bridge::PortIndex;
use longwire_runtime::deciding::RemoteFrame;
use longwire_runtime::report::PeerReport;

use crate::clock::{Stamp, WallClockWatch};
use crate::event::PeerEvent;
use crate::fragments::PartialFrames;
use crate::key::Key;
use crate::offset::OffsetEstimator;
use crate::resend::{MissingBatches, ResendTimes, SentBatches, whole};
use crate::session::{AnsweredHandshakes, BegunHandshakes, FirstMessage, Handshake, Session};
use crate::wire::{
    BATCH_LEN, FRAGMENT_HEAD_LEN, FRAME_HEAD_LEN, FragmentHead, FrameHead, HEADER_LEN,
    Introduction, KIND_DATA, KIND_INITIATE, KIND_RESPOND, Ping, RECORD_BATCH, RECORD_FRAGMENT,
    RECORD_FRAME, RECORD_MISSING, RECORD_PING, RECORD_PONG, RECORD_RESENT, RECORD_TAIL, Reader,
    TAG_LEN, Write,
};

/// Interval between handshakes until one is answered.
const HANDSHAKE_EVERY: Nanos = Nanos::from_millis(250);

/// Ping intervals: normally, and until the offset is known.
const PING_EVERY: Nanos = Nanos::from_millis(100);
const PING_FIRST: Nanos = Nanos::from_millis(10);

/// Time without a datagram after which a host is reported as silent.
const SILENCE_MAX: Nanos = Nanos::from_secs(1);

/// Maximum number of sessions that await the other host's first datagram. An attacker who replays
/// initial messages can create several, which must not displace the genuine one.
const PENDING_MAX: usize = 8;

/// Maximum number of batches requested in one record.
const MISSING_AT_ONCE: usize = 64;

/// Minimum size in bytes, including the frame header, of a fragment that shares a batch with other
/// frames.
const FRAGMENT_LEN_MIN: usize = 64;

/// This host's identity in handshakes.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Index in the topology file.
    pub index: u16,
    /// Digest of the network. Hosts with a different digest are refused.
    pub digest: [u8; 32],
    /// A number unique to this start of the host.
    pub instance: u64,
    /// Maximum UDP payload in bytes.
    pub mtu: usize,
}

/// The reason why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No session could authenticate it.
    Foreign,
    /// A duplicate, or part of an earlier session or handshake.
    Replayed,
}

/// Sends a datagram to the other host.
type SendTo<'a> = &'a mut dyn FnMut(&[u8]);

/// Takes a frame from the other host.
type TakeFrame<'a> = &'a mut dyn FnMut(RemoteFrame<'_>);

/// The protocol with one other host.
pub struct Peer {
    own: Identity,
    key: Key,
    /// The other host's index. The host with the lower index initiates handshakes.
    index: u16,
    begun: BegunHandshakes,
    answered: AnsweredHandshakes,
    handshake_at: Nanos,
    session: Option<Session>,
    /// The previous session, whose last datagrams may still arrive.
    session_before: Option<Session>,
    /// Sessions that the other host has not used yet, oldest first. Their initial messages may be
    /// replays.
    pending: VecDeque<(Session, Introduction)>,
    theirs: Option<Introduction>,
    heard_at: Nanos,
    ping_at: Nanos,
    is_connected: bool,
    has_restarted: bool,
    /// Whether the other host has estimated this host's clock offset.
    is_ready: bool,
    other: OtherInstance,
    /// Records for the next datagram.
    batch: Vec<u8>,
    /// Latest release in `batch`.
    batch_deadline: Nanos,
    /// Frames sent before the last ping or, without a ping in this session, before the session.
    frames_before: u32,
    /// Number of frames sent when the other host was last heard.
    sent_when_heard: u64,
    /// Frames sent after the host's last datagram and before it was reported silent. If the host
    /// returns without a restart, it counts the lost frames itself.
    unconfirmed: u64,
    frame_number: u32,
    records: Vec<u8>,
    datagram: Vec<u8>,
    report: PeerReport,
    events: VecDeque<PeerEvent>,
}

/// State that the other host's restart resets. Frame and batch numbers continue across sessions, so
/// that losses between sessions are detected.
#[derive(Default)]
struct OtherInstance {
    offset: OffsetEstimator,
    epoch: Option<Stamp>,
    wall: WallClockWatch,
    sent: SentBatches,
    missing: MissingBatches,
    partial: PartialFrames,
    /// Last release per port, on the other host's clock and on this one's, to keep releases in
    /// order.
    converted: Vec<(u64, u64)>,
    /// Frames sent to the other host.
    frames_begun: u32,
    /// Number of frames sent by the other host, and number received.
    expected: u64,
    received: u64,
}

impl OtherInstance {
    fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }
}

impl Peer {
    /// Creates the protocol state for the host with this index and name.
    pub fn new(own: Identity, key: Key, index: u16, name: &str) -> Peer {
        Peer {
            own,
            key,
            index,
            begun: BegunHandshakes::default(),
            answered: AnsweredHandshakes::default(),
            handshake_at: Nanos::ZERO,
            session: None,
            session_before: None,
            pending: VecDeque::new(),
            theirs: None,
            heard_at: Nanos::ZERO,
            ping_at: Nanos::ZERO,
            is_connected: false,
            has_restarted: false,
            is_ready: false,
            other: OtherInstance::default(),
            batch: Vec::new(),
            batch_deadline: Nanos::ZERO,
            frames_before: 0,
            sent_when_heard: 0,
            unconfirmed: 0,
            frame_number: 0,
            records: Vec::new(),
            datagram: Vec::new(),
            report: PeerReport {
                name: name.to_owned(),
                ..PeerReport::default()
            },
            events: VecDeque::new(),
        }
    }

    /// Returns whether frames can be sent.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// Returns the epoch known to the other host, on this host's monotonic clock and the other's
    /// wall clock; `None` until both are known, or if the epoch precedes this host's clock.
    pub fn epoch(&self, now: Nanos) -> Option<Stamp> {
        let Stamp { monotonic, wall } = self.other.epoch?;
        let offset = self.other.offset.at(now)?;
        let ours = monotonic.as_nanos().checked_add_signed(offset)?;
        Some(Stamp {
            monotonic: Nanos::from_nanos(ours),
            wall,
        })
    }

    /// Returns the current report.
    pub fn report(&self, now: Stamp) -> PeerReport {
        let offset = self.other.offset.at(now.monotonic);
        let ahead = self.other.wall.lead().zip(offset).map(|(theirs, offset)| {
            let apart = theirs.wrapping_sub(now.wall_lead());
            apart.wrapping_sub(offset)
        });
        PeerReport {
            connected: self.is_connected,
            frames_unconfirmed: self.report.frames_unconfirmed + self.unconfirmed,
            frames_lost: self.report.frames_lost + self.other.lost(),
            round_trip_ns: self.other.offset.round_trip_ns(),
            clock_offset_ns: ahead,
            clock_uncertainty_ns: self.other.offset.uncertainty_ns(),
            clock_skew_ppm: self.other.offset.skew_ppm(),
            ..self.report.clone()
        }
    }

    /// Returns when loss recovery next needs [`Peer::poll`], possibly before the time that `poll`
    /// returned.
    pub fn soonest(&self) -> Option<Nanos> {
        let (tail, ask) = (self.other.sent.tail_at(), self.other.missing.ask_at());
        tail.into_iter().chain(ask).min()
    }

    fn resend_times(&self) -> ResendTimes {
        ResendTimes::of_round_trip(self.other.offset.round_trip_ns())
    }

    fn introduction(&self, begun: Nanos) -> Introduction {
        Introduction {
            index: self.own.index,
            digest: self.own.digest,
            instance: self.own.instance,
            begun,
        }
    }

    /// Sends due handshakes and pings, and detects silence. `epoch` is the run's, if known. Returns
    /// the time of the next call.
    pub fn poll(&mut self, now: Stamp, epoch: Option<Stamp>, send: SendTo<'_>) -> Nanos {
        let at = now.monotonic;
        let silent = at.saturating_sub(self.heard_at) > SILENCE_MAX;
        if silent && self.is_connected {
            self.lose_contact();
        }
        let begins = self.own.index < self.index && (self.session.is_none() || silent);
        if begins && at >= self.handshake_at {
            self.handshake_at = at.saturating_add(HANDSHAKE_EVERY);
            let introduction = self.introduction(at);
            if let Some((handshake, datagram)) = Handshake::begin(&self.key, &introduction) {
                self.begun.push(handshake);
                self.count_sent(datagram.len());
                send(&datagram);
            }
        }
        let mut next = at.saturating_add(HANDSHAKE_EVERY);
        if begins {
            next = next.min(self.handshake_at);
        }
        if self.session.is_some() {
            if at >= self.ping_at {
                let is_ready = self.other.offset.at(at).is_some();
                let every = if is_ready { PING_EVERY } else { PING_FIRST };
                self.ping_at = at.saturating_add(every);
                let ping = Ping {
                    sent: now,
                    is_ready,
                    epoch,
                    frames_before: self.frames_before,
                };
                // Frames sent since the last ping may still be in flight.
                self.frames_before = self.other.frames_begun;
                let mut records = Vec::new();
                ping.write(&mut records);
                self.send_records(&records, send);
            }
            next = next.min(self.ping_at);
        }
        self.poll_batches(at, send);
        self.soonest().map_or(next, |soonest| next.min(soonest))
    }

    /// Requests missing batches and announces the last batch sent.
    fn poll_batches(&mut self, now: Nanos, send: SendTo<'_>) {
        let times = self.resend_times();
        let is_due = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        if is_due(self.other.missing.ask_at()) {
            let asked = self.other.missing.ask(now, MISSING_AT_ONCE, times);
            let mut records = vec![RECORD_MISSING];
            records.u8(asked.len() as u8);
            asked.iter().for_each(|number| records.u32(*number));
            self.send_records(&records, send);
        }
        if is_due(self.other.sent.tail_at()) {
            let next = self.other.sent.next();
            if self.other.sent.take_tail(now, times) {
                let mut records = vec![RECORD_TAIL];
                records.u32(next);
                self.send_records(&records, send);
            }
        }
        self.other.sent.trim(now);
    }

    fn lose_contact(&mut self) {
        self.unconfirmed = self.report.frames_sent - self.sent_when_heard;
        self.disconnect();
        self.report.outages += 1;
        self.events.push_back(PeerEvent::Silent);
    }

    fn disconnect(&mut self) {
        self.is_connected = false;
        self.is_ready = false;
        self.batch.clear();
    }

    fn count_sent(&mut self, len: usize) {
        self.report.datagrams_sent += 1;
        self.report.bytes_sent += len as u64;
    }

    fn send_records(&mut self, records: &[u8], send: SendTo<'_>) {
        let Some(session) = &mut self.session else {
            return;
        };
        if session.seal(records, &mut self.datagram).is_some() {
            let len = self.datagram.len();
            self.count_sent(len);
            send(&self.datagram);
        }
    }

    /// Appends a frame to the current batch and sends full batches. `release` is on this host's
    /// clock. Returns `false` if the host is not connected, in which case the frame is dropped.
    pub fn push(
        &mut self,
        now: Nanos,
        (port, line, release): (u16, u32, Nanos),
        bytes: &[u8],
        send: SendTo<'_>,
    ) -> bool {
        if !self.is_connected {
            self.report.frames_unsent += 1;
            return false;
        }
        let head = FrameHead {
            port,
            line,
            release,
        };
        self.report.frames_sent += 1;
        if BATCH_LEN + FRAME_HEAD_LEN + bytes.len() > self.room() {
            self.push_fragments(now, head, bytes, send);
            return true;
        }
        self.make_room(now, FRAME_HEAD_LEN + bytes.len(), send);
        self.batch_deadline = self.batch_deadline.max(release);
        self.other.frames_begun = self.other.frames_begun.wrapping_add(1);
        self.batch.u8(RECORD_FRAME);
        head.write(&mut self.batch);
        self.batch.u16(bytes.len() as u16);
        self.batch.extend_from_slice(bytes);
        true
    }

    /// Fragments a frame. The first fragment fills the current batch, so that long frames
    /// share datagrams.
    fn push_fragments(&mut self, now: Nanos, head: FrameHead, bytes: &[u8], send: SendTo<'_>) {
        let len_max = self.room().saturating_sub(BATCH_LEN + FRAGMENT_HEAD_LEN);
        let len_max = len_max.max(FrameHead::LEN + 1);
        let room_left = self
            .room()
            .saturating_sub(self.batch.len() + FRAGMENT_HEAD_LEN);
        let is_shared = !self.batch.is_empty() && room_left >= FRAGMENT_LEN_MIN;
        let first_len_max = if is_shared { room_left } else { len_max };
        let first_len = (first_len_max - FrameHead::LEN).min(bytes.len());
        let (first, rest) = bytes.split_at(first_len);
        let count = 1 + rest.len().div_ceil(len_max);
        let release = head.release;
        self.frame_number = self.frame_number.wrapping_add(1);
        let fragments = std::iter::once(first).chain(rest.chunks(len_max));
        for (index, fragment) in fragments.enumerate() {
            let head = (index == 0).then_some(head);
            let len = fragment.len() + head.map_or(0, |_| FrameHead::LEN);
            self.make_room(now, FRAGMENT_HEAD_LEN + len, send);
            self.batch_deadline = self.batch_deadline.max(release);
            self.batch.u8(RECORD_FRAGMENT);
            self.batch.u32(self.frame_number);
            self.batch.u8(index as u8);
            self.batch.u8(count as u8);
            self.batch.u16(len as u16);
            if let Some(head) = head {
                self.other.frames_begun = self.other.frames_begun.wrapping_add(1);
                head.write(&mut self.batch);
            }
            self.batch.extend_from_slice(fragment);
        }
    }

    /// Returns the maximum size in bytes of a datagram's records.
    fn room(&self) -> usize {
        self.own.mtu.saturating_sub(HEADER_LEN + TAG_LEN)
    }

    /// Starts a batch, after sending the current one if it has no room for `len` bytes.
    fn make_room(&mut self, now: Nanos, len: usize, send: SendTo<'_>) {
        if self.batch.len() + len > self.room() {
            self.flush(now, send);
        }
        if self.batch.is_empty() {
            self.batch.u8(RECORD_BATCH);
            self.batch.u32(self.other.frames_begun);
            self.batch.u32(self.other.sent.next());
            self.batch_deadline = Nanos::ZERO;
        }
    }

    /// Sends the current batch.
    pub fn flush(&mut self, now: Nanos, send: SendTo<'_>) {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.send_records(&batch, send);
            let (deadline, times) = (self.batch_deadline, self.resend_times());
            self.batch = self.other.sent.keep(batch, deadline, now, times);
        }
    }

    /// Resends a batch that the other host is missing, if it can arrive in time.
    fn resend(&mut self, now: Nanos, low: u32, send: SendTo<'_>) {
        let times = self.resend_times();
        let Some(records) = self.other.sent.resend(low, now, times) else {
            return;
        };
        let mut records = records.to_vec();
        records[0] = RECORD_RESENT;
        self.report.datagrams_resent += 1;
        self.send_records(&records, send);
    }

    /// Processes a datagram from the host's address and passes its frames to `take`.
    ///
    /// # Errors
    /// The datagram was dropped.
    pub fn receive(
        &mut self,
        now: Stamp,
        datagram: &[u8],
        send: SendTo<'_>,
        take: TakeFrame<'_>,
    ) -> Result<(), Rejection> {
        let is_begun_there = self.own.index > self.index;
        let taken = match datagram.first() {
            Some(&KIND_INITIATE) if is_begun_there => self.answer(now, datagram, send),
            Some(&KIND_RESPOND) => self.complete(now, datagram),
            Some(&KIND_DATA) => self.open(now, datagram, send, take),
            _ => Err(Rejection::Foreign),
        };
        if taken == Err(Rejection::Replayed) {
            self.report.replayed += 1;
        }
        taken
    }

    fn answer(&mut self, now: Stamp, datagram: &[u8], send: SendTo<'_>) -> Result<(), Rejection> {
        let first = FirstMessage::read(&self.key, datagram).ok_or(Rejection::Foreign)?;
        let theirs = first.theirs;
        if theirs.index != self.index {
            return Err(Rejection::Foreign);
        }
        if !self.answered.accept(&theirs) {
            return Err(Rejection::Replayed);
        }
        let answered = first.answer(&self.introduction(now.monotonic));
        let (session, answer) = answered.ok_or(Rejection::Foreign)?;
        self.pending.push_back((session, theirs));
        if self.pending.len() > PENDING_MAX {
            self.pending.pop_front();
        }
        self.count_sent(answer.len());
        send(&answer);
        Ok(())
    }

    fn complete(&mut self, now: Stamp, datagram: &[u8]) -> Result<(), Rejection> {
        let (session, theirs) = self.begun.accept(datagram)?;
        if theirs.index != self.index {
            return Err(Rejection::Foreign);
        }
        self.begin_session(now, session, theirs);
        Ok(())
    }

    fn begin_session(&mut self, now: Stamp, session: Session, theirs: Introduction) {
        if theirs.digest != self.own.digest {
            self.events.push_back(PeerEvent::OtherNetwork);
        }
        if let Some(before) = self.theirs
            && before.instance != theirs.instance
        {
            if self.is_connected {
                self.lose_contact();
            }
            self.disconnect();
            self.has_restarted = true;
            self.answered.retire(before.instance);
            self.report.frames_unconfirmed += std::mem::take(&mut self.unconfirmed);
            self.report.frames_lost += std::mem::take(&mut self.other).lost();
        }
        self.session_before = self.session.replace(session);
        self.pending.clear();
        self.theirs = Some(theirs);
        self.report.sessions += 1;
        self.heard_at = now.monotonic;
        self.ping_at = now.monotonic;
        self.batch.clear();
        self.frames_before = self.other.frames_begun;
    }

    fn open(
        &mut self,
        now: Stamp,
        datagram: &[u8],
        send: SendTo<'_>,
        take: TakeFrame<'_>,
    ) -> Result<(), Rejection> {
        let mut records = std::mem::take(&mut self.records);
        let opened = self.open_in_session(now, datagram, &mut records);
        if opened.is_ok() {
            self.heard_at = now.monotonic;
            self.sent_when_heard = self.report.frames_sent;
            self.unconfirmed = 0;
            // Ignore a parse error: an authenticated host's records are well-formed.
            let _ = self.read(now, Reader(&records), send, take);
        }
        self.records = records;
        opened
    }

    fn open_in_session(
        &mut self,
        now: Stamp,
        datagram: &[u8],
        records: &mut Vec<u8>,
    ) -> Result<(), Rejection> {
        let current = self.session.as_mut();
        match current.map(|session| session.open(datagram, records)) {
            None | Some(Err(Rejection::Foreign)) => {}
            Some(opened) => return opened,
        }
        let mut pending = self.pending.iter_mut();
        let used = pending.position(|(session, _)| session.open(datagram, records).is_ok());
        let Some((session, theirs)) = used.and_then(|at| self.pending.remove(at)) else {
            let is_earlier = |before: &Session| before.is_named_by(datagram);
            return Err(if self.session_before.as_ref().is_some_and(is_earlier) {
                Rejection::Replayed
            } else {
                Rejection::Foreign
            });
        };
        // The other host has received the response and uses the new keys.
        self.begin_session(now, session, theirs);
        Ok(())
    }

    /// Processes records; `None` if they are truncated.
    fn read(
        &mut self,
        now: Stamp,
        mut reader: Reader<'_>,
        send: SendTo<'_>,
        take: TakeFrame<'_>,
    ) -> Option<()> {
        let (mut begun, mut is_resent) = (0u64, false);
        while let Some(kind) = reader.u8() {
            match kind {
                RECORD_BATCH | RECORD_RESENT => {
                    is_resent = kind == RECORD_RESENT;
                    begun = whole(reader.u32()?, self.other.expected);
                    let (number, times) = (reader.u32()?, self.resend_times());
                    if !self.other.missing.accept(number, now.monotonic, times) {
                        return Some(());
                    }
                }
                RECORD_FRAME => {
                    let head = FrameHead::read(&mut reader)?;
                    let len = reader.u16()?;
                    begun += 1;
                    self.deliver(now, head, reader.bytes(len.into())?, take);
                    self.report.frames_recovered += u64::from(is_resent);
                }
                RECORD_FRAGMENT => {
                    let head = FragmentHead::read(&mut reader)?;
                    let len = reader.u16()?;
                    let bytes = reader.bytes(len.into())?;
                    begun += u64::from(head.index == 0);
                    let mut partial = std::mem::take(&mut self.other.partial);
                    if let Some(whole) = partial.take(head, bytes) {
                        let mut whole = Reader(whole);
                        if let Some(head) = FrameHead::read(&mut whole) {
                            self.deliver(now, head, whole.0, take);
                            self.report.frames_recovered += u64::from(is_resent);
                        }
                    }
                    self.other.partial = partial;
                }
                RECORD_PING => {
                    let ping = Ping::read(&mut reader)?;
                    self.pinged(now, &ping, send);
                }
                RECORD_PONG => {
                    let stamps = [reader.time()?, reader.time()?, reader.time()?];
                    self.ponged(now, stamps);
                }
                RECORD_TAIL => {
                    let times = self.resend_times();
                    self.other
                        .missing
                        .hear_of(reader.u32()?, now.monotonic, times);
                }
                RECORD_MISSING => {
                    for _ in 0..reader.u8()? {
                        self.resend(now.monotonic, reader.u32()?, send);
                    }
                }
                _ => return None,
            }
            self.other.expected = self.other.expected.max(begun);
        }
        Some(())
    }

    fn pinged(&mut self, now: Stamp, ping: &Ping, send: SendTo<'_>) {
        let mut records = Vec::new();
        records.u8(RECORD_PONG);
        records.time(ping.sent.monotonic);
        records.time(now.monotonic);
        records.time(now.monotonic);
        self.send_records(&records, send);
        self.is_ready = ping.is_ready;
        self.other.epoch = ping.epoch.or(self.other.epoch);
        let before = whole(ping.frames_before, self.other.expected);
        self.other.expected = self.other.expected.max(before);
        let step = self.other.wall.step(ping.sent);
        self.events.extend(step.map(PeerEvent::ClockSet));
        self.connect(now.monotonic);
    }

    fn ponged(&mut self, now: Stamp, [sent, received, answered]: [Nanos; 3]) {
        let stamps = [sent, received, answered, now.monotonic];
        if let Some(step) = self.other.offset.exchange(stamps) {
            self.events.push_back(PeerEvent::ClockJumped(step));
            self.other.converted.clear();
        }
        self.connect(now.monotonic);
    }

    /// Marks the host as connected once both hosts have estimated each other's clock offset.
    fn connect(&mut self, now: Nanos) {
        let is_same = self.theirs.is_some_and(|it| it.digest == self.own.digest);
        let is_ready = self.is_ready && is_same && self.other.offset.at(now).is_some();
        if is_ready && !self.is_connected {
            self.is_connected = true;
            let restarted = std::mem::take(&mut self.has_restarted);
            self.events.push_back(PeerEvent::Connected { restarted });
        }
    }

    /// Passes on a frame with its release on this host's clock.
    fn deliver(&mut self, now: Stamp, head: FrameHead, bytes: &[u8], take: TakeFrame<'_>) {
        let Some(offset) = self.other.offset.at(now.monotonic) else {
            return;
        };
        let theirs = head.release.as_nanos();
        let release = self.in_order(head.port, theirs, theirs.wrapping_add_signed(offset));
        let spare = release.wrapping_sub(now.monotonic.as_nanos()) as i64;
        let is_late = spare < 0;
        self.other.received += 1;
        self.report.frames_received += 1;
        let least = self.report.spare_min_ns.unwrap_or(i64::MAX);
        self.report.spare_min_ns = Some(least.min(spare));
        if is_late {
            self.report.frames_late += 1;
            let late = spare.unsigned_abs();
            self.report.late_max_ns = self.report.late_max_ns.max(late);
        }
        take(RemoteFrame {
            port: PortIndex(head.port),
            line: head.line,
            release: Nanos::from_nanos(release).max(now.monotonic),
            is_late,
            bytes,
        });
    }

    /// Returns a release on this host's clock, in the order of the other host's releases even if
    /// the estimated offset has changed.
    fn in_order(&mut self, port: u16, theirs: u64, ours: u64) -> u64 {
        let port = usize::from(port);
        if port >= self.other.converted.len() {
            self.other.converted.resize(port + 1, (0, 0));
        }
        let (theirs_last, ours_last) = self.other.converted[port];
        if theirs < theirs_last {
            return ours.min(ours_last);
        }
        let ours = ours.max(ours_last);
        self.other.converted[port] = (theirs, ours);
        ours
    }
}
