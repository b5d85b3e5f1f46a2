//! The loss models of one place in a link, with their random streams.

use alloc::boxed::Box;
use alloc::vec::Vec;

use longwire_packet::header::IpHeader;
use longwire_units::Probability;
use longwire_units::random::{Purpose, Stream};

use crate::frame_context::FrameContext;
use crate::models::loss::{LossDecision, LossEcn, LossModel, LossPlace, PlacedLoss};
use crate::origin::Origin;
use crate::verdict::DropReason;

/// The effect of the loss models of one place on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossOutcome {
    /// Nothing.
    Pass,
    /// It is marked: congestion experienced.
    Mark,
    /// It is lost.
    Drop(DropReason),
}

/// Loss models that act at one place.
#[derive(Debug, Default)]
pub(crate) struct Losses(Vec<Loss>);

/// A loss model with its random stream.
#[derive(Debug)]
struct Loss {
    model: Box<dyn LossModel>,
    ecn: LossEcn,
    /// A constant outcome: saves the call.
    fixed: Option<(Probability, DropReason)>,
    stream: Stream,
}

impl Losses {
    /// Takes the models for `place` out of `loss`.
    pub fn take(loss: &mut Vec<PlacedLoss>, place: LossPlace, origin: &Origin) -> Losses {
        let purpose = match place {
            LossPlace::Entry => Purpose::EntryLoss,
            LossPlace::Medium => Purpose::MediumLoss,
        };
        let mut taken: Vec<Loss> = Vec::new();
        for placed in loss.extract_if(.., |loss| loss.place == place) {
            let PlacedLoss { mut model, ecn, .. } = placed;
            let namesake = |other: &&Loss| other.model.name() == model.name();
            let nth = taken.iter().filter(namesake).count() as u32;
            model.start(origin.epoch);
            taken.push(Loss {
                stream: origin.stream_of(purpose, model.name(), nth),
                fixed: model.fixed(),
                ecn,
                model,
            });
        }
        Losses(taken)
    }

    /// Whether no model acts here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether frames' bytes are read: by a model, or to see whether a frame takes marks.
    pub fn reads_bytes(&self) -> bool {
        let reads = |loss: &Loss| loss.ecn != LossEcn::Drop || loss.model.reads_bytes();
        self.0.iter().any(reads)
    }

    /// Decides about a frame. `frame` is called only if its context is read: building it
    /// costs a nanosecond.
    ///
    /// A loss by any model wins over a mark, and the first one determines the reason; the
    /// others still draw, so that one model's outcome never shifts another's.
    #[inline]
    pub fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a>) -> LossOutcome {
        let mut outcome = LossOutcome::Pass;
        for loss in &mut self.0 {
            if let Some(reason) = loss.judge(&frame) {
                outcome = combine(outcome, loss.ecn, reason, &frame);
            }
        }
        outcome
    }
}

impl Loss {
    #[inline]
    fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a>) -> LossDecision {
        match self.fixed {
            Some((probability, reason)) => self.stream.chance(probability).then_some(reason),
            None => self.model.judge(&frame(), &mut self.stream),
        }
    }
}

/// Adds the decision of a model that selects the frame to the outcome of those before it.
/// Cold, so that the code for the common frame, which no model selects, is straight.
#[cold]
fn combine<'a>(
    before: LossOutcome,
    ecn: LossEcn,
    reason: DropReason,
    frame: impl Fn() -> FrameContext<'a>,
) -> LossOutcome {
    let takes_marks = || IpHeader::parse(frame().bytes).is_some_and(|ip| ip.ecn.capable());
    match (before, ecn) {
        (LossOutcome::Drop(_), _) => before,
        (_, LossEcn::Mark | LossEcn::MarkOnly) if takes_marks() => LossOutcome::Mark,
        (_, LossEcn::MarkOnly) => before,
        (_, LossEcn::Mark | LossEcn::Drop) => LossOutcome::Drop(reason),
    }
}
