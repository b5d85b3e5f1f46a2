//! Limits on flooded frames per port.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::Nanos;

use super::config::StormLimit;

/// Credit for one frame, in nanoseconds times packets per 1000 s, which makes rates exact.
const FRAME: u64 = 1_000_000_000_000;

/// Token buckets, initially full.
#[derive(Clone, Debug)]
pub(super) struct Storms {
    rate: u64,
    credit_max: u64,
    /// Credit and time of its last update, per port.
    ports: Vec<(u64, Nanos)>,
}

impl Storms {
    pub fn new(limit: StormLimit, ports: u16) -> Storms {
        let credit_max = limit.burst.0 * FRAME;
        Storms {
            rate: limit.rate.packets_per_kilosec(),
            credit_max,
            ports: vec![(credit_max, Nanos::ZERO); ports.into()],
        }
    }

    /// Charges a port for a flooded frame; returns `false`, without a charge, if the limit is
    /// exceeded.
    pub fn allow(&mut self, now: Nanos, port: u16) -> bool {
        let (credit, counted) = &mut self.ports[usize::from(port)];
        let passed = now.saturating_sub(*counted).as_nanos();
        let sum = u128::from(*credit) + u128::from(passed) * u128::from(self.rate);
        *credit = sum.min(self.credit_max.into()) as u64;
        *counted = now.max(*counted);
        let left = credit.checked_sub(FRAME);
        *credit = left.unwrap_or(*credit);
        left.is_some()
    }
}
