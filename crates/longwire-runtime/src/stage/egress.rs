//! The egress stage: takes due frames off the delay line, sends them in batches, and accounts for
//! their lateness.

use std::sync::Arc;

use longwire_engine::Nanos;
use longwire_io::delay_line::DelayLineReader;
use longwire_io::port::StampedBy;
use longwire_io::{PortError, PushResult, TxPort};

use super::account::{Account, wire_frames_of};
use super::lane::{IcmpReceiver, LaneParts};
use super::lateness::{Judge, SendStamps};
use super::output::{DeparturePlace, OutputStage, Turn};
use super::releases::Releases;
use super::{BURST, Step};
use crate::clock::Clock;
use crate::counters::LinkShared;
use crate::deciding::InsideCounts;
use crate::record::RecordHandle;
use crate::witness::PauseHistory;

/// The parts of an egress stage.
pub struct EgressParts<T> {
    /// The output port.
    pub port: T,
    /// The delay line.
    pub line: DelayLineReader,
    /// The clock.
    pub clock: Clock,
    /// Whether releases on the line never decrease, in which case the line is the release queue.
    pub in_order: bool,
    /// The link, if it has a managed queue. Frames then arrive undecided.
    pub link: Option<LaneParts>,
    /// Records departing frames.
    pub record_handle: Option<RecordHandle>,
    /// Maximum lateness; later handovers are artifacts.
    pub tolerance: Nanos,
    /// Frames released before this time belong to the run's start.
    pub grace_until: Nanos,
}

/// One direction's egress stage.
pub struct Egress<T> {
    port: T,
    releases: Releases,
    clock: Clock,
    pub(crate) account: Account,
    stamps: Option<Box<SendStamps>>,
    /// Time of the last step.
    stepped: Nanos,
    /// ICMP errors to send.
    pub(crate) icmp: Option<Box<IcmpReceiver>>,
}

/// The result of sending a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendOutcome {
    /// Frames that left.
    pub frames: usize,
    /// Whether the port is full.
    pub full: bool,
}

/// Maximum time before a full port is retried.
pub(crate) const RETRY_AFTER: Nanos = Nanos::from_micros(20);

impl<T: TxPort> Egress<T> {
    /// Returns a stage that publishes to `shared`.
    pub(crate) fn new(parts: EgressParts<T>, shared: Arc<LinkShared>) -> Egress<T> {
        let lead = parts.port.launch_lead().unwrap_or_default();
        let judge = Judge::new(parts.tolerance, parts.grace_until);
        Egress {
            port: parts.port,
            releases: Releases::new(parts.line, parts.in_order, parts.link),
            clock: parts.clock,
            account: Account::new(judge, lead, parts.record_handle, shared),
            stamps: None,
            stepped: Nanos::ZERO,
            icmp: None,
        }
    }

    /// Requests the send stamp of one frame in `every`, and reports stamps from now on. Returns
    /// their source; `None` if the port has none.
    pub(crate) fn watch_sends(&mut self, every: u32) -> Option<StampedBy> {
        let by = self.port.sample_every(every)?;
        let shared = &self.account.shared.send_stamps;
        self.stamps = Some(Box::new(SendStamps::new(by, every, shared)));
        Some(by)
    }

    /// Returns the output port.
    pub fn port(&self) -> &T {
        &self.port
    }

    /// Pushes the router's ICMP errors to this port, and returns whether the port is full.
    #[inline]
    fn send_icmp(&mut self, now: Nanos) -> bool {
        let Some(errors) = &mut self.icmp else {
            return false;
        };
        while self.account.batch.len() < BURST
            && let Some(error) = errors.front()
        {
            let (port, account) = (&mut self.port, &mut self.account);
            if account.give_icmp(port, &error.bytes, error.at, now) == PushResult::Full {
                return true;
            }
            errors.advance();
        }
        false
    }

    fn has_icmp(&mut self) -> bool {
        let front = self.icmp.as_mut().map(|errors| errors.front().is_some());
        front == Some(true)
    }

    /// Moves frames from the line to their queue and makes a managed queue's decisions. Afterwards,
    /// the next departure is known.
    #[inline]
    pub(crate) fn prepare(&mut self, now: Nanos) {
        if self.port.needs_idle_fill() {
            self.port.sync_clock(now);
        }
        let due_by = now.saturating_add(self.account.lead);
        self.releases.prepare(due_by, &mut self.account);
    }

