//! Rows of the counter table, and the macros that define types from them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter: a row of the table, with its user-visible names.
#[derive(Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name in JSON and of the `--require` measure.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// Aggregation of several values.
    pub fold: Fold,
    /// Label in `ctl`'s text; empty if not shown.
    pub label: &'static str,
    /// Prometheus metrics, one per scope that exports the counter.
    pub metrics: &'static [MetricHelp],
    /// Group and name of the row in a pair's text report. The row is shown unless the counter is 0.
    pub row: Option<(&'static str, &'static str)>,
}

/// A counter's metric.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricHelp {
    /// The object that the metric describes.
    pub scope: Scope,
    /// Name without scope and unit, such as `received` in `link_received_frames`.
    pub stem: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// The object that a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One direction of a link.
    Link,
    /// A port.
    Port,
    /// All of a run's links.
    Run,
}

/// A counter's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Frames.
    Frames,
    /// Bytes of frames, without framing, or of memory.
    Bytes,
    /// Nanoseconds.
    Nanos,
    /// Rows of a log.
    Rows,
}

/// Aggregation of a counter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The sum.
    Sum,
    /// The maximum.
    Max,
}

impl Fold {
    /// Aggregates two values.
    #[inline]
    pub const fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Fold::Sum => a + b,
            Fold::Max if a > b => a,
            Fold::Max => b,
        }
    }
}

/// A counter with one writer and any number of readers.
#[derive(Debug, Default)]
pub struct CountCell(AtomicU64);

impl CountCell {
    /// Adds without an atomic read-modify-write: there is only one writer.
    #[inline]
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    /// Subtracts, to correct an earlier count.
    pub fn subtract(&self, less: u64) {
        self.set(self.get().saturating_sub(less));
    }

    /// Raises the count to `value` if that is larger.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// Replaces the count.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the count.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Defines groups of counters that are counted and reported together.
///
/// Each group has one type for its totals and one for its cells. A row is
///
/// ```text
/// /// Its description in docs and in JSON schemas.
/// name: Unit, Fold, "label in ctl" ["group" "name" of a row in the text report],
///     Scope "stem of a metric" "its help", …;
/// ```
///
/// The bracket and the metrics are optional.
macro_rules! counters {
    ($(
        $(#[$about:meta])*
        $totals:ident, $cells:ident {
            $(
                $(#[$doc:meta])+
                $name:ident: $unit:ident, $fold:ident, $label:literal
                    $([$group:literal $row:literal])?
                    $(, $scope:ident $stem:literal $help:literal)*;
            )+
        }
    )+) => { $(
        $(#[$about])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        // A counter missing from another version's report is zero.
        #[serde(default)]
        pub struct $totals {
            $( $(#[$doc])+ pub $name: u64, )+
        }

        impl $totals {
            /// The counters, in the order of their fields.
            pub const COUNTERS: &'static [Counter] = &[$( Counter {
                name: stringify!($name),
                unit: Unit::$unit,
                fold: Fold::$fold,
                label: $label,
                metrics: &[$( MetricHelp {
                    scope: Scope::$scope,
                    stem: $stem,
                    help: $help,
                } ),*],
                row: [$( Some(($group, $row)), )? None][0],
            } ),+];

            /// Returns each counter with its value.
            pub fn counted(&self) -> impl Iterator<Item = (&'static Counter, u64)> + use<> {
                $totals::COUNTERS.iter().zip([$( self.$name ),+])
            }

            /// Adds another object's counts, or keeps the maximum of both.
            pub fn add(&mut self, other: &$totals) {
                $( self.$name = Fold::$fold.of(self.$name, other.$name); )+
            }
        }

        #[doc = concat!("The cells of [`", stringify!($totals), "`]: one thread counts in them.")]
        #[derive(Debug, Default)]
        pub struct $cells {
            $( #[doc = stringify!($name)] pub $name: CountCell, )+
        }

        impl $cells {
            /// Returns the counts, read one by one.
            pub fn read(&self) -> $totals {
                $totals { $( $name: self.$name.get(), )+ }
            }

            /// Replaces the counts, one by one.
            pub fn set(&self, totals: &$totals) {
                $( self.$name.set(totals.$name); )+
            }
        }
    )+ };
}

/// Defines the artifact kinds. A row has a description, the name in reports, the class, and the
/// meaning with a remedy, for the verdict on a run.
macro_rules! artifacts {
    ($(
        $(#[$doc:meta])+
        $kind:ident = $name:literal: $class:ident, $hint:literal;
    )+) => {
        /// A way in which the emulator treated a frame differently from its models.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Artifact {
            $( $(#[$doc])+ $kind, )+
        }

        impl Artifact {
            /// All kinds, in the order of their indices.
            pub const ALL: [Artifact; [$( $name ),+].len()] = [$( Artifact::$kind ),+];

            /// Returns the kind's name in reports and JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Artifact::$kind => $name, )+
                }
            }

            /// Returns the kind's meaning and a remedy.
            pub const fn hint(self) -> &'static str {
                match self {
                    $( Artifact::$kind => $hint, )+
                }
            }

            const fn class(self) -> ArtifactClass {
                match self {
                    $( Artifact::$kind => ArtifactClass::$class, )+
                }
            }
        }
    };
}

pub(super) use {artifacts, counters};
