//! The egress stage: take what is due off the delay line, batch, send,
//! account for how late it was.

use std::sync::Arc;

use longwire_engine::{Nanos, ReleaseQueue};
use longwire_io::delay_line::{DelayLineReader, Descriptor, HeldFrame};
use longwire_io::{Outgoing, PortError, Pushed, TxPort};

use super::decider::Decider;
use super::departures::Departures;
use super::managed::ManagedLine;
use super::{BURST, Step};
use crate::clock::Clock;
use crate::counters::{EgressCounts, LatenessRecorder, LinkShared};
use crate::record::{Event, Tap};

/// What an egress stage is made of.
pub struct EgressParts<T> {
    /// The port frames leave by.
    pub port: T,
    /// Where they wait.
    pub line: DelayLineReader,
    /// The clock.
    pub clock: Clock,
    /// Releases on the line never decrease: the line itself is the release
    /// queue.
    pub in_order: bool,
    /// The link, if it has a managed queue: frames come undecided.
    pub link: Option<Decider>,
    /// Records what leaves.
    pub tap: Option<Tap>,
    /// A handover later than this is an artifact.
    pub tolerance: Nanos,
}

/// The egress stage of one direction.
pub struct Egress<T> {
    port: T,
    line: DelayLineReader,
    waiting: Waiting,
    clock: Clock,
    account: Account,
}

/// How frames wait for their release.
enum Waiting {
    /// On the line, which is in the order of releases.
    OnLine,
    /// Taken off the line, for releases on it may decrease.
    Sorted(ReleaseQueue<HeldFrame>),
    /// Taken off the line, in a managed queue or sorted behind it.
    Managed(Box<ManagedLine>),
}

/// A port that is full is tried again after this time at the latest.
const RETRY_AFTER: Nanos = Nanos::from_micros(20);

impl<T: TxPort> Egress<T> {
    /// A stage that publishes to `shared`.
    pub(crate) fn new(parts: EgressParts<T>, shared: Arc<LinkShared>) -> Egress<T> {
        let waiting = match parts.link {
            Some(decider) => Waiting::Managed(Box::new(ManagedLine::new(decider))),
            None if parts.in_order => Waiting::OnLine,
            None => Waiting::Sorted(ReleaseQueue::new()),
        };
        Egress {
            port: parts.port,
            line: parts.line,
            waiting,
            clock: parts.clock,
            account: Account {
                counts: EgressCounts::default(),
                lateness: LatenessRecorder::new(),
                tolerance: parts.tolerance,
                batch: Vec::with_capacity(BURST),
                tap: parts.tap.map(Box::new),
                departures: None,
                timeless: false,
                shared,
            },
        }
    }

    /// From here on, gaps between departures are held against the schedule.
    pub(crate) fn watch_departures(&mut self) {
        self.account.departures = Some(Box::new(Departures::new()));
    }

    /// Frames have no times of their own: none is late.
    pub(crate) fn heed_no_time(&mut self) {
        self.account.timeless = true;
    }

    /// The output port.
    pub fn port(&self) -> &T {
        &self.port
    }

    /// Sends what is due, a burst at the most.
    pub fn step(&mut self) -> Result<Step, PortError> {
        let now = self.clock.now();
        if self.port.never_rests() {
            self.port.catch_up(now);
        }
        let mut full = false;
        match &self.waiting {
            Waiting::OnLine => self.send_in_order(now, &mut full),
            Waiting::Sorted(_) => self.send_sorted(now, &mut full),
            Waiting::Managed(_) => self.send_managed(now, &mut full),
        }
        let mut left = 0;
        self.keep_busy(now)?;
        if !self.account.batch.is_empty() {
            let handover = self.clock.now();
            left = self.port.flush()?;
            self.account.handed_over(left, handover, self.clock.now());
            self.line.settle();
        }
        let next_at = self.next_at(now, full);
        if left == 0 && next_at.is_none() {
            self.account.rest(now);
        }
        Ok(Step {
            frames: left,
            next_at,
            ended: false,
        })
    }

    /// Some ports send between frames too.
    #[inline]
    fn keep_busy(&mut self, now: Nanos) -> Result<(), PortError> {
        if self.port.never_rests() {
            self.port.fill(now);
            if self.account.batch.is_empty() {
                self.port.flush()?;
            }
        }
        Ok(())
    }

