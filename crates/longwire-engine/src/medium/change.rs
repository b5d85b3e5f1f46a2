//! Changes of a medium.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use longwire_units::Nanos;
use longwire_units::random::Purpose;

use super::{Extras, Medium};
use crate::losses::Losses;
use crate::models::corruption::CorruptionModel;
use crate::models::delay::DelayModel;
use crate::models::duplication::DuplicationModel;
use crate::models::order::OrderPolicy;
use crate::models::reordering::ReorderingModel;
use crate::origin::Origin;

/// A partial update of a medium; `None` keeps a part.
#[derive(Debug, Default)]
pub(crate) struct MediumChange {
    pub losses: Option<Losses>,
    pub corruption: Option<Option<Box<dyn CorruptionModel>>>,
    pub duplication: Option<Option<Box<dyn DuplicationModel>>>,
    pub delay: Option<Box<dyn DelayModel>>,
    pub reordering: Option<Option<Box<dyn ReorderingModel>>>,
    pub order: Option<OrderPolicy>,
    pub rewrite: Option<bool>,
}

impl Medium {
    /// Applies new models to frames that depart from now on. Returns the old ones in
    /// place of the new.
    pub fn change(&mut self, mut change: MediumChange, origin: &Origin) -> MediumChange {
        if let Some(losses) = &mut change.losses {
            mem::swap(&mut self.losses, losses);
        }
        if let Some(delay) = &mut change.delay {
            delay.start(origin.epoch);
            mem::swap(&mut self.delay, delay);
            self.delay_fixed = self.delay.fixed();
            self.delay_stream = origin.stream(Purpose::Delay);
        }
        self.order = change.order.unwrap_or(self.order);
        self.rewrite = change.rewrite.unwrap_or(self.rewrite);
        let extras = &change;
        if extras.corruption.is_some()
            || extras.duplication.is_some()
            || extras.reordering.is_some()
        {
            self.change_extras(&mut change, origin);
        }
        change
    }

    /// Frees a transmitter that would never have been free again: frames that are never
    /// released do not hold up later ones.
    pub fn revive(&mut self, at: Nanos) {
        if self.last_release == Nanos::MAX {
            self.last_release = at;
        }
    }

    fn change_extras(&mut self, change: &mut MediumChange, origin: &Origin) {
        let mut extras = self.extras.take().unwrap_or_else(|| {
            Box::new(Extras {
                corruption: None,
                duplication: None,
                copy_delay_stream: origin.stream(Purpose::CopyDelay),
                reordering: None,
                scratch: Vec::new(),
            })
        });
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
}
