//! Outputs of a replay, which share the order of their feed.

use std::sync::Arc;

use longwire_engine::Nanos;
use longwire_io::port::AnyTx;
use longwire_io::{PortError, TxPort};

use crate::clock::monotonic_now;
use crate::stage::{
    BURST, DeparturePlace, Egress, FeedNumbers, OutputStage, RETRY_AFTER, Step, Turn,
};
use crate::thread::earlier;

/// Egress stages of a replay on one thread. Frames leave in order of handover over all
/// ports; ties keep the order of the feed.
pub(super) struct Outputs {
    pub egress: Vec<Egress<AnyTx>>,
    /// Published frame number of all lines.
    pub numbers: Arc<FeedNumbers>,
}

/// Maximum frames per step, so that a stop is noticed.
const STEP_MAX: usize = 8 * BURST;

impl Outputs {
    /// Sends due frames, about [`STEP_MAX`] at most.
    ///
    /// # Errors
    /// The error of a port's flush.
    #[inline]
    pub fn step(&mut self) -> Result<Step, PortError> {
        match &mut self.egress[..] {
            [only] => only.step(),
            _ => self.step_in_order(),
        }
    }

    /// Lets the ports send in turn; a full port blocks all ports.
    fn step_in_order(&mut self) -> Result<Step, PortError> {
        // Read before the lines.
        let published = self.numbers.published();
        let now = monotonic_now();
        let mut frames = 0;
        let mut waits = false;
        for egress in &mut self.egress {
            egress.prepare(now);
            if egress.port().unsent() > 0 {
                // Accepted frames leave first.
                frames += egress.flush(now)?;
                waits |= egress.port().unsent() > 0;
            }
        }
        while frames < STEP_MAX
            && !waits
            && let Some((index, next, before)) = self.next()
        {
            let turn = Turn { before, published };
            if next.at > now || !turn.is_published(next) {
                break;
            }
            let egress = &mut self.egress[index];
            let burst = egress.send(now, Some(&turn))?;
            frames += burst.frames;
            waits = burst.full || egress.port().unsent() > 0;
        }
        let mut next_at = waits.then(|| now.saturating_add(RETRY_AFTER));
        for egress in &mut self.egress {
            if waits {
                egress.waits_for_receiver(now);
            }
            if frames == 0 {
                egress.idle(now);
            }
            if egress.port().needs_idle_fill() {
                frames += egress.flush(now)?;
                next_at = Some(now);
            }
        }
        let next_at = next_at.or_else(|| self.next_release());
        Ok(Step {
            frames,
            next_at,
            ended: false,
        })
    }

    /// Returns the stage with the next departure, its place, and the first departure of
    /// any other stage.
    fn next(&mut self) -> Option<(usize, DeparturePlace, Option<DeparturePlace>)> {
        let mut next: Option<(usize, DeparturePlace)> = None;
        let mut before = None;
        for (index, egress) in self.egress.iter_mut().enumerate() {
            let Some(place) = egress.next_place() else {
                continue;
            };
            match next {
                Some((_, first)) if first < place => {
                    before = Some(before.map_or(place, |other| place.min(other)));
                }
                _ => before = next.replace((index, place)).map(|(_, first)| first),
            }
        }
        next.map(|(index, place)| (index, place, before))
    }

    /// Returns the handover time of the next published frame.
    pub fn next_release(&mut self) -> Option<Nanos> {
        let stages = self.egress.iter_mut();
        stages.map(Egress::next_release).fold(None, earlier)
    }

    /// Returns the first release after `time`, if known without sorting.
    pub fn release_beyond(&mut self, time: Nanos) -> Option<Nanos> {
        let stages = self.egress.iter_mut();
        let releases = stages.map(|egress| egress.release_beyond(time));
        releases.fold(None, earlier)
    }

    /// Whether no frames wait.
    pub fn is_empty(&mut self) -> bool {
        self.egress.iter_mut().all(Egress::is_empty)
    }

    /// Publishes the last counts; returns the ports' notes.
    pub fn finish(&mut self) -> Vec<String> {
        for egress in &mut self.egress {
            egress.finish();
        }
        self.egress.iter().flat_map(Egress::remarks).collect()
    }
}
