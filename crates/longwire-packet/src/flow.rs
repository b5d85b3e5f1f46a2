//! Conversations, identified by hashes of their endpoints.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::random::absorb;

use crate::bytes::{array, word};
use crate::header::{IpHeader, IpVersion, Piece, Transport, WITH_PORTS};

/// Hashes of a packet's endpoints: address and port, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    source: u64,
    destination: u64,
    protocol: u64,
}

impl Ends {
    /// Returns a packet's endpoints, or `None` if its header is incomplete.
    #[inline]
    pub fn of(frame: &[u8], ip: &IpHeader, transport: &Transport) -> Option<Ends> {
        let ports = ports(frame, transport).unwrap_or((0, 0));
        Some(Ends {
            source: absorb(address(frame, ip.version, ip.source_at())?, ports.0.into()),
            destination: absorb(
                address(frame, ip.version, ip.destination_at())?,
                ports.1.into(),
            ),
            protocol: transport.protocol.into(),
        })
    }

    /// Returns endpoints that are unique to a datagram and shared by its fragments.
    pub fn of_datagram(frame: &[u8], ip: &IpHeader, transport: &Transport) -> Option<Ends> {
        let identification: u64 = match ip.version {
            IpVersion::V4 => word(frame, ip.at + 4)?.into(),
            // The fragment header precedes the payload.
            IpVersion::V6 => u32::from_be_bytes(array(frame, transport.at.checked_sub(4)?)?).into(),
        };
        Some(Ends {
            source: address(frame, ip.version, ip.source_at())?,
            destination: address(frame, ip.version, ip.destination_at())?,
            protocol: 1 << 32 | identification,
        })
    }

    /// Returns a key shared by both directions, and whether the source has the lower hash.
    pub fn conversation(&self) -> (u64, bool) {
        let (from, to) = (self.source, self.destination);
        let key = absorb(absorb(from.min(to), from.max(to)), self.protocol);
        (key, from <= to)
    }

    /// Returns the key for the packet's direction.
    #[inline]
    pub fn there(&self) -> u64 {
        absorb(absorb(self.source, self.destination), self.protocol)
    }

    /// Returns the key for the reverse direction.
    #[inline]
    pub fn back(&self) -> u64 {
        absorb(absorb(self.destination, self.source), self.protocol)
    }
}

/// Returns a packet's ports, if available.
#[inline]
pub(crate) fn ports(frame: &[u8], transport: &Transport) -> Option<(u16, u16)> {
    if transport.piece == Piece::Later || !WITH_PORTS.contains(&transport.protocol) {
        return None;
    }
    Some((word(frame, transport.at)?, word(frame, transport.at + 2)?))
}

/// Returns a 64-bit hash of an address.
#[inline]
fn address(frame: &[u8], version: IpVersion, at: usize) -> Option<u64> {
    match version {
        IpVersion::V4 => Some(u32::from_be_bytes(array(frame, at)?).into()),
        IpVersion::V6 => {
            let address = u128::from_be_bytes(array(frame, at)?);
            let high = absorb(0, (address >> 64) as u64);
            Some(absorb(high, address as u64))
        }
    }
}

/// A 4-way set-associative map from recent flows to values. A full set evicts its least recently
/// used flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowTable<V> {
    places: Vec<FlowSlot<V>>,
    clock: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FlowSlot<V> {
    key: u64,
    /// Time of last use; 0 for a free slot.
    used: u32,
    value: V,
}

const WAYS: usize = 4;

/// Number of sets: 65,536 flows in 1 MiB.
const SETS: usize = 1 << 14;

impl<V: Copy + Default> FlowTable<V> {
    pub fn new() -> FlowTable<V> {
        FlowTable {
            places: vec![FlowSlot::default(); SETS * WAYS],
            clock: 0,
        }
    }

    /// Returns the index of the first slot in a key's set, and the current time.
    fn find(&mut self, key: u64) -> (usize, u32) {
        if self.clock == u32::MAX {
            // Before the clock overflows, mark all entries as oldest.
            for place in &mut self.places {
                place.used = place.used.min(1);
            }
            self.clock = 1;
        }
        self.clock += 1;
        ((key >> 50) as usize % SETS * WAYS, self.clock)
    }

    /// Returns a flow's value, if known.
    pub fn get(&mut self, key: u64) -> Option<V> {
        let (first, now) = self.find(key);
        let set = &mut self.places[first..first + WAYS];
        let place = set
            .iter_mut()
            .find(|place| place.key == key && place.used > 0)?;
        place.used = now;
        Some(place.value)
    }

    /// Stores a flow's value.
    pub fn put(&mut self, key: u64, value: V) {
        let (first, used) = self.find(key);
        let set = &mut self.places[first..first + WAYS];
        let known = |place: &FlowSlot<V>| place.key == key && place.used > 0;
        let at = set.iter().position(known);
        let oldest = || (0..WAYS).min_by_key(|at| set[*at].used);
        let at = at.or_else(oldest).unwrap_or(0);
        set[at] = FlowSlot { key, used, value };
    }
}
