//! Rewrites Ethernet addresses.

use alloc::vec::Vec;

use super::options::{AlterOptions, MacMap, SidedMac};
use crate::bytes::array_mut;

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

const ADDRESSES: usize = 12;

/// Configured changes to Ethernet addresses.
#[derive(Clone, Debug)]
pub(super) struct Macs {
    source: Option<SidedMac>,
    destination: Option<SidedMac>,
    maps: Vec<MacMap>,
    keep_groups: bool,
}

/// Replacements made in a frame's Ethernet header, which are repeated inside the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renamed<'a> {
    source: (Mac, Mac),
    destination: (Mac, Mac),
    maps: &'a [MacMap],
    /// Whether any addresses may change.
    pub anything: bool,
}

/// Whether an address is broadcast or multicast.
fn is_group(mac: Mac) -> bool {
    mac[0] & 1 == 1
}

impl Macs {
    pub fn new(options: &AlterOptions) -> Macs {
        Macs {
            source: options.source_mac,
            destination: options.destination_mac,
            maps: options.mac_maps.clone(),
            keep_groups: options.keep_groups,
        }
    }

    /// Whether the replacements differ by side.
    #[inline]
    pub fn is_sided(&self) -> bool {
        let sided = |mac: &Option<SidedMac>| mac.is_some_and(|mac| mac.is_sided);
        sided(&self.source) || sided(&self.destination)
    }

    /// Rewrites the addresses in the Ethernet header and returns the replacements.
    #[inline]
    pub fn rewrite(&self, frame: &mut [u8], side: usize) -> Renamed<'_> {
        let mut renamed = Renamed {
            source: Default::default(),
            destination: Default::default(),
            maps: &self.maps,
            anything: self.source.is_some() || self.destination.is_some() || !self.maps.is_empty(),
        };
        if !renamed.anything || frame.len() < ADDRESSES {
            return renamed;
        }
        let pairs = [
            (0, &mut renamed.destination, self.destination),
            (6, &mut renamed.source, self.source),
        ];
        for (at, pair, all) in pairs {
            if let Some(mac) = array_mut(frame, at) {
                *pair = (*mac, self.renamed(*mac, all, side));
                *mac = pair.1;
            }
        }
        renamed
    }

    #[inline]
    fn renamed(&self, mac: Mac, all: Option<SidedMac>, side: usize) -> Mac {
        match all {
            _ if self.keep_groups && is_group(mac) => mac,
            Some(all) => all.sides[side & 1],
            None => mapped(&self.maps, mac).unwrap_or(mac),
        }
    }
}

#[inline]
fn mapped(maps: &[MacMap], mac: Mac) -> Option<Mac> {
    let map = maps.iter().find(|map| map.from == mac)?;
    Some(map.to)
}

impl Renamed<'_> {
    /// Replaces the address at `at` inside the frame if the header's replacements or maps apply.
    pub fn rename(&self, frame: &mut [u8], at: usize) {
        if let Some(mac) = array_mut(frame, at) {
            *mac = self.name(*mac);
        }
    }

    /// Returns an address's replacement, or the address itself if there is none.
    fn name(&self, mac: Mac) -> Mac {
        let known = [self.source, self.destination]
            .into_iter()
            .find(|(before, _)| *before == mac && !is_group(mac));
        match known {
            Some((_, after)) => after,
            None => mapped(self.maps, mac).unwrap_or(mac),
        }
    }
}
