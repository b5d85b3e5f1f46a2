//! Carrier signalling: a port drops its peer interface's carrier while every link toward
//! it is off.
//!
//! The carrier drops only after the frames in transit have left. It returns as soon as a
//! link is on or has passed frames.

use longwire_engine::{LinkId, LinkState};
use longwire_io::TxPort;

use super::carriers::PortCarrier;
use super::core::Core;
use super::stage::DecidingStage;

impl Core {
    /// Replaces the ports whose carriers follow links. Ports missing from the list keep
    /// their carrier state, so every list must name the same ports.
    pub fn follow_carriers(&mut self, carriers: Vec<PortCarrier>) {
        self.carriers.losses.resize(carriers.len(), 0);
        self.carriers.followed = carriers;
        self.carriers.changed = true;
    }

    /// Returns whether `links` is not empty and all links are off.
    fn are_off(&self, links: &[LinkId]) -> bool {
        let is_off = |link: &LinkId| {
            let link = self.link(*link);
            link.is_some_and(|link| link.state() == LinkState::Off)
        };
        !links.is_empty() && links.iter().all(is_off)
    }

    /// Returns whether any of the links still has frames.
    fn hold_frames(&self, links: &[LinkId]) -> bool {
        let mut cells = links
            .iter()
            .filter_map(|link| self.shards.first.state.cells_of(*link));
        cells.any(|cells| cells.totals().held() > 0)
    }
}

impl<T: TxPort> DecidingStage<T> {
    /// Updates port carriers after link states changed. Call before pushing frames, because a port
    /// cannot send without a carrier.
    #[inline]
    pub(super) fn switch_carriers(&mut self) {
        if self.core.carriers.changed {
            self.switch_changed();
        }
    }

    #[cold]
    fn switch_changed(&mut self) {
        let mut waits = false;
        for index in 0..self.core.carriers.followed.len() {
            let carrier = &self.core.carriers.followed[index];
            let Some(output) = self.outputs.get_mut(usize::from(carrier.port.0)) else {
                continue;
            };
            let is_off = self.core.are_off(&carrier.toward);
            // Also wait for frames that passed while a link was briefly on between two steps.
            let holds = is_off && (output.holds_frames() || self.core.hold_frames(&carrier.toward));
            waits |= holds;
            let no_carrier = is_off && !holds;
            if no_carrier == output.no_carrier {
                continue;
            }
            output.no_carrier = no_carrier;
            output.port.set_carrier(!no_carrier);
            self.core.carriers.losses[index] += u64::from(no_carrier);
        }
        self.core.carriers.changed = waits;
    }

    /// Returns a note for each port that has lost its carrier.
    pub(crate) fn carrier_remarks(&self) -> impl Iterator<Item = String> + use<'_, T> {
        let carriers = &self.core.carriers;
        let lost = carriers.followed.iter().zip(&carriers.losses);
        let lost = lost.filter(|(_, losses)| **losses > 0);
        lost.map(|(carrier, losses)| {
            let times = if *losses == 1 { "time" } else { "times" };
            format!("port {}: carrier lost {losses} {times}", carrier.name)
        })
    }
}
