//! Counts by name: drops by reason, artifacts by kind.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Index, IndexMut};

use longwire_engine::DropReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// Number of drop reasons.
pub(super) const REASONS: usize = DropReason::ALL.len();

/// Counts by name, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NamedCounts(BTreeMap<Cow<'static, str>, u64>);

impl NamedCounts {
    /// Returns the total.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the count of a name, or 0.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the nonzero counts.
    pub fn nonzero(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.0.iter().map(|(name, count)| (name.as_ref(), *count));
        counts.filter(|(_, count)| *count > 0)
    }
}

impl Deref for NamedCounts {
    type Target = BTreeMap<Cow<'static, str>, u64>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for NamedCounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl FromIterator<(&'static str, u64)> for NamedCounts {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(counts: I) -> NamedCounts {
        let counts = counts.into_iter();
        NamedCounts(counts.map(|(name, count)| (name.into(), count)).collect())
    }
}

impl<const N: usize> From<[(&'static str, u64); N]> for NamedCounts {
    fn from(counts: [(&'static str, u64); N]) -> NamedCounts {
        counts.into_iter().collect()
    }
}

/// Drops by reason. They are serialized by the names of all reasons, in the order of
/// [`DropReason::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "NamedCounts")]
pub struct Drops([u64; REASONS]);

impl Drops {
    pub(super) fn new(counts: [u64; REASONS]) -> Drops {
        Drops(counts)
    }

    /// Returns the total.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns each reason's name with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let drops = *self;
        let reasons = DropReason::ALL.into_iter();
        reasons.map(move |reason| (reason.name(), drops[reason]))
    }

    /// Returns the nonzero counts by name.
    pub fn nonzero(&self) -> NamedCounts {
        self.iter().filter(|(_, count)| *count > 0).collect()
    }

    pub(super) fn add(&mut self, other: &Drops) {
        for reason in DropReason::ALL {
            self[reason] += other[reason];
        }
    }
}

impl Index<DropReason> for Drops {
    type Output = u64;

    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason.index()]
    }
}

impl IndexMut<DropReason> for Drops {
    fn index_mut(&mut self, reason: DropReason) -> &mut u64 {
        &mut self.0[reason.index()]
    }
}

impl From<NamedCounts> for Drops {
    fn from(counts: NamedCounts) -> Drops {
        Drops(DropReason::ALL.map(|reason| counts.of(reason.name())))
    }
}

impl Serialize for Drops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
