//! The classifier: maps frames to rules.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::grammar::MatcherError;
use super::key::{
    Cube, FrameFields, FrameKey, UsedFields, VLAN_PRIORITY_AND_ID, presence, untagged_addresses,
};
use super::matcher::{Matcher, StoredMatcher};
use super::shape::{RulePlace, SEQUENCE_BITS, Shape, ShapeKey, sequence_of};
use crate::bridge::PortIndex;

/// Precedence among matching rules.
///
/// With either order, lower priority numbers come first, and ties are broken by insertion order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The rule inserted first.
    #[default]
    First,
    /// The more specific rule. The first difference decides: destination prefix length (`/0` is
    /// longer than none), source prefix length; fewer destination ports, fewer source ports; then
    /// the presence of protocol, DSCP, VLAN, inner VLAN, VLAN priority, destination MAC, source
    /// MAC, EtherType, ingress port, filter. Thus, a rule precedes every rule that covers it,
    /// unless both have filters, which are not compared.
    MostSpecific,
}

/// Rule number, which may be reused after removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

impl core::fmt::Display for RuleId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified<T> {
    /// Target of the matched rule, or of unmatched frames.
    pub target: T,
    /// The matched rule; `None` for unmatched frames.
    pub rule: Option<RuleId>,
}

/// Error from inserting or changing a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// No frame can match.
    #[error("{0}")]
    Matcher(#[from] MatcherError),
    /// The rule does not exist.
    #[error("unknown rule {0}: it was never inserted, or has been removed")]
    NoSuchRule(RuleId),
    /// The classifier is full.
    #[error("a classifier holds at most {max} rules; remove some first", max = RULES_MAX)]
    TooMany,
}

/// Maximum number of rules.
const RULES_MAX: u32 = 1 << 30;

/// Number of shapes above which lookups are slow enough to warn about.
pub const SHAPES_MANY: usize = 64;

/// Chain length above which lookups are slow enough to warn about.
pub const CHAIN_LONG: usize = 64;

/// Lookup cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCost {
    /// Number of rules.
    pub rules: usize,
    /// Number of shapes, which is the maximum number of tables probed per lookup.
    pub shapes: usize,
    /// Length of the longest chain. Rules that differ only in port ranges and filters form a chain
    /// and are checked sequentially.
    pub longest_chain: usize,
    /// Number of rules with a filter; each filter parses the whole frame again.
    pub filters: usize,
}

impl SearchCost {
    /// Whether the cost warrants a warning: more than 64 shapes, or a chain of more than 64 rules.
    pub fn is_high(&self) -> bool {
        self.shapes > SHAPES_MANY || self.longest_chain > CHAIN_LONG
    }
}

/// Null rule number.
const NONE: u32 = u32::MAX;

/// Mask of a table entry's first rule: its number plus one.
const HEAD: u64 = u32::MAX as u64;

/// Flag in a table entry: the first rule has no further conditions.
const WHOLE: u64 = 1 << 32;

/// A classifier with targets of type `T`, such as link numbers or classes.
///
/// Inserting, removing and replacing a rule takes constant time in the number of rules, except when
/// a table doubles and in chains of rules that differ only in port ranges and filters. The time of
/// a change or lookup grows with the number of shapes.
#[derive(Clone, Debug)]
pub struct Classifier<T> {
    order: Order,
    unmatched: T,
    /// Target, place and next rule in the chain, by rule number. Stored in separate arrays, because
    /// a lookup reads few of them.
    targets: Vec<T>,
    places: Vec<RulePlace>,
    next: Vec<u32>,
    pub(super) matchers: Vec<Option<StoredMatcher>>,
    free: Vec<u32>,
    sequence: u64,
    shapes: Vec<Shape>,
    numbers: BTreeMap<ShapeKey, u32>,
    free_shapes: Vec<u32>,
    /// Non-empty shapes, sorted by a lower bound on their rules' places.
    visits: Vec<(RulePlace, u32)>,
    /// Number of rules with conditions on fields after the IP header.
    transports: usize,
    /// Number of rules with conditions on the Ethernet header, a tag or the ingress port.
    below_ip: usize,
    pub(super) filters: usize,
    /// Address mask, if all rules match only IPv4 addresses with this mask.
    addresses_mask: Option<u64>,
}