    /// The line is the release queue: its front is the next frame due.
    #[inline]
    fn send_in_order(&mut self, now: Nanos, full: &mut bool) {
        while self.account.batch.len() < BURST {
            let Some(next) = self.line.front() else {
                break;
            };
            if next.release > now {
                break;
            }
            let pushed = self.port.push(outgoing(&next, self.line.front_bytes()));
            if pushed == Pushed::Full {
                *full = true;
                break;
            }
            self.account.taken_off(&next);
            self.account
                .pushed(&next, self.line.front_bytes(), now, pushed);
            self.line.advance();
        }
    }

    /// The line's frames may overtake one another: they are sorted first.
    fn send_sorted(&mut self, now: Nanos, full: &mut bool) {
        let Waiting::Sorted(queue) = &mut self.waiting else {
            return;
        };
        while let Some(frame) = self.line.take() {
            let next = frame.descriptor();
            queue.push(next.link, next.release, frame);
        }
        while self.account.batch.len() < BURST && self.port.room() > 0 {
            let Some((link, release, frame)) = queue.pop_due(now) else {
                break;
            };
            let next = frame.descriptor();
            let pushed = self.port.push(outgoing(&next, self.line.bytes(&frame)));
            if pushed == Pushed::Full {
                // Its place among frames of the same release is lost; a port
                // with room does not say so.
                queue.push(link, release, frame);
                *full = true;
                break;
            }
            self.account.taken_off(&next);
            self.account
                .pushed(&next, self.line.bytes(&frame), now, pushed);
            self.line.free(frame);
        }
    }

    /// The line's frames have a managed queue before them.
    fn send_managed(&mut self, now: Nanos, full: &mut bool) {
        let Waiting::Managed(managed) = &mut self.waiting else {
            return;
        };
        // Before the line is emptied: what arrived by then is on it.
        let seen_until = self.account.shared.seen_until.get();
        managed.take_in(&mut self.line, &mut self.account);
        managed.decide(now.min(seen_until), &mut self.line, &mut self.account);
        while self.account.batch.len() < BURST && self.port.room() > 0 {
            let Some(due) = managed.pop_due(now) else {
                break;
            };
            let (next, bytes) = managed.frame(&due, &self.line);
            let pushed = self.port.push(outgoing(&next, bytes));
            if pushed == Pushed::Full {
                managed.put_back(due);
                *full = true;
                break;
            }
            self.account.pushed(&next, bytes, now, pushed);
            managed.sent(due, &mut self.line, &mut self.account);
        }
        managed.publish();
        self.line.settle();
    }

    fn next_at(&mut self, now: Nanos, full: bool) -> Option<Nanos> {
        if self.port.never_rests() {
            return Some(now);
        }
        if full || self.port.unsent() > 0 {
            return Some(now.saturating_add(RETRY_AFTER));
        }
        self.next_release()
    }

    /// The next release, of what has been published by now.
    pub fn next_release(&mut self) -> Option<Nanos> {
        let published = self.line.front().map(|next| next.release);
        match &mut self.waiting {
            Waiting::OnLine => published,
            // What still lies on the line has not been sorted in.
            Waiting::Sorted(queue) => published.into_iter().chain(queue.next_at()).min(),
            Waiting::Managed(managed) => published.into_iter().chain(managed.next_at()).min(),
        }
    }

    /// The first release later than `time`, if it is known without sorting
    /// and near the front.
    pub(crate) fn release_beyond(&mut self, time: Nanos) -> Option<Nanos> {
        match &self.waiting {
            Waiting::OnLine => self.line.release_beyond(time, BURST as u64),
            Waiting::Sorted(_) | Waiting::Managed(_) => None,
        }
    }

    /// Gives the output port back.
    pub fn into_port(self) -> T {
        self.port
    }

    /// Whether nothing waits any more.
    pub fn is_empty(&mut self) -> bool {
        self.port.unsent() == 0
            && self.line.front().is_none()
            && match &mut self.waiting {
                Waiting::OnLine => true,
                Waiting::Sorted(queue) => queue.is_empty(),
                Waiting::Managed(managed) => managed.next_at().is_none(),
            }
    }

