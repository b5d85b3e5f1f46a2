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

/// Replaces the bits under `new_mask` of addresses whose bits under `mask` match.
#[derive(Clone, Copy, Debug)]
struct Map {
    role: Option<Role>,
    mask: u128,
    bits: u128,
    new_mask: u128,
    new_bits: u128,
}

/// Adds `step` per round to addresses whose bits under `mask` match, preserving the bits under
/// `keep`.
#[derive(Clone, Copy, Debug)]
struct Shift {
    mask: u128,
    bits: u128,
    keep: u128,
    step: u32,
}

/// Number of low bits that are shifted unless a network is given.
const MOVING_BITS: u32 = 24;

/// Unused bits below an IPv4 address.
const AFTER_V4: u32 = 96;

/// Returns a network's mask and its masked address.
fn masked(net: &Net) -> (u128, u128) {
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
        let maps = maps.map(|map| {
            let ((mask, bits), (new_mask, new_bits)) = (masked(&map.from), masked(&map.to));
            Map {
                role: map.role,
                mask,
                bits,
                new_mask,
                new_bits,
            }
        });
        let shifts = shifts.iter().filter_map(|wanted| {
            let (mask, bits, keep) = match wanted.within {
                None => (0, 0, u128::MAX << (MOVING_BITS + unused_bits)),
                Some(net) if net.version == version => {
                    let (mask, bits) = masked(&net);
                    (mask, bits, mask)
                }
                Some(_) => return None,
            };
            Some(Shift {
                mask,
                bits,
                keep,
                step: wanted.step,
            })
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
            address & map.mask == map.bits && map.role.is_none_or(|wanted| wanted == role)
        };
        let map = self.maps.iter().find(meant)?;
        Some(address & !map.new_mask | map.new_bits)
    }

    /// Returns the address, shifted for this round.
    #[inline]
    fn shifted(&self, address: u128, round: u64) -> u128 {
        let meant = |shift: &&Shift| address & shift.mask == shift.bits;
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

    /// Returns the rewritten IPv4 address.
    #[inline]
    pub fn v4(&mut self, address: u32, role: Role, round: u64) -> u32 {
        let is_group = |address: u32| address >> 28 == 0xe || address == u32::MAX;
        if self.keep_groups && is_group(address) {
            return address;
        }
        let number = |address| u128::from(address) << AFTER_V4;
        let mapped = self.v4.mapped(number(address), role);
        let changed = match (mapped, &mut self.anonymizer) {
            (Some(mapped), _) => (mapped >> AFTER_V4) as u32,
            (None, Some(anonymizer)) => anonymizer.v4(address),
            (None, None) => address,
        };
        // Only host addresses are shifted.
        if round == 0 || is_group(changed) || [0, 127].contains(&(changed >> 24)) {
            return changed;
        }
        (self.v4.shifted(number(changed), round) >> AFTER_V4) as u32
    }

    /// Returns the rewritten IPv6 address.
    #[inline]
    pub fn v6(&mut self, address: u128, role: Role, round: u64) -> u128 {
        let is_group = |address: u128| address >> 120 == 0xff;
        if self.keep_groups && is_group(address) {
            return address;
        }
        let changed = match (self.v6.mapped(address, role), &mut self.anonymizer) {
            (Some(mapped), _) => mapped,
            (None, Some(anonymizer)) => anonymizer.v6(address),
            (None, None) => address,
        };
        if round == 0 || is_group(changed) || changed <= 1 {
            return changed;
        }
        self.v6.shifted(changed, round)
    }
}