impl<T: Copy> Classifier<T> {
    /// Creates a classifier without rules.
    pub fn new(order: Order, unmatched: T) -> Classifier<T> {
        Classifier {
            order,
            unmatched,
            targets: Vec::new(),
            places: Vec::new(),
            next: Vec::new(),
            matchers: Vec::new(),
            free: Vec::new(),
            sequence: 0,
            shapes: Vec::new(),
            numbers: BTreeMap::new(),
            free_shapes: Vec::new(),
            visits: Vec::new(),
            transports: 0,
            below_ip: 0,
            filters: 0,
            addresses_mask: None,
        }
    }

    /// Creates a classifier with rules given as (matcher, target, priority), numbered from 0.
    ///
    /// # Errors
    /// The index of the first invalid rule, and its error.
    pub fn with_rules(
        order: Order,
        unmatched: T,
        rules: impl IntoIterator<Item = (Matcher, T, u32)>,
    ) -> Result<Classifier<T>, (usize, RuleError)> {
        let mut classifier = Classifier::new(order, unmatched);
        for (index, (matcher, target, priority)) in rules.into_iter().enumerate() {
            classifier
                .insert(matcher, target, priority)
                .map_err(|error| (index, error))?;
        }
        Ok(classifier)
    }

    /// Classifies a frame of `wire_len` bytes that arrived at port `arrival`. `frame` is the frame
    /// or a prefix of it. Does not allocate.
    #[inline]
    pub fn classify(&self, arrival: PortIndex, frame: &[u8], wire_len: u32) -> Classified<T> {
        self.classify_by(&self.key(arrival, frame), frame, wire_len)
    }

    /// Whether any rule uses fields after the IP header.
    #[inline]
    pub fn uses_transport(&self) -> bool {
        self.transports > 0
    }

    /// Extracts a frame's fields for [`Classifier::classify_by`].
    #[inline(always)]
    pub fn key(&self, arrival: PortIndex, frame: &[u8]) -> FrameKey {
        if let Some(mask) = self.addresses_mask
            && let Some(addresses) = untagged_addresses(frame)
        {
            return FrameKey(UsedFields::Addresses(addresses & mask));
        }
        self.all_fields(arrival, frame)
    }

    #[inline(never)]
    fn all_fields(&self, arrival: PortIndex, frame: &[u8]) -> FrameKey {
        let (with_transport, below_ip) = (self.transports > 0, self.below_ip > 0);
        let fields = FrameFields::of(arrival, frame, with_transport, below_ip);
        FrameKey(UsedFields::All(fields))
    }

    /// Calls `fetch` with the address of the first table row that a lookup would read, for
    /// prefetching.
    #[inline]
    pub fn prefetch(&self, key: &FrameKey, fetch: impl Fn(*const u8)) {
        if let Some((_, number)) = self.visits.first() {
            let shape = &self.shapes[*number as usize];
            let row = match &key.0 {
                UsedFields::Addresses(word) => shape.table.row_of(&[*word]),
                UsedFields::All(fields) => shape.row_of(fields),
            };
            fetch(row.cast());
        }
    }

    /// Whether [`Classifier::classify_by`] reads the frame's bytes: a rule has a filter.
    #[inline]
    pub fn reads_bytes(&self) -> bool {
        self.filters > 0
    }

    /// Like [`Classifier::classify`], for a key extracted after the last change to the rules.
    #[inline(always)]
    pub fn classify_by(&self, key: &FrameKey, frame: &[u8], wire_len: u32) -> Classified<T> {
        match (&key.0, &self.visits[..]) {
            (UsedFields::Addresses(word), [(_, number)]) => {
                // Such a shape's chains have no further conditions.
                let entry = self.shapes[*number as usize].table.get_word(*word);
                self.classified((entry != 0).then(|| head(entry)))
            }
            (UsedFields::Addresses(_), _) => self.classified(None),
            (UsedFields::All(fields), _) => self.classify_fields(fields, frame, wire_len),
        }
    }

    // Not inlined, so that lookups of addresses are.
    #[inline(never)]
    fn classify_fields(&self, fields: &FrameFields, frame: &[u8], wire_len: u32) -> Classified<T> {
        let [(_, number)] = self.visits[..] else {
            return self.classify_among(fields, frame, wire_len);
        };
        match self.shapes[number as usize].find(fields) {
            0 => self.classified(None),
            entry => self.classified(self.first_of_chain(entry, fields, frame, wire_len)),
        }
    }

