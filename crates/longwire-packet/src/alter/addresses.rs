//! Rewrites IP addresses: prefix maps, anonymisation and per-round shifts.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::anonymize::Anonymizer;
use super::options::{AddressMap, AlterOptions, LoopAddresses, Role};
use crate::bytes::ones;
use crate::filter::values::Net;
use crate::header::IpVersion;

/// Configured changes to IP addresses.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    v4: Changes,
    v6: Changes,
    anonymizer: Option<Anonymizer>,
    keep_groups: bool,
    /// Whether any addresses may change.
    pub anything: bool,
}

/// Maps and shifts for one IP version. Addresses are 128-bit numbers; IPv4 addresses occupy the
/// upper 32 bits.
#[derive(Clone, Debug)]
struct Changes {
    maps: Vec<Map>,
    shifts: Vec<Shift>,
    /// Number of unused bits below an address.
    unused_bits: u32,
}

/// A mask, and the bits under it.
type Masked = (u128, u128);

/// Replaces the bits of addresses in `from` by those of `to`.
#[derive(Clone, Copy, Debug)]
struct Map {
    role: Option<Role>,
    from: Masked,
    to: Masked,
}

/// Adds `step` per round to addresses in `within`, preserving the bits under `keep`.
#[derive(Clone, Copy, Debug)]
struct Shift {
    within: Masked,
    keep: u128,
    step: u32,
}

/// Number of low bits that a shift changes unless a network is given.
const MOVING_BITS: u32 = 24;

/// Unused bits below an IPv4 address.
const AFTER_V4: u32 = 96;

/// Returns a network's mask and its masked address.
fn masked(net: &Net) -> Masked {
    let mask = ones(net.prefix);
    (mask, u128::from_be_bytes(net.address) & mask)
}

impl Changes {
    /// Creates the changes; `maps` must be sorted by decreasing prefix length.
    fn new(version: IpVersion, maps: &[AddressMap], shifts: &[LoopAddresses]) -> Changes {
        let unused_bits = match version {
            IpVersion::V4 => AFTER_V4,
            IpVersion::V6 => 0,
        };
        let maps = maps.iter().filter(|map| map.from.version == version);
        let maps = maps.map(|map| Map {
            role: map.role,
            from: masked(&map.from),
            to: masked(&map.to),
        });
        let shifts = shifts.iter().filter_map(|wanted| {
            let (within, keep) = match wanted.within {
                None => ((0, 0), u128::MAX << (MOVING_BITS + unused_bits)),
                Some(net) if net.version == version => (masked(&net), ones(net.prefix)),
                Some(_) => return None,
            };
            let step = wanted.step;
            Some(Shift { within, keep, step })
        });
        Changes {
            maps: maps.collect(),
            shifts: shifts.collect(),
            unused_bits,
        }
    }

    /// Returns the address's replacement, if a map matches.
    #[inline]
    fn mapped(&self, address: u128, role: Role) -> Option<u128> {
        let meant = |map: &&Map| {
            address & map.from.0 == map.from.1 && map.role.is_none_or(|wanted| wanted == role)
        };
        let (mask, bits) = self.maps.iter().find(meant)?.to;
        Some(address & !mask | bits)
    }

    /// Returns the address, advanced by `round` steps if a shift applies.
    #[inline]
    fn shifted(&self, address: u128, round: u64) -> u128 {
        let meant = |shift: &&Shift| address & shift.within.0 == shift.within.1;
        self.shifts.iter().find(meant).map_or(address, |shift| {
            let by = u128::from(round).wrapping_mul(shift.step.into()) << self.unused_bits;
            address & shift.keep | address.wrapping_add(by) & !shift.keep
        })
    }
}

impl Addresses {
    pub fn new(options: &AlterOptions) -> Addresses {
        let mut maps = options.address_maps.clone();
        // Longest prefix first; equal lengths keep their order.
        maps.sort_by_key(|map| Reverse(map.from.prefix));
        let changes = |version| Changes::new(version, &maps, &options.loop_addresses);
        let anonymizer = options.anonymize.as_ref();
        Addresses {
            v4: changes(IpVersion::V4),
            v6: changes(IpVersion::V6),
            anonymizer: anonymizer.map(|wanted| Anonymizer::new(&wanted.key, wanted.plain)),
            keep_groups: options.keep_groups,
            anything: !maps.is_empty()
                || options.anonymize.is_some()
                || !options.loop_addresses.is_empty(),
        }
    }

    /// Returns the address after maps or anonymisation and the round's shift.
    #[inline]
    pub fn changed(&mut self, version: IpVersion, address: u128, role: Role, round: u64) -> u128 {
        if self.keep_groups && is_group(version, address) {
            return address;
        }
        let changes = match version {
            IpVersion::V4 => &self.v4,
            IpVersion::V6 => &self.v6,
        };
        let changed = match (changes.mapped(address, role), &mut self.anonymizer) {
            (Some(mapped), _) => mapped,
            (None, Some(anonymizer)) => anonymizer.replacement(version, address),
            (None, None) => address,
        };
        // Only host addresses are shifted.
        let is_special = match version {
            IpVersion::V4 => [0, 127].contains(&(changed >> 120)),
            IpVersion::V6 => changed <= 1,
        };
        if round == 0 || is_special || is_group(version, changed) {
            return changed;
        }
        changes.shifted(changed, round)
    }
}

fn is_group(version: IpVersion, address: u128) -> bool {
    match version {
        IpVersion::V4 => address >> 124 == 0xe || address >> AFTER_V4 == 0xffff_ffff,
        IpVersion::V6 => address >> 120 == 0xff,
    }
}
