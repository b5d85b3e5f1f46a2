//! Detects unreachable and overlapping rules.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::classifier::{Classifier, RuleId};
use super::key::{Cube, WORDS};
use super::matcher::Matcher;
use super::shape::Shape;
use super::table::hash;

/// Maximum number of comparisons per analysis; this many take a few seconds.
const WORK_MAX: u64 = 50_000_000;

/// A rule that can never match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Number of the rule.
    pub rule: RuleId,
    /// An earlier rule that covers it.
    pub covered_by: RuleId,
}

/// Rules that can never match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreachableRules {
    /// Sorted by rule number; each with one rule that covers it.
    pub rules: Vec<Unreachable>,
    /// Whether the analysis is complete. It stops early if there are very many shapes or very long
    /// chains of port ranges.
    pub complete: bool,
}

/// Two rules that overlap partially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The rule that applies to frames matched by both.
    pub winner: RuleId,
    /// The other rule.
    pub loser: RuleId,
}

/// Overlapping rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlaps {
    /// Sorted by the place of the winner, then of the loser.
    pub pairs: Vec<Overlap>,
    /// Whether all overlaps were found: neither `limit` nor the maximum number of comparisons was
    /// reached.
    pub complete: bool,
    /// Number of rules with filters, which are not analysed.
    pub unjudged: usize,
}

/// Counts comparisons up to a limit.
struct Work(u64);

impl Work {
    /// Counts a comparison; returns `false` beyond the limit.
    fn spend(&mut self) -> bool {
        self.0 += 1;
        self.0 <= WORK_MAX
    }

    fn is_within(&self) -> bool {
        self.0 <= WORK_MAX
    }
}

impl<T: Copy + PartialEq> Classifier<T> {
    /// Returns rules that can never match because a single earlier rule covers them.
    ///
    /// Coverage by a union of rules is not detected. Filters are opaque: a filter covers only an
    /// identical one, and a rule with a filter is reported if a rule without one covers it. Takes
    /// one lookup per rule and shape.
    pub fn unreachable(&self) -> UnreachableRules {
        let mut work = Work(0);
        let mut rules = Vec::new();
        for rule in self.rule_numbers() {
            if let Some(covered_by) = self.covered_by(rule, &mut work) {
                let (rule, covered_by) = (RuleId(rule), RuleId(covered_by));
                rules.push(Unreachable { rule, covered_by });
            }
        }
        let complete = work.is_within();
        UnreachableRules { rules, complete }
    }

    /// Returns at most `limit` pairs of rules with different targets that overlap without one
    /// covering the other. A narrow rule before a wide one is an exception to it, not an overlap; a
    /// wide rule before a narrow one makes the latter unreachable. Overlaps with a port's trailing
    /// catch-all rule are not reported either.
    ///
    /// Rules with filters are only counted. Pairs are joined on the bits common to both shapes, in
    /// time proportional to rules times shapes, plus the number of pairs.
    pub fn overlaps(&self, limit: usize) -> Overlaps {
        let mut search = Search {
            classifier: self,
            work: Work(0),
            limit,
            pairs: Vec::new(),
        };
        let shapes: Vec<(&Shape, Vec<u32>)> = self
            .used_shapes()
            .map(|shape| (shape, self.rules_of(shape)))
            .collect();
        for (at, (shape, rules)) in shapes.iter().enumerate() {
            search.within(shape);
            for (other, others) in &shapes[at + 1..] {
                if shape.meets(other) && search.goes_on() {
                    search.between(shape, rules, other, others);
                }
            }
        }
        let complete = search.work.is_within() && search.pairs.len() <= limit;
        let mut pairs = search.pairs;
        pairs.truncate(limit);
        pairs.sort_by_key(|pair| (self.place_of(pair.winner.0), self.place_of(pair.loser.0)));
        Overlaps {
            pairs,
            complete,
            unjudged: self.filters,
        }
    }

