//! Configuration of a run.

use longwire_engine::{Bytes, LinkConfig, Nanos};

use crate::faults::Faults;
use crate::record::Epoch;

/// Configuration of one direction of a run.
#[derive(Debug)]
pub struct LinkSetup {
    /// Its name in reports: `up` and `down`, or `ab` and `ba`.
    pub name: String,
    /// The emulated link.
    pub config: LinkConfig,
}

/// Names of the two directions of a run's only link.
pub const DIRECTIONS: [&str; 2] = ["link.up", "link.down"];

impl LinkSetup {
    /// Returns an emulated link with this name.
    pub fn new(name: impl Into<String>, config: LinkConfig) -> LinkSetup {
        let name = name.into();
        LinkSetup { name, config }
    }
}

/// How a stage waits for the next release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitMode {
    /// Never sleep: the most accurate, at the cost of a core.
    Spin,
    /// Sleep until shortly before the release, spin the rest.
    #[default]
    Adaptive,
    /// Sleep until the release: the cheapest, late by the wake-up latency.
    Block,
}

/// How stages are spread over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// By the number of cores.
    #[default]
    Auto,
    /// One thread runs every stage in turn.
    Together,
    /// One thread a direction.
    PerDirection,
    /// One thread a stage.
    PerStage,
}

/// Grace at the start of a run by default: memory is touched for the first
/// time, and threads have not yet learnt their wake margins.
pub const GRACE: Nanos = Nanos::from_millis(100);

/// Configuration common to both directions.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The seed of every random stream.
    pub seed: u64,
    /// How stages wait.
    pub wait: WaitMode,
    /// How stages are spread over threads.
    pub placement: Placement,
    /// The maximum memory of waiting frames, for each direction. `None` derives
    /// it from rate and delay.
    pub memory: Option<Bytes>,
    /// A release later than this counts as an artifact.
    pub tolerance: Nanos,
    /// Frames released within this time after the start that are late count as
    /// artifacts of the start.
    pub grace: Nanos,
    /// Ask for a real-time scheduling class and locked memory.
    pub realtime: bool,
    /// Receives the faults of the links' plugins; a fault ends the run.
    pub faults: Faults,
    /// The instant from which schedules count; `None`: the start.
    pub epoch: Option<Epoch>,
    /// Whether waiting frames are in huge pages, some megabytes of which are taken at the
    /// start. Without, memory begins small and grows: for one of many runs in a process.
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
