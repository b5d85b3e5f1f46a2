//! A link's medium: loss, then corruption and duplication, then delay, reordering and the order
//! policy.

use alloc::collections::VecDeque;
use core::mem;

use longwire_packet::edit::{self, Corruption};
use longwire_units::Nanos;
use longwire_units::random::{Purpose, Stream};

use crate::frame_context::FrameContext;
use crate::losses::{LossOutcome, Losses};
use crate::models::Described;
use crate::models::corruption::CorruptionModel;
use crate::models::delay::{ConstantDelay, DelayModel};
use crate::models::duplication::{Copies, DuplicationModel};
use crate::models::loss::LossPlace;
use crate::models::order::OrderPolicy;
use crate::models::reordering::{Displacement, ReorderingModel, delay_least};
use crate::origin::Origin;
use crate::parts::LinkChange;
use crate::prelude::*;
use crate::verdict::{Delivery, Edits, Verdict};

/// A link's medium and its state.
#[derive(Debug)]
pub(crate) struct Medium {
    losses: Losses,
    delay: Box<dyn DelayModel>,
    /// The delay, if constant; avoids the dynamic call.
    delay_fixed: Option<Nanos>,
    delay_stream: Stream,
    /// Rarely used parts, boxed so that their absence costs one check.
    extras: Option<Box<Extras>>,
    order: OrderPolicy,
    /// Delay that the rate model adds to the next frame.
    rate_delay: Nanos,
    /// Whether every delivery is flagged for header rewriting.
    rewrite: bool,
    /// Latest release; with in-order delivery, the lower bound for later releases.
    last_release: Nanos,
}

/// Corruption, duplication and intentional reordering.
#[derive(Debug)]
struct Extras {
    corruption: Option<(Described<dyn CorruptionModel>, Stream)>,
    duplication: Option<(Described<dyn DuplicationModel>, Stream)>,
    copy_delay_stream: Stream,
    reordering: Option<(Described<dyn ReorderingModel>, Stream)>,
    /// Scratch copy of a frame, to test whether corruption and repair change it.
    scratch: Vec<u8>,
    /// Pending deliveries of the last frame, in reverse order.
    copies: Vec<Delivery>,
    /// Corruption of delivered frames not yet edited, in delivery order.
    pending_corruptions: VecDeque<Corruption>,
}

impl Extras {
    fn new(origin: &Origin) -> Extras {
        Extras {
            corruption: None,
            duplication: None,
            copy_delay_stream: origin.stream(Purpose::CopyDelay),
            reordering: None,
            scratch: Vec::new(),
            copies: Vec::new(),
            pending_corruptions: VecDeque::new(),
        }
    }
}

impl Medium {
    /// Moves the medium's parts out of a link configuration. `rewrite` flags every delivery for
    /// header rewriting.
    pub fn new(parts: &mut LinkChange, rewrite: bool, origin: &Origin) -> Medium {
        let mut medium = Medium {
            losses: Losses::default(),
            delay: Box::new(ConstantDelay(Nanos::ZERO)),
            delay_fixed: Some(Nanos::ZERO),
            delay_stream: origin.stream(Purpose::Delay),
            extras: None,
            order: OrderPolicy::InOrder,
            rate_delay: Nanos::ZERO,
            rewrite: false,
            last_release: Nanos::ZERO,
        };
        medium.change(parts, rewrite, origin);
        medium
    }

    /// Installs new models for frames that depart from now on and returns the old losses. `rewrite`
    /// flags deliveries for header rewriting from now on.
    pub fn change(
        &mut self,
        change: &mut LinkChange,
        rewrite: bool,
        origin: &Origin,
    ) -> Option<Losses> {
        if let Some(delay) = &mut change.delay {
            delay.start(origin.epoch);
            mem::swap(&mut self.delay, &mut delay.model);
            self.delay_fixed = self.delay.fixed();
            self.delay_stream = origin.stream(Purpose::Delay);
        }
        self.order = change.order.unwrap_or(self.order);
        self.rewrite = rewrite;
        if change.corruption.is_some()
            || change.duplication.is_some()
            || change.reordering.is_some()
        {
            self.change_extras(change, origin);
        }
        let loss = change.loss.as_mut()?;
        let losses = Losses::take(loss, LossPlace::Medium, origin);
        Some(mem::replace(&mut self.losses, losses))
    }

