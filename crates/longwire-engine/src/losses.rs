//! Loss models at one point in a link, with their random streams.

use longwire_packet::header::IpHeader;
use longwire_units::Probability;
use longwire_units::random::{Purpose, Stream};

use crate::frame_context::FrameContext;
use crate::models::loss::{LossDecision, LossEcn, LossModel, LossPlace, PlacedLoss};
use crate::origin::Origin;
use crate::prelude::*;
use crate::verdict::DropReason;

/// Combined decision of loss models about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossOutcome {
    /// No effect.
    Pass,
    /// Mark the frame Congestion Experienced.
    Mark,
    /// Drop the frame.
    Drop(DropReason),
}

/// Loss models at one point in a link.
#[derive(Debug, Default)]
pub(crate) struct Losses(Vec<Loss>);

/// A loss model with its random stream.
#[derive(Debug)]
struct Loss {
    name: &'static str,
    model: Box<dyn LossModel>,
    ecn: LossEcn,
    /// Probability and reason, if constant; avoids the dynamic call.
    fixed: Option<(Probability, DropReason)>,
    stream: Stream,
}

impl Losses {
    /// Moves the models for `place` out of `loss`.
    pub fn take(loss: &mut Vec<PlacedLoss>, place: LossPlace, origin: &Origin) -> Losses {
        let purpose = match place {
            LossPlace::Entry => Purpose::EntryLoss,
            LossPlace::Medium => Purpose::MediumLoss,
        };
        let mut taken: Vec<Loss> = Vec::new();
        for placed in loss.extract_if(.., |loss| loss.place == place) {
            let PlacedLoss {
                name,
                mut model,
                ecn,
                ..
            } = placed;
            let namesake = |other: &&Loss| other.name == name;
            let nth = taken.iter().filter(namesake).count() as u32;
            model.start(origin.epoch);
            taken.push(Loss {
                name,
                stream: origin.stream_of(purpose, name, nth),
                fixed: model.fixed(),
                ecn,
                model,
            });
        }
        Losses(taken)
    }

    /// Whether there are no models.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether frame bytes are needed, by a model or to check for ECN.
    pub fn reads_bytes(&self) -> bool {
        let reads = |loss: &Loss| loss.ecn != LossEcn::Drop || loss.model.reads_bytes();
        self.0.iter().any(reads)
    }

    /// Decides about a frame. `frame` is evaluated only if needed, because building the context
    /// costs a nanosecond.
    ///
    /// Loss overrides marking, and the first loss determines the reason. The remaining models still
    /// draw, so that one model's outcome does not shift another's draws.
    #[inline(always)]
    pub fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a> + Copy) -> LossOutcome {
        match self.0.as_mut_slice() {
            [] => LossOutcome::Pass,
            [only] => only.judge_after(LossOutcome::Pass, frame),
            several => Losses::judge_several(several, frame),
        }
    }

    // `frame` by value, so that the common cases keep its parts in registers.
    #[inline(never)]
    fn judge_several<'a>(
        losses: &mut [Loss],
        frame: impl Fn() -> FrameContext<'a> + Copy,
    ) -> LossOutcome {
        let judge = |outcome, loss: &mut Loss| loss.judge_after(outcome, frame);
        losses.iter_mut().fold(LossOutcome::Pass, judge)
    }
}

impl Loss {
    /// Returns the outcome of this model after that of the previous ones.
    #[inline(always)]
    fn judge_after<'a>(
        &mut self,
        outcome: LossOutcome,
        frame: impl Fn() -> FrameContext<'a> + Copy,
    ) -> LossOutcome {
        match self.judge(frame) {
            None => outcome,
            Some(reason) => combine(outcome, self.ecn, reason, frame().bytes),
        }
    }

    #[inline(always)]
    fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a>) -> LossDecision {
        match self.fixed {
            Some((probability, reason)) => self.stream.chance(probability).then_some(reason),
            None => self.model.judge(&frame(), &mut self.stream),
        }
    }
}

/// Combines a model's decision with the previous outcome. Cold: most frames are unaffected.
#[cold]
fn combine(before: LossOutcome, ecn: LossEcn, reason: DropReason, bytes: &[u8]) -> LossOutcome {
    let takes_marks = || IpHeader::parse(bytes).is_some_and(|ip| ip.ecn.capable());
    match (before, ecn) {
        (LossOutcome::Drop(_), _) => before,
        (_, LossEcn::Mark | LossEcn::MarkOnly) if takes_marks() => LossOutcome::Mark,
        (_, LossEcn::MarkOnly) => before,
        (_, LossEcn::Mark | LossEcn::Drop) => LossOutcome::Drop(reason),
    }
}
