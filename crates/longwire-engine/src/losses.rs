//! The loss models of one place in a link, with their random streams.

use alloc::boxed::Box;
use alloc::vec::Vec;

use longwire_units::Probability;
use longwire_units::random::{Purpose, Stream};

use crate::frame_context::FrameContext;
use crate::models::loss::{LossModel, LossPlace, PlacedLoss};
use crate::origin::Origin;
use crate::verdict::DropReason;

/// Loss models that act at one place.
#[derive(Debug, Default)]
pub(crate) struct Losses(Vec<Loss>);

/// A loss model with its random stream.
#[derive(Debug)]
struct Loss {
    model: Box<dyn LossModel>,
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
        for PlacedLoss { mut model, .. } in loss.extract_if(.., |loss| loss.place == place) {
            let namesake = |other: &&Loss| other.model.name() == model.name();
            let nth = taken.iter().filter(namesake).count() as u32;
            model.start(origin.epoch);
            taken.push(Loss {
                stream: origin.stream_of(purpose, model.name(), nth),
                fixed: model.fixed(),
                model,
            });
        }
        Losses(taken)
    }

    /// Whether no model acts here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a model reads frames' bytes.
    pub fn reads_bytes(&self) -> bool {
        self.0.iter().any(|loss| loss.model.reads_bytes())
    }

    /// Returns why the frame is lost, if it is. `frame` is called only if a model reads
    /// it: building it costs a nanosecond.
    ///
    /// The first model that loses the frame determines the reason; the others still
    /// draw, so that one model's outcome never shifts another's.
    #[inline]
    pub fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a>) -> Option<DropReason> {
        let mut lost = None;
        for loss in &mut self.0 {
            if let Some(reason) = loss.judge(&frame) {
                lost = first_reason(lost, reason);
            }
        }
        lost
    }
}

impl Loss {
    #[inline]
    fn judge<'a>(&mut self, frame: impl Fn() -> FrameContext<'a>) -> Option<DropReason> {
        match self.fixed {
            Some((probability, reason)) => self.stream.chance(probability).then_some(reason),
            None => self.model.judge(&frame(), &mut self.stream),
        }
    }
}

/// Cold, so that the code for the common frame, which no model loses, is straight.
#[cold]
fn first_reason(lost: Option<DropReason>, reason: DropReason) -> Option<DropReason> {
    lost.or(Some(reason))
}
