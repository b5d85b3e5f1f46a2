//! A run's configuration.

use longwire_engine::{Bytes, LinkConfig, Nanos};

use crate::faults::Faults;
use crate::record::Epoch;

/// Configuration of one direction of a run.
#[derive(Debug)]
pub struct LinkSetup {
    /// The direction's name in reports, such as `link.up`.
    pub name: String,
    /// The emulated link.
    pub config: LinkConfig,
}

/// Names of the two directions of a run with a single link.
pub const DIRECTIONS: [&str; 2] = ["link.up", "link.down"];

impl LinkSetup {
    /// Returns an emulated link with this name.
    pub fn new(name: impl Into<String>, config: LinkConfig) -> LinkSetup {
        let name = name.into();
        LinkSetup { name, config }
    }
}

/// A stage's waiting strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitMode {
    /// Never sleep: most accurate, but occupies a core.
    Spin,
    /// Sleep until shortly before the release, then spin.
    #[default]
    Adaptive,
    /// Sleep until the release: cheapest, but late by the wake-up latency.
    Block,
}

/// Distribution of stages over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Chosen by the number of cores.
    #[default]
    Auto,
    /// One thread for all stages.
    Together,
    /// One thread per direction.
    PerDirection,
    /// One thread per stage.
    PerStage,
}

/// Default grace period after the start, in which pages fault in and threads learn their wake
/// margins.
pub const GRACE: Nanos = Nanos::from_millis(100);

/// Configuration shared by both directions.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Seed of all random streams.
    pub seed: u64,
    /// Wait mode of the stages.
    pub wait: WaitMode,
    /// Distribution of stages over threads.
    pub placement: Placement,
    /// Maximum memory for queued frames per direction; `None` derives it from rate and delay.
    pub memory: Option<Bytes>,
    /// Maximum lateness; later handovers are artifacts.
    pub tolerance: Nanos,
    /// Late frames released within this time after the start count as start artifacts.
    pub grace: Nanos,
    /// Whether to request a real-time scheduling class and locked memory.
    pub realtime: bool,
    /// Collects plugin faults. Any fault ends the run.
    pub faults: Faults,
    /// Origin of schedules; `None` means the start of the run.
    pub epoch: Option<Epoch>,
    /// Whether to store queued frames in huge pages beyond the first megabytes. Ordinary pages
    /// suit many runs in one process.
    pub huge_pages: bool,
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            seed: 1,
            wait: WaitMode::Adaptive,
            placement: Placement::Auto,
            memory: None,
            tolerance: Nanos::from_millis(1),
            grace: GRACE,
            realtime: true,
            faults: Faults::new(),
            epoch: None,
            huge_pages: true,
        }
    }
}
