//! The grade of a run, as a condition.

use serde::Serialize;

/// How far a run met its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Results are not those of the configured links.
    NotFaithful,
    /// Some frames were late or lost: medians are within 1 %, tails may not be.
    NearlyFaithful,
    /// Throughput, and medians and 95th percentiles of delays, are within 1 %.
    Faithful,
}

impl Grade {
    /// Every grade.
    pub const ALL: [Grade; 3] = [Grade::NotFaithful, Grade::NearlyFaithful, Grade::Faithful];

    /// Returns its name in reports and conditions.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::NotFaithful => "not-faithful",
            Grade::NearlyFaithful => "nearly-faithful",
            Grade::Faithful => "faithful",
        }
    }

    /// Returns the grade of a name.
    pub fn named(name: &str) -> Option<Grade> {
        Grade::ALL.into_iter().find(|grade| grade.name() == name)
    }

    /// Whether a run of the grade `found` meets a condition of this grade: a better run
    /// does, except that [`Grade::NotFaithful`] asks for exactly that.
    pub fn is_met_by(self, found: Grade) -> bool {
        match self {
            Grade::NotFaithful => found == Grade::NotFaithful,
            least => found >= least,
        }
    }
}
