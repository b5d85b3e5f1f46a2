//! A run's grade.

use serde::{Deserialize, Serialize};

use crate::suggest;

/// A run's fidelity to its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Results do not reflect the configured links.
    NotFaithful,
    /// No frame arrived or was sent, so the run has no verdict.
    #[default]
    NoFrames,
    /// Some frames were late or lost: medians are within 1 %, but tails may not be.
    NearlyFaithful,
    /// Throughput, and medians and 95th percentiles of delays, are within 1 %.
    Faithful,
}

impl Grade {
    /// All grades.
    pub const ALL: [Grade; 4] = [
        Grade::NotFaithful,
        Grade::NoFrames,
        Grade::NearlyFaithful,
        Grade::Faithful,
    ];

    /// Returns the grade's name in reports and conditions.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::NotFaithful => "not-faithful",
            Grade::NoFrames => "no-frames",
            Grade::NearlyFaithful => "nearly-faithful",
            Grade::Faithful => "faithful",
        }
    }

    /// Returns the grade with this name.
    pub fn named(name: &str) -> Option<Grade> {
        Grade::ALL.into_iter().find(|grade| grade.name() == name)
    }

    /// Returns the grade whose name is closest to an unknown name.
    pub fn nearest(name: &str) -> Option<Grade> {
        let close = suggest::closest(name, Grade::ALL.map(Grade::name))?;
        Grade::named(close)
    }

    /// Returns whether a run graded `found` meets a condition on this grade. A higher grade meets
    /// it too, but [`Grade::NotFaithful`] and [`Grade::NoFrames`] require exactly that grade.
    pub fn is_met_by(self, found: Grade) -> bool {
        match self {
            Grade::NotFaithful | Grade::NoFrames => found == self,
            least => found >= least,
        }
    }
}