    fn change_extras(&mut self, change: &mut LinkChange, origin: &Origin) {
        let extras = self.extras.take();
        let mut extras = extras.unwrap_or_else(|| Box::new(Extras::new(origin)));
        if let Some(corruption) = &mut change.corruption {
            let new = corruption.take().map(|mut model| {
                model.start(origin.epoch);
                (model, origin.stream(Purpose::Corruption))
            });
            *corruption = mem::replace(&mut extras.corruption, new).map(|(model, _)| model);
        }
        if let Some(duplication) = &mut change.duplication {
            let new = duplication.take().map(|mut model| {
                model.start(origin.epoch);
                (model, origin.stream(Purpose::Duplication))
            });
            *duplication = mem::replace(&mut extras.duplication, new).map(|(model, _)| model);
            extras.copy_delay_stream = origin.stream(Purpose::CopyDelay);
        }
        if let Some(reordering) = &mut change.reordering {
            let new = reordering.take().map(|mut model| {
                model.start(origin.epoch);
                (model, origin.stream(Purpose::Reordering))
            });
            *reordering = mem::replace(&mut extras.reordering, new).map(|(model, _)| model);
        }
        let none = extras.corruption.is_none()
            && extras.duplication.is_none()
            && extras.reordering.is_none();
        self.extras = (!none).then_some(extras);
    }

    /// Whether releases never decrease.
    pub fn in_order(&self) -> bool {
        self.order == OrderPolicy::InOrder && !self.displaces()
    }

    /// Returns a lower bound on the time from departure to release.
    pub fn delay_least(&self) -> Nanos {
        let extras = self.extras.as_deref();
        let reordering = extras.and_then(|extras| extras.reordering.as_ref());
        delay_least(&*self.delay, reordering.map(|(model, _)| &**model))
    }

    /// Whether the medium only loses and delays frames, without reading their bytes.
    pub fn is_plain(&self) -> bool {
        self.extras.is_none() && !self.rewrite && !self.reads_bytes()
    }

    /// Returns the delay if the medium adds only a constant delay and no earlier release exceeds
    /// `departure` plus this delay.
    pub fn only_delays(&self, departure: Nanos) -> Option<Nanos> {
        let delay = self.delay_fixed.filter(|_| self.ignores_queue())?;
        let in_order = self.last_release <= departure.saturating_add(delay);
        (self.is_plain() && self.in_order() && in_order).then_some(delay)
    }

    /// Notes a release for the in-order policy.
    pub fn note_release(&mut self, release: Nanos) {
        self.last_release = self.last_release.max(release);
    }

    /// Whether no model may depend on the queue behind a frame.
    #[inline]
    pub fn ignores_queue(&self) -> bool {
        self.losses.is_empty() && self.delay_fixed.is_some() && self.extras.is_none()
    }

    fn reads_bytes(&self) -> bool {
        self.losses.reads_bytes() || self.delay.reads_bytes()
    }

    /// Whether any model reads or corrupts bytes, or duplicates frames.
    pub fn changes_frames(&self) -> bool {
        let changes = |extras: &Extras| extras.corruption.is_some() || extras.duplication.is_some();
        self.reads_bytes() || self.extras.as_deref().is_some_and(changes)
    }