    /// Publishes the last counts, the port's own losses included.
    pub(crate) fn finish(&mut self) {
        self.account.counts.send_failed = self.port.losses().send_failed;
        if let Some(tap) = &mut self.account.tap {
            tap.finish();
        }
        self.account.publish();
        if let Waiting::Managed(managed) = &mut self.waiting {
            managed.finish();
        }
        let now = self.clock.now();
        let shared = &self.account.shared;
        self.account.lateness.flush(now, &shared.lateness, true);
        if let Some(departures) = &mut self.account.departures {
            departures.flush(now, &shared.departures, true);
        }
    }
}

#[inline]
fn outgoing<'a>(next: &Descriptor, bytes: &'a [u8]) -> Outgoing<'a> {
    Outgoing {
        bytes,
        release: next.release,
        offload: next.offload,
        lent: next.lent,
        wire_len: next.wire_len,
    }
}

/// How many wire frames a buffer stands for, and their bytes.
#[inline]
fn wire_frames_of(frame: &Descriptor) -> (u32, u64) {
    match frame.offload.segments {
        None => (1, u64::from(frame.len)),
        Some(segments) => {
            let frames = segments.wire_frames(frame.len as usize).len() as u64;
            let repeated = (frames - 1) * u64::from(segments.header_len);
            (frames as u32, u64::from(frame.len) + repeated)
        }
    }
}

/// Lateness is told apart in steps of so many nanoseconds.
const LATENESS_STEP: u64 = 64;

/// The accounts of an egress stage.
pub(super) struct Account {
    pub counts: EgressCounts,
    lateness: LatenessRecorder,
    pub tolerance: Nanos,
    /// Releases and wire frames of what was pushed and has not left.
    batch: Vec<(Nanos, u32)>,
    tap: Option<Box<Tap>>,
    departures: Option<Box<Departures>>,
    timeless: bool,
    shared: Arc<LinkShared>,
}

impl Account {
    /// A record has left the line for good.
    #[inline]
    pub fn taken_off(&mut self, frame: &Descriptor) {
        self.counts.released += u64::from(wire_frames_of(frame).0);
    }

    /// A frame was given to the port.
    #[inline]
    fn pushed(&mut self, frame: &Descriptor, bytes: &[u8], now: Nanos, pushed: Pushed) {
        let (wire_frames, wire_bytes) = wire_frames_of(frame);
        if pushed == Pushed::Refused {
            self.counts.refused += u64::from(wire_frames);
            return;
        }
        self.counts.packets += u64::from(wire_frames);
        self.counts.bytes += wire_bytes;
        self.batch.push((frame.release, wire_frames));
        if let Some(tap) = &mut self.tap {
            tap.push(bytes, |bytes| Event::Left {
                handover: now,
                bytes,
            });
        }
    }

    /// The first `left` frames of the batch have left, between these times:
    /// how late were they?
    ///
    /// The port takes them one after the other, so each has its share of the
    /// call. A call's time is not all the emulator's: where both ends are on
    /// this machine, the kernel does the receiver's work in it.
    fn handed_over(&mut self, left: usize, start: Nanos, end: Nanos) {
        let left = left.min(self.batch.len());
        if self.timeless {
            self.batch.drain(..left);
            return self.publish();
        }
        let share = end.saturating_sub(start).as_nanos() / (left as u64).max(1);
        let mut handover = start;
        // Frames as late as one another are recorded at once.
        let mut alike = (Nanos::ZERO, 0);
        for (release, wire_frames) in self.batch.drain(..left) {
            let lateness = handover.saturating_sub(release);
            if let Some(departures) = &mut self.departures {
                departures.record(release, lateness);
            }
            handover = handover.saturating_add(Nanos::from_nanos(share));
            self.counts.late += match lateness > self.tolerance {
                true => u64::from(wire_frames),
                false => 0,
            };
            let steps = Nanos::from_nanos(lateness.as_nanos() / LATENESS_STEP * LATENESS_STEP);
            if steps != alike.0 {
                self.lateness.record(alike.0, alike.1);
                alike = (steps, 0);
            }
            alike.1 += u64::from(wire_frames);
        }
        self.lateness.record(alike.0, alike.1);
        self.publish();
        self.rest(end);
    }

    /// Time to show what was recorded, now and then.
    fn rest(&mut self, now: Nanos) {
        self.lateness.flush(now, &self.shared.lateness, false);
        if let Some(departures) = &mut self.departures {
            departures.flush(now, &self.shared.departures, false);
        }
    }

    fn publish(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.flush();
            self.counts.unrecorded = tap.lost();
        }
        self.shared.egress.store(&self.counts.to_cells());
    }
}
