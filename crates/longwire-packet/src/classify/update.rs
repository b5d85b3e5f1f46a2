//! Insertion and removal of rules.

use super::classifier::{Classifier, NONE, Order, RuleError, RuleId, WHOLE, head};
use super::key::{Cube, VLAN_PRIORITY_AND_ID, presence};
use super::matcher::Matcher;
use super::shape::{RulePlace, SEQUENCE_BITS, Shape};

impl<T: Copy> Classifier<T> {
    pub(super) fn place(&self, matcher: &Matcher, priority: u32, sequence: u64) -> RulePlace {
        const SPECIFICITY_MAX: u64 = (1 << (96 - SEQUENCE_BITS)) - 1;
        let lack = match self.order {
            Order::First => 0,
            Order::MostSpecific => SPECIFICITY_MAX - matcher.specificity(),
        };
        u128::from(priority) << 96 | u128::from(lack) << SEQUENCE_BITS | u128::from(sequence)
    }

    /// Adds a rule to its shape.
    pub(super) fn link(&mut self, rule: u32, matcher: Matcher, place: RulePlace) {
        let cube = Cube::of(&matcher);
        let number = self.shape_of(&cube);
        self.count(&cube, &matcher, 1);
        self.places[rule as usize] = place;
        self.matchers[rule as usize] = Some(matcher);
        let shape = &self.shapes[number as usize];
        let key = shape.project(&cube.value);
        let entry = shape.table.get(&key);
        // Chains are sorted by place.
        let before = self
            .chain(entry)
            .take_while(|other| self.places[*other as usize] < place);
        match before.last() {
            Some(before) => {
                self.next[rule as usize] = self.next[before as usize];
                self.next[before as usize] = rule;
            }
            None => {
                self.next[rule as usize] = if entry == 0 { NONE } else { head(entry) };
                let entry = self.entry(rule);
                self.shapes[number as usize].table.put(&key, entry);
            }
        }
        self.note(number, |shape| shape.note_added(place));
    }

    /// Removes a rule from its shape.
    pub(super) fn unlink(&mut self, id: RuleId) -> Result<Matcher, RuleError> {
        let rule = id.0;
        let taken = self.matchers.get_mut(rule as usize).and_then(Option::take);
        let matcher = taken.ok_or(RuleError::NoSuchRule(id))?;
        let cube = Cube::of(&matcher);
        let number = self.shape_of(&cube);
        self.count(&cube, &matcher, -1);
        let shape = &self.shapes[number as usize];
        let key = shape.project(&cube.value);
        let entry = shape.table.get(&key);
        let next = self.next[rule as usize];
        let before = self.chain(entry).take_while(|other| *other != rule).last();
        match (before, next) {
            (Some(before), next) => self.next[before as usize] = next,
            (None, NONE) => self.shapes[number as usize].table.remove(&key),
            (None, next) => {
                let entry = self.entry(next);
                self.shapes[number as usize].table.put(&key, entry);
            }
        }
        let place = self.places[rule as usize];
        self.note(number, |shape| shape.note_removed(place));
        Ok(matcher)
    }

    /// Returns the table entry for the first rule of a key.
    fn entry(&self, rule: u32) -> u64 {
        let matcher = &self.matchers[rule as usize];
        let whole = matcher.as_ref().is_some_and(|matcher| !matcher.has_rest());
        u64::from(rule + 1) | if whole { WHOLE } else { 0 }
    }

    /// Updates which fields lookups must extract.
    fn count(&mut self, cube: &Cube, matcher: &Matcher, change: isize) {
        let asks = cube.asked & (presence::PROTOCOL | presence::PORTS) != 0;
        let add = |count: &mut usize, is: bool| {
            *count = count.wrapping_add_signed(change * isize::from(is));
        };
        add(&mut self.transports, asks);
        let below_ip = cube.mask[4] | cube.mask[5] | cube.mask[7];
        let tags = cube.mask[6] & VLAN_PRIORITY_AND_ID;
        let tagged = cube.asked & (presence::VLAN | presence::INNER) != 0;
        add(&mut self.below_ip, below_ip | tags != 0 || tagged);
        add(&mut self.filters, matcher.filter.is_some());
    }

    /// Returns the number of a cube's shape, which is created if necessary.
    fn shape_of(&mut self, cube: &Cube) -> u32 {
        let key = Shape::key_of(cube);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let shape = Shape::new(key);
        let number = match self.free_shapes.pop() {
            Some(number) => {
                self.shapes[number as usize] = shape;
                number
            }
            None => {
                self.shapes.push(shape);
                self.shapes.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        number
    }

    /// Updates a shape, its bounds, and its position among the shapes.
    fn note(&mut self, number: u32, change: impl FnOnce(&mut Shape)) {
        let shape = &mut self.shapes[number as usize];
        let before = (shape.bound(), number);
        let was_empty = shape.is_empty();
        change(shape);
        let after = (shape.bound(), number);
        let is_empty = shape.is_empty();
        if before == after && was_empty == is_empty {
            return;
        }
        if !was_empty && let Ok(at) = self.visits.binary_search(&before) {
            self.visits.remove(at);
        }
        if is_empty {
            self.numbers.remove(&shape.key());
            self.free_shapes.push(number);
            return;
        }
        if let Err(at) = self.visits.binary_search(&after) {
            self.visits.insert(at, after);
        }
    }
}