    fn displaces(&self) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| extras.reordering.is_some())
    }

    /// Sets the delay that the rate model adds to the next frame.
    #[inline]
    pub fn set_rate_delay(&mut self, delay: Nanos) {
        self.rate_delay = delay;
    }

    /// Returns the next delivery of the last frame, if [`Delivery::more`] was set.
    pub fn next_copy(&mut self) -> Option<Delivery> {
        self.extras.as_mut()?.copies.pop()
    }

    /// Returns the corruption for the next frame with `corrupt` set.
    pub fn next_corruption(&mut self) -> Option<Corruption> {
        self.extras.as_mut()?.pending_corruptions.pop_front()
    }

    /// Passes a departing frame through the medium. `mark` is set if the frame is already marked.
    /// `frame` is evaluated only if a model reads it. `PLAIN` asserts [`Medium::is_plain`].
    ///
    /// Every model draws once per frame, even if the frame is lost, so that losses do not change
    /// the delays of other frames.
    #[inline(always)]
    pub fn pass<'a, const PLAIN: bool>(
        &mut self,
        departure: Nanos,
        mark: bool,
        frame: impl Fn() -> FrameContext<'a> + Copy,
    ) -> Verdict {
        let outcome = self.losses.judge(frame);
        // Marks need bytes, which a plain medium never reads.
        let mark = mark || (!PLAIN && outcome == LossOutcome::Mark);
        if !PLAIN && self.extras.is_some() {
            return self.pass_with_extras(&frame(), mark, outcome);
        }
        let mut delay = match self.delay_fixed {
            Some(delay) => delay,
            None => self.delay.draw(&frame(), &mut self.delay_stream),
        };
        if !PLAIN {
            delay = delay.saturating_add(self.rate_delay);
        }
        if let LossOutcome::Drop(reason) = outcome {
            return Verdict::Drop(reason);
        }
        let edits = Edits {
            mark,
            corrupt: false,
            rewrite: !PLAIN && self.rewrite,
        };
        Verdict::Deliver(self.release_in_order(departure, departure.saturating_add(delay), edits))
    }

    fn draw_delay(&mut self, frame: &FrameContext<'_>) -> Nanos {
        let delay = match self.delay_fixed {
            Some(delay) => delay,
            None => self.delay.draw(frame, &mut self.delay_stream),
        };
        delay.saturating_add(self.rate_delay)
    }

    #[inline]
    fn release_in_order(&mut self, departure: Nanos, requested: Nanos, edits: Edits) -> Delivery {
        // Updated under either policy, so that no frame overtakes earlier ones after a change from
        // `reorder` to `in-order`.
        self.last_release = requested.max(self.last_release);
        let release = match self.order {
            OrderPolicy::InOrder => self.last_release,
            OrderPolicy::Reorder => requested,
        };
        Delivery {
            departure,
            release,
            raised: release > requested,
            edits,
            more: false,
        }
    }

    #[inline(never)]
    fn pass_with_extras(
        &mut self,
        frame: &FrameContext<'_>,
        mark: bool,
        outcome: LossOutcome,
    ) -> Verdict {
        let Some(mut extras) = self.extras.take() else {
            return Verdict::Queued;
        };
        let corruption = match &mut extras.corruption {
            Some((model, stream)) => model.judge(frame, stream),
            None => None,
        };
        let scratch = &mut extras.scratch;
        let corruption =
            corruption.filter(|corruption| edit::changes(frame.bytes, corruption, scratch));
        let copies = match &mut extras.duplication {
            Some((model, stream)) => model.judge(frame, stream),
            None => None,
        };
        let delay = self.draw_delay(frame);
        let displaced = match &mut extras.reordering {
            Some((model, stream)) => model.judge(frame, stream),
            None => None,
        };
        let edits = Edits {
            mark,
            corrupt: corruption.is_some(),
            rewrite: self.rewrite,
        };
        let verdict = match outcome {
            LossOutcome::Drop(reason) => Verdict::Drop(reason),
            LossOutcome::Pass | LossOutcome::Mark => {
                extras.pending_corruptions.extend(corruption);
                let first = self.displace(frame.at, delay, displaced, edits);
                let copies = copies.filter(|copies| copies.count > 0);
                Verdict::Deliver(match copies {
                    Some(copies) => self.duplicate(frame, &mut extras, delay, copies, first),
                    None => first,
                })
            }
        };
        self.extras = Some(extras);
        verdict
    }

    /// Schedules a frame's release. A displaced frame neither waits for earlier frames nor delays
    /// later ones.
    fn displace(
        &mut self,
        departure: Nanos,
        delay: Nanos,
        displaced: Option<Displacement>,
        edits: Edits,
    ) -> Delivery {
        let release = match displaced {
            None => {
                return self.release_in_order(departure, departure.saturating_add(delay), edits);
            }
            Some(Displacement::Hurry) => departure,
            Some(Displacement::Hold(time)) => departure.saturating_add(delay).saturating_add(time),
        };
        Delivery {
            departure,
            release,
            raised: false,
            edits,
            more: false,
        }
    }

    /// Duplicates a frame. Copies follow the frame in order. Their delays come from a separate
    /// stream, so that duplication does not change the delays of original frames.
    fn duplicate(
        &mut self,
        frame: &FrameContext<'_>,
        extras: &mut Extras,
        delay: Nanos,
        copies: Copies,
        first: Delivery,
    ) -> Delivery {
        for _ in 0..copies.count {
            let delay = match self.delay_fixed {
                None if copies.own_delay => {
                    let own = self.delay.draw_copy(frame, &mut extras.copy_delay_stream);
                    own.saturating_add(self.rate_delay)
                }
                _ => delay,
            };
            let requested = frame.at.saturating_add(delay);
            let mut copy = self.release_in_order(frame.at, requested, first.edits);
            copy.more = true;
            extras.copies.push(copy);
        }
        // Copies are popped from the end.
        extras.copies.reverse();
        if let Some(last) = extras.copies.first_mut() {
            last.more = false;
        }
        Delivery {
            more: true,
            ..first
        }
    }
}