    /// Finds the best rule among several shapes.
    fn classify_among(&self, key: &FrameFields, frame: &[u8], wire_len: u32) -> Classified<T> {
        let mut best: Option<(RulePlace, u32)> = None;
        let mut visits = self.visits.iter().peekable();
        while let Some((bound, number)) = visits.next() {
            if best.is_some_and(|(place, _)| place < *bound) {
                break;
            }
            let shape = &self.shapes[*number as usize];
            let entry = shape.find(key);
            if entry == 0 {
                continue;
            }
            let Some(rule) = self.first_of_chain(entry, key, frame, wire_len) else {
                continue;
            };
            // A rule's place matters only if several shapes may match.
            if best.is_none() && visits.peek().is_none_or(|(next, _)| shape.worst < *next) {
                return self.classified(Some(rule));
            }
            let place = self.places[rule as usize];
            if best.is_none_or(|(before, _)| place < before) {
                best = Some((place, rule));
            }
        }
        self.classified(best.map(|(_, rule)| rule))
    }

    #[inline(always)]
    fn classified(&self, rule: Option<u32>) -> Classified<T> {
        Classified {
            target: rule.map_or(self.unmatched, |rule| self.targets[rule as usize]),
            rule: rule.map(RuleId),
        }
    }

    /// Returns the target of all frames that arrive at a port, or `None` if it depends on the
    /// frame. Scans all rules.
    pub fn target_of_port(&self, arrival: PortIndex) -> Option<T> {
        let rules = self.matchers.iter().enumerate();
        let rules = rules.filter_map(|(rule, matcher)| Some((rule, matcher.as_ref()?.matcher())));
        let of_port =
            rules.filter(|(_, found)| found.arrival_port.is_none_or(|port| port == arrival));
        let Some((rule, matcher)) = of_port.min_by_key(|(rule, _)| self.places[*rule]) else {
            return Some(self.unmatched);
        };
        matcher.is_rest().then_some(self.targets[rule])
    }

    /// Returns the first rule in a chain whose ranges and filter match.
    #[inline]
    fn first_of_chain(
        &self,
        entry: u64,
        key: &FrameFields,
        frame: &[u8],
        wire_len: u32,
    ) -> Option<u32> {
        if entry & WHOLE != 0 {
            return Some(head(entry));
        }
        self.chain(entry).find(|rule| {
            let matcher = self.matchers[*rule as usize].as_ref();
            matcher.is_some_and(|matcher| matcher.rest_matches(key, frame, wire_len))
        })
    }

    /// Returns the rules in a table entry, sorted by place.
    pub(super) fn chain(&self, entry: u64) -> impl Iterator<Item = u32> + '_ {
        let first = (entry != 0).then(|| head(entry));
        core::iter::successors(first, |rule| {
            let next = self.next[*rule as usize];
            (next != NONE).then_some(next)
        })
    }

    /// Adds a rule after those of the same priority. Lower priority numbers take precedence.
    ///
    /// # Errors
    /// If the matcher is unsatisfiable, or there would be more than 2^30 rules.
    pub fn insert(
        &mut self,
        matcher: Matcher,
        target: T,
        priority: u32,
    ) -> Result<RuleId, RuleError> {
        matcher.check()?;
        if self.len() >= RULES_MAX as usize {
            return Err(RuleError::TooMany);
        }
        let place = self.place(&matcher, priority, self.sequence);
        self.sequence += 1;
        let rule = self.free.pop().unwrap_or(self.matchers.len() as u32);
        if rule as usize == self.matchers.len() {
            self.targets.push(target);
            self.places.push(place);
            self.next.push(NONE);
            self.matchers.push(None);
        }
        self.targets[rule as usize] = target;
        self.link(rule, matcher, place);
        Ok(RuleId(rule))
    }

    /// Removes and returns a rule.
    ///
    /// # Errors
    /// If the rule does not exist.
    pub fn remove(&mut self, id: RuleId) -> Result<(Matcher, T), RuleError> {
        let matcher = self.unlink(id)?;
        self.free.push(id.0);
        Ok((matcher, self.targets[id.0 as usize]))
    }

    /// Replaces a rule's matcher and target, keeping number, priority and order. On error, the rule
    /// stays unchanged.
    ///
    /// # Errors
    /// If the rule does not exist, or the matcher is unsatisfiable.
    pub fn replace(&mut self, id: RuleId, matcher: Matcher, target: T) -> Result<(), RuleError> {
        self.rule(id)?;
        matcher.check()?;
        let before = self.places[id.0 as usize];
        let place = self.place(&matcher, (before >> 96) as u32, sequence_of(before));
        self.unlink(id)?;
        self.targets[id.0 as usize] = target;
        self.link(id.0, matcher, place);
        Ok(())
    }

    /// Sets a rule's target.
    ///
    /// # Errors
    /// If the rule does not exist.
    pub fn set_target(&mut self, id: RuleId, target: T) -> Result<(), RuleError> {
        self.rule(id)?;
        self.targets[id.0 as usize] = target;
        Ok(())
    }

    /// Sets the target of unmatched frames.
    pub fn set_unmatched(&mut self, target: T) {
        self.unmatched = target;
    }

    /// Returns a rule's matcher and target.
    ///
    /// # Errors
    /// If the rule does not exist.
    pub fn rule(&self, id: RuleId) -> Result<(Cow<'_, Matcher>, T), RuleError> {
        let matcher = self.matchers.get(id.0 as usize).and_then(Option::as_ref);
        let matcher = matcher.ok_or(RuleError::NoSuchRule(id))?;
        Ok((matcher.matcher(), self.targets[id.0 as usize]))
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.matchers.len() - self.free.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the lookup cost. Scans all rules.
    pub fn cost(&self) -> SearchCost {
        let entries = self.used_shapes().flat_map(|shape| shape.table.values());
        SearchCost {
            rules: self.len(),
            shapes: self.visits.len(),
            longest_chain: entries.fold(0, |most, entry| most.max(self.chain(entry).count())),
            filters: self.filters,
        }
    }

    pub(super) fn target_of(&self, rule: u32) -> T {
        self.targets[rule as usize]
    }

    pub(super) fn place_of(&self, rule: u32) -> RulePlace {
        self.places[rule as usize]
    }

    /// Returns the non-empty shapes.
    pub(super) fn used_shapes(&self) -> impl Iterator<Item = &Shape> + Clone {
        self.visits
            .iter()
            .map(|(_, shape)| &self.shapes[*shape as usize])
    }
}