    /// Iterates over the numbers of all rules.
    fn rule_numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let rules = (0..).zip(&self.matchers);
        rules.filter_map(|(rule, matcher)| matcher.as_ref().map(|_| rule))
    }

    fn matcher_of(&self, rule: u32) -> Option<Cow<'_, Matcher>> {
        Some(self.matchers[rule as usize].as_ref()?.matcher())
    }

    /// Returns an earlier rule that covers this one.
    fn covered_by(&self, rule: u32, work: &mut Work) -> Option<u32> {
        let matcher = self.matcher_of(rule)?;
        let cube = Cube::of(&matcher).closed()?;
        let place = self.place_of(rule);
        for shape in self.used_shapes() {
            if shape.bound() >= place || !work.spend() {
                return None;
            }
            for other in self.chain(shape.find_all(&cube)) {
                if self.place_of(other) >= place || !work.spend() {
                    break;
                }
                let covers = self.matcher_of(other);
                if covers.is_some_and(|covers| covers.rest_covers(&matcher)) {
                    return Some(other);
                }
            }
        }
        None
    }

    /// Returns a shape's rules that have no filter.
    fn rules_of(&self, shape: &Shape) -> Vec<u32> {
        let chains = shape.table.values().flat_map(|entry| self.chain(entry));
        let mut rules: Vec<u32> = chains.filter(|rule| !self.has_filter(*rule)).collect();
        // The order must not depend on the hash table.
        rules.sort_unstable();
        rules
    }

    fn has_filter(&self, rule: u32) -> bool {
        self.matcher_of(rule)
            .is_some_and(|matcher| matcher.filter.is_some())
    }
}

/// A search for overlapping pairs.
struct Search<'a, T> {
    classifier: &'a Classifier<T>,
    work: Work,
    limit: usize,
    pairs: Vec<Overlap>,
}

impl<T: Copy + PartialEq> Search<'_, T> {
    /// Whether to continue. Finds one pair beyond the limit, to detect that there are more.
    fn goes_on(&self) -> bool {
        self.pairs.len() <= self.limit && self.work.is_within()
    }

    /// Compares the rules of one shape, which overlap only if their keys are equal.
    fn within(&mut self, shape: &Shape) {
        let classifier = self.classifier;
        let mut entries: Vec<u64> = shape.table.values().collect();
        entries.sort_unstable();
        for entry in entries {
            for (index, first) in classifier.chain(entry).enumerate() {
                for second in classifier.chain(entry).skip(index + 1) {
                    if !self.goes_on() {
                        return;
                    }
                    self.compare(first, second);
                }
            }
        }
    }

    /// Compares the rules of two shapes, which overlap only if the bits used by both are equal.
    fn between(&mut self, shape: &Shape, rules: &[u32], other: &Shape, others: &[u32]) {
        let (mine, theirs) = (shape.mask(), other.mask());
        let common: [u64; WORDS] = core::array::from_fn(|at| mine[at] & theirs[at]);
        let rules = self.by_bits(rules, &common);
        let others = self.by_bits(others, &common);
        let mut start = 0;
        for (bits, first) in rules {
            while others.get(start).is_some_and(|(other, _)| *other < bits) {
                start += 1;
            }
            let alike = others[start..]
                .iter()
                .take_while(|(other, _)| *other == bits);
            for (_, second) in alike {
                if !self.goes_on() {
                    return;
                }
                self.compare(first, *second);
            }
        }
    }

    /// Returns rules sorted by a hash of their bits under `bits`.
    fn by_bits(&mut self, rules: &[u32], bits: &[u64; WORDS]) -> Vec<(u64, u32)> {
        self.work.0 += rules.len() as u64;
        let hashed = rules.iter().filter_map(|rule| {
            let matcher = self.classifier.matcher_of(*rule)?;
            let cube = Cube::of(&matcher);
            let key: [u64; WORDS] = core::array::from_fn(|at| cube.value[at] & bits[at]);
            Some((hash(&key), *rule))
        });
        let mut hashed: Vec<_> = hashed.collect();
        hashed.sort_unstable();
        hashed
    }

    /// Records two rules if they overlap.
    fn compare(&mut self, first: u32, second: u32) {
        let classifier = self.classifier;
        if !self.work.spend()
            || classifier.target_of(first) == classifier.target_of(second)
            || classifier.has_filter(first)
            || classifier.has_filter(second)
            || self.overlap(first, second).is_none()
        {
            return;
        }
        let mut pair = [first, second];
        pair.sort_by_key(|rule| classifier.place_of(*rule));
        if classifier
            .matcher_of(pair[1])
            .is_some_and(|loser| loser.is_rest())
        {
            return;
        }
        let [winner, loser] = pair.map(RuleId);
        self.pairs.push(Overlap { winner, loser });
    }

    /// Whether two rules overlap without either covering the other.
    fn overlap(&self, first: u32, second: u32) -> Option<()> {
        let (a, b) = (
            self.classifier.matcher_of(first)?,
            self.classifier.matcher_of(second)?,
        );
        let (cube_a, cube_b) = (Cube::of(&a), Cube::of(&b));
        let (closed_a, closed_b) = (cube_a.closed()?, cube_b.closed()?);
        let meet = closed_a.meets(&closed_b) && a.ranges_meet(&b);
        let within = cube_a.covers(&closed_b) && a.rest_covers(&b)
            || cube_b.covers(&closed_a) && b.rest_covers(&a);
        (meet && !within).then_some(())
    }
}
