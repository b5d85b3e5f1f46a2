//! IP addresses: mapped by prefix, anonymised, shifted with every round.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::anonymize::Anonymizer;
use super::options::{AddressMap, AlterOptions, LoopAddresses, Role};
use crate::filter::values::Net;
use crate::header::IpVersion;

/// Changes of IP addresses.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    maps4: Vec<Map<u32>>,
    maps6: Vec<Map<u128>>,
    anonymizer: Option<Anonymizer>,
    shifts4: Vec<Shift<u32>>,
    shifts6: Vec<Shift<u128>>,
    keep_groups: bool,
    anything: bool,
}

/// A map: an address with these bits under `mask` gets others under
/// `new_mask`.
#[derive(Clone, Copy, Debug)]
struct Map<T> {
    role: Option<Role>,
    mask: T,
    bits: T,
    new_mask: T,
    new_bits: T,
}

/// A shift: addresses with these bits under `mask` are increased by `step` a round,
/// outside of the bits under `keep`.
#[derive(Clone, Copy, Debug)]
struct Shift<T> {
    mask: T,
    bits: T,
    keep: T,
    step: u32,
}

/// Without a network, addresses are shifted within their last 24 bits.
const MOVING_BITS: u32 = 24;

fn mask4(prefix: u8) -> u32 {
    !u32::MAX.checked_shr(prefix.into()).unwrap_or(0)
}

fn mask6(prefix: u8) -> u128 {
    !u128::MAX.checked_shr(prefix.into()).unwrap_or(0)
}

fn number4(net: &Net) -> u32 {
    let [a, b, c, d, ..] = net.address;
    u32::from_be_bytes([a, b, c, d])
}

fn number6(net: &Net) -> u128 {
    u128::from_be_bytes(net.address)
}

impl Addresses {
    pub fn new(options: &AlterOptions) -> Addresses {
        let mut maps = options.address_maps.clone();
        // The longest prefix first; of equal ones, the one given first.
        maps.sort_by_key(|map| Reverse(map.from.prefix));
        let of = |version| {
            let maps = maps.iter();
            maps.filter(move |map| map.from.version == version)
        };
        let anonymizer = options.anonymize.as_ref();
        Addresses {
            maps4: of(IpVersion::V4).map(map4).collect(),
            maps6: of(IpVersion::V6).map(map6).collect(),
            anonymizer: anonymizer.map(|wanted| Anonymizer::new(&wanted.key, wanted.plain)),
            shifts4: options.loop_addresses.iter().filter_map(shift4).collect(),
            shifts6: options.loop_addresses.iter().filter_map(shift6).collect(),
            keep_groups: options.keep_groups,
            anything: !maps.is_empty()
                || options.anonymize.is_some()
                || !options.loop_addresses.is_empty(),
        }
    }

    /// Whether any address may change.
    #[inline]
    pub fn anything(&self) -> bool {
        self.anything
    }

    /// Returns the changed IPv4 address.
    #[inline]
    pub fn v4(&mut self, address: u32, role: Role, round: u64) -> u32 {
        let is_group = |address: u32| address >> 28 == 0xe || address == u32::MAX;
        if self.keep_groups && is_group(address) {
            return address;
        }
        let meant = |map: &&Map<u32>| {
            address & map.mask == map.bits && map.role.is_none_or(|wanted| wanted == role)
        };
        let changed = match (self.maps4.iter().find(meant), &mut self.anonymizer) {
            (Some(map), _) => address & !map.new_mask | map.new_bits,
            (None, Some(anonymizer)) => anonymizer.v4(address),
            (None, None) => address,
        };
        // An address that is no host's is not shifted.
        let stays = || is_group(changed) || [0, 127].contains(&(changed >> 24));
        if round == 0 || self.shifts4.is_empty() || stays() {
            return changed;
        }
        let shift = self
            .shifts4
            .iter()
            .find(|shift| changed & shift.mask == shift.bits);
        shift.map_or(changed, |shift| {
            let by = (round as u32).wrapping_mul(shift.step);
            changed & shift.keep | changed.wrapping_add(by) & !shift.keep
        })
    }

    /// Returns the changed IPv6 address.
    #[inline]
    pub fn v6(&mut self, address: u128, role: Role, round: u64) -> u128 {
        let is_group = |address: u128| address >> 120 == 0xff;
        if self.keep_groups && is_group(address) {
            return address;
        }
        let meant = |map: &&Map<u128>| {
            address & map.mask == map.bits && map.role.is_none_or(|wanted| wanted == role)
        };
        let changed = match (self.maps6.iter().find(meant), &mut self.anonymizer) {
            (Some(map), _) => address & !map.new_mask | map.new_bits,
            (None, Some(anonymizer)) => anonymizer.v6(address),
            (None, None) => address,
        };
        let stays = || is_group(changed) || changed <= 1;
        if round == 0 || self.shifts6.is_empty() || stays() {
            return changed;
        }
        let shift = self
            .shifts6
            .iter()
            .find(|shift| changed & shift.mask == shift.bits);
        shift.map_or(changed, |shift| {
            let by = u128::from(round).wrapping_mul(shift.step.into());
            changed & shift.keep | changed.wrapping_add(by) & !shift.keep
        })
    }
}

fn map4(map: &AddressMap) -> Map<u32> {
    let (mask, new_mask) = (mask4(map.from.prefix), mask4(map.to.prefix));
    Map {
        role: map.role,
        mask,
        bits: number4(&map.from) & mask,
        new_mask,
        new_bits: number4(&map.to) & new_mask,
    }
}

fn map6(map: &AddressMap) -> Map<u128> {
    let (mask, new_mask) = (mask6(map.from.prefix), mask6(map.to.prefix));
    Map {
        role: map.role,
        mask,
        bits: number6(&map.from) & mask,
        new_mask,
        new_bits: number6(&map.to) & new_mask,
    }
}

fn shift4(wanted: &LoopAddresses) -> Option<Shift<u32>> {
    let step = wanted.step;
    let Some(net) = wanted.within else {
        let keep = u32::MAX << MOVING_BITS;
        return Some(Shift {
            mask: 0,
            bits: 0,
            keep,
            step,
        });
    };
    let mask = mask4(net.prefix);
    let bits = number4(&net) & mask;
    (net.version == IpVersion::V4).then_some(Shift {
        mask,
        bits,
        keep: mask,
        step,
    })
}

fn shift6(wanted: &LoopAddresses) -> Option<Shift<u128>> {
    let step = wanted.step;
    let Some(net) = wanted.within else {
        let keep = u128::MAX << MOVING_BITS;
        return Some(Shift {
            mask: 0,
            bits: 0,
            keep,
            step,
        });
    };
    let mask = mask6(net.prefix);
    let bits = number6(&net) & mask;
    (net.version == IpVersion::V6).then_some(Shift {
        mask,
        bits,
        keep: mask,
        step,
    })
}
