//! Shapes: groups of rules that use the same bits.

use alloc::collections::BTreeMap;

use super::key::{Cube, FrameFields, WORDS, presence};
use super::table::Table;

/// Identity of a shape: the bits it uses and the fields it requires. IPv4 and IPv6 never share a
/// shape.
pub(super) type ShapeKey = (u16, u16, [u64; WORDS]);

/// Low bits of a rule's place that contain its sequence number.
pub(super) const SEQUENCE_BITS: u32 = 36;

/// Sort key of a rule, lowest first: priority, then inverse specificity, then sequence number.
pub(super) type RulePlace = u128;

/// Rules with equal priority and specificity.
#[derive(Clone, Copy, Debug)]
struct PlaceGroup {
    count: usize,
    /// Lower bound on their sequence numbers.
    first: u64,
}

/// A shape with its rules.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    asked: u16,
    presence: u16,
    /// Words used, each with its mask.
    words: [(u8, u64); WORDS],
    count: usize,
    pub table: Table,
    groups: BTreeMap<u128, PlaceGroup>,
    /// Upper bound on its rules' places.
    pub worst: RulePlace,
}

impl Shape {
    pub fn key_of(cube: &Cube) -> ShapeKey {
        (cube.asked, cube.presence, cube.mask)
    }

    pub fn new((asked, presence, mask): ShapeKey) -> Shape {
        let mut words = [(0, 0); WORDS];
        let mut count = 0;
        for (at, mask) in mask.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            words[count] = (at as u8, *mask);
            count += 1;
        }
        Shape {
            asked,
            presence,
            words,
            count,
            table: Table::new(count),
            groups: BTreeMap::new(),
            worst: 0,
        }
    }

    /// Returns the shape's identity.
    pub fn key(&self) -> ShapeKey {
        (self.asked, self.presence, self.mask())
    }

    /// Returns the bits used by its rules.
    pub fn mask(&self) -> [u64; WORDS] {
        let mut mask = [0; WORDS];
        for (at, bits) in &self.words[..self.count] {
            mask[usize::from(*at)] = *bits;
        }
        mask
    }

    /// Whether the presence conditions allow a frame to match rules of both shapes.
    pub fn meets(&self, other: &Shape) -> bool {
        (self.presence ^ other.presence) & self.asked & other.asked == 0
    }

    /// Masks a key's words.
    #[inline]
    pub fn project(&self, words: &[u64; WORDS]) -> [u64; WORDS] {
        let mut key = [0; WORDS];
        for (part, (at, mask)) in key.iter_mut().zip(&self.words[..self.count]) {
            *part = words[usize::from(*at) % WORDS] & mask;
        }
        key
    }

    /// Returns a frame's table entry, or zero if there is none.
    #[inline]
    pub fn find(&self, key: &FrameFields) -> u64 {
        if key.presence & self.asked != self.presence {
            return 0;
        }
        // Most shapes use bits of only one word.
        if self.count == 1 {
            let (at, mask) = self.words[0];
            return self.table.get(&[key.words[usize::from(at) % WORDS] & mask]);
        }
        self.table.get(&self.project(&key.words))
    }

    /// Returns the address of the first row that [`Shape::find`] reads.
    #[inline]
    pub fn row_of(&self, key: &FrameFields) -> *const u64 {
        let (at, mask) = self.words[0];
        let projected = [key.words[usize::from(at) % WORDS] & mask];
        match self.count {
            1 => self.table.row_of(&projected),
            _ => self.table.row_of(&self.project(&key.words)),
        }
    }

    /// Returns the mask of word 0 if the shape has no other conditions than IPv4.
    pub fn addresses_mask(&self) -> Option<u64> {
        let implied = presence::ETHER | presence::TYPE | presence::IP | presence::V4;
        let only_v4 = self.asked & presence::V4 != 0 && self.asked & !implied == 0;
        match self.words[..self.count] {
            [(0, mask)] if only_v4 && self.asked == self.presence => Some(mask),
            _ => None,
        }
    }

    /// Returns the table entry shared by all frames in a closed cube, or zero if they differ.
    pub fn find_all(&self, cube: &Cube) -> u64 {
        let said = cube.asked & self.asked == self.asked;
        let bits = self.words[..self.count].iter();
        let mut given = bits.map(|(at, mask)| cube.mask[usize::from(*at)] & mask == *mask);
        if !said || cube.presence & self.asked != self.presence || !given.all(|given| given) {
            return 0;
        }
        self.table.get(&self.project(&cube.value))
    }

    /// Whether the shape has no rules.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns a lower bound on its rules' places.
    pub fn bound(&self) -> RulePlace {
        let first = self.groups.first_key_value();
        first.map_or(RulePlace::MAX, |(key, group)| {
            key << SEQUENCE_BITS | u128::from(group.first)
        })
    }

    pub fn note_added(&mut self, place: RulePlace) {
        let sequence = sequence_of(place);
        let empty = PlaceGroup {
            count: 0,
            first: sequence,
        };
        let group = self.groups.entry(place >> SEQUENCE_BITS).or_insert(empty);
        group.count += 1;
        group.first = group.first.min(sequence);
        self.worst = self.worst.max(place);
    }

    pub fn note_removed(&mut self, place: RulePlace) {
        let key = place >> SEQUENCE_BITS;
        if let Some(group) = self.groups.get_mut(&key) {
            group.count -= 1;
            if group.count == 0 {
                self.groups.remove(&key);
            }
        }
    }
}

pub(super) fn sequence_of(place: RulePlace) -> u64 {
    place as u64 & ((1 << SEQUENCE_BITS) - 1)
}