/// Returns the first rule in a table entry.
#[inline]
fn head(entry: u64) -> u32 {
    (entry & HEAD) as u32 - 1
}

impl<T: Copy> Classifier<T> {
    fn place(&self, matcher: &Matcher, priority: u32, sequence: u64) -> RulePlace {
        const SPECIFICITY_MAX: u64 = (1 << (96 - SEQUENCE_BITS)) - 1;
        let lack = match self.order {
            Order::First => 0,
            Order::MostSpecific => SPECIFICITY_MAX - matcher.specificity(),
        };
        u128::from(priority) << 96 | u128::from(lack) << SEQUENCE_BITS | u128::from(sequence)
    }

    /// Adds a rule to its shape.
    fn link(&mut self, rule: u32, matcher: Matcher, place: RulePlace) {
        let cube = Cube::of(&matcher);
        let number = self.shape_of(&cube);
        self.count(&cube, &matcher, 1);
        self.places[rule as usize] = place;
        self.matchers[rule as usize] = Some(StoredMatcher::new(matcher));
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
        self.note_used_fields();
    }

    /// Removes a rule from its shape.
    fn unlink(&mut self, id: RuleId) -> Result<Matcher, RuleError> {
        let rule = id.0;
        let taken = self.matchers.get_mut(rule as usize).and_then(Option::take);
        let matcher = taken.ok_or(RuleError::NoSuchRule(id))?;
        let matcher = matcher.into_matcher();
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
        self.note_used_fields();
        Ok(matcher)
    }

    /// Returns the table entry for a key whose first rule is `rule`.
    fn entry(&self, rule: u32) -> u64 {
        let matcher = &self.matchers[rule as usize];
        let whole = matcher.as_ref().is_some_and(|matcher| !matcher.has_rest());
        u64::from(rule + 1) | if whole { WHOLE } else { 0 }
    }

    /// Updates the counts that determine which fields lookups extract.
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

    /// Updates `addresses_mask`.
    fn note_used_fields(&mut self) {
        let only = match self.visits[..] {
            [(_, number)] if self.filters == 0 => Some(number),
            _ => None,
        };
        self.addresses_mask = only.and_then(|number| self.shapes[number as usize].addresses_mask());
    }

    /// Returns the number of a cube's shape, creating the shape if necessary.
    fn shape_of(&mut self, cube: &Cube) -> u32 {
        let key = Shape::key_of(cube);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let shape = Shape::new(key);
        let number = self.free_shapes.pop().unwrap_or(self.shapes.len() as u32);
        match self.shapes.get_mut(number as usize) {
            Some(free) => *free = shape,
            None => self.shapes.push(shape),
        }
        self.numbers.insert(key, number);
        number
    }

    /// Updates a shape, its bounds and its position among the shapes.
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