    /// Sends at most one burst of frames due at `now`, within the limits of `turn`, if any.
    ///
    /// # Errors
    /// The output port's flush fails.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        now: Nanos,
        turn: Option<&Turn>,
    ) -> Result<SendOutcome, PortError> {
        let mut full = false;
        self.stepped = now;
        let due_by = now.saturating_add(self.account.lead);
        while !full
            && self.account.batch.len() < BURST
            && let Some(given) = self.give_next(due_by, turn)
        {
            full = given == PushResult::Full;
            if !full
                && turn.is_none()
                && let Some(line) = self.releases.line()
            {
                full = self.account.give_plain(&mut self.port, line, due_by);
            }
        }
        self.releases.publish();
        if full && self.account.batch.is_empty() {
            // The port is full of earlier frames.
            self.account.full_at = now;
        }
        let frames = self.flush(now)?;
        Ok(SendOutcome { frames, full })
    }

    /// Pushes the next frame to the port if it is due and `turn` allows.
    #[inline]
    fn give_next(&mut self, due_by: Nanos, turn: Option<&Turn>) -> Option<PushResult> {
        let (next, bytes) = self.releases.front(due_by)?;
        let place = place_of(next.release(), next.tag(), self.account.lead);
        if turn.is_some_and(|turn| !turn.allows(place)) {
            return None;
        }
        let frame = (&next, bytes);
        let given = self.account.give_from(&mut self.port, None, frame, due_by);
        if given != PushResult::Full {
            self.releases.advance();
        }
        Some(given)
    }

    /// Flushes the port and returns the number of frames that left.
    ///
    /// # Errors
    /// The output port's flush fails.
    #[inline]
    pub(crate) fn flush(&mut self, now: Nanos) -> Result<usize, PortError> {
        self.keep_busy(now)?;
        if self.account.batch.is_empty() {
            return Ok(0);
        }
        let (frames, end) = self
            .account
            .flush_noting(&mut self.port, &self.clock, |_| {})?;
        self.releases.settle();
        self.look_at_stamps(end);
        Ok(frames)
    }

    /// Counts frames that were due at the last step and have not left as late.
    fn count_overdue(&mut self) {
        let now = self.stepped;
        if self.account.timeless {
            return;
        }
        while let Some((next, _)) = self.releases.front(now) {
            let frames = wire_frames_of(&next).0;
            self.account.overdue(next.release(), now, frames.into());
            self.releases.advance();
        }
    }

    /// Publishes the accounts while idle.
    pub(crate) fn idle(&mut self, now: Nanos) {
        self.account.rest(now);
        self.account.look_at_losses(&mut self.port, now);
        self.look_at_stamps(now);
    }

    /// Lets the port fill the gaps between frames.
    #[inline]
    fn keep_busy(&mut self, now: Nanos) -> Result<(), PortError> {
        if self.port.needs_idle_fill() {
            self.port.fill(now);
            if self.account.batch.is_empty() {
                self.port.flush()?;
            }
        }
        Ok(())
    }

    /// Returns the place of the next departure, as of the last [`Egress::prepare`].
    pub(crate) fn next_place(&mut self) -> Option<DeparturePlace> {
        let (release, number) = self.releases.next_departure()?;
        Some(place_of(release, number, self.account.lead))
    }

    fn next_at(&mut self, now: Nanos, full: bool) -> Option<Nanos> {
        if self.port.needs_idle_fill() {
            return Some(now);
        }
        if full || self.port.unsent() > 0 {
            return Some(now.saturating_add(RETRY_AFTER));
        }
        self.next_release()
    }

    /// Reads send stamps at intervals, right after a handover, when the next departure is farthest
    /// away.
    #[inline]
    fn look_at_stamps(&mut self, now: Nanos) {
        if let Some(stamps) = &mut self.stamps
            && stamps.is_time(now)
        {
            stamps.look(now, &mut self.port, &self.account.shared.send_stamps);
        }
    }

    /// Returns the first release after `time` if it is near the front and the line is the release
    /// queue.
    pub(crate) fn release_beyond(&mut self, time: Nanos) -> Option<Nanos> {
        self.releases.release_beyond(time, BURST as u64)
    }

    /// Returns the output port and drops the stage.
    pub fn into_port(self) -> T {
        self.port
    }
}

impl<T: TxPort> OutputStage for Egress<T> {
    fn step(&mut self) -> Result<Step, PortError> {
        let now = self.clock.now();
        self.prepare(now);
        let full = self.send_icmp(now);
        let burst = self.send(now, None)?;
        let next_at = self.next_at(now, burst.full || full);
        if burst.frames == 0 && next_at.is_none() {
            self.idle(now);
        }
        Ok(Step {
            frames: burst.frames,
            next_at,
            ended: false,
        })
    }

    fn next_release(&mut self) -> Option<Nanos> {
        if self.has_icmp() {
            return Some(Nanos::ZERO);
        }
        let release = self.releases.next_at();
        release.map(|release| release.saturating_sub(self.account.lead))
    }

    fn is_empty(&mut self) -> bool {
        self.port.unsent() == 0 && !self.has_icmp() && self.releases.next_at().is_none()
    }

    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>) {
        self.account.judge.threads.push(Arc::clone(pauses));
    }

    fn finish(&mut self) -> Option<InsideCounts> {
        if let Some(stamps) = &mut self.stamps {
            stamps.finish(&mut self.port, &self.account.shared.send_stamps);
        }
        self.count_overdue();
        self.account.finish(&mut self.port, &self.clock);
        self.releases.finish();
        None
    }

    fn remarks(&self) -> Vec<String> {
        self.port.remarks()
    }
}

/// Returns the place of a frame that the port receives `lead` before its release.
#[inline]
fn place_of(release: Nanos, number: u32, lead: Nanos) -> DeparturePlace {
    DeparturePlace {
        at: release.saturating_sub(lead),
        number,
    }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
