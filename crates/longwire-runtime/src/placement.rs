//! The placement of stages on threads and cores.

use std::sync::Arc;

use longwire_io::port::{AnyRx, AnyTx};

use crate::config::{Placement, WaitMode};
use crate::host;
use crate::stage::{Egress, Ingress};
use crate::thread::{Bell, Control, Stages, Worker};
use crate::witness::PauseHistory;

/// The placement of the stages, once decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    placement: Placement,
    cores: usize,
    spins: bool,
}

/// Two directions of two stages each.
const STAGES: usize = 4;

impl Layout {
    /// Chooses the placement: with a core for every stage, each has its own;
    /// with fewer, one thread runs them all in turn and leaves the rest of the
    /// machine to the programs under test.
    pub fn choose(asked: Placement, wait: WaitMode, cores: usize) -> Layout {
        let placement = match asked {
            Placement::Auto if cores >= STAGES => Placement::PerStage,
            Placement::Auto => Placement::Together,
            given => given,
        };
        Layout {
            placement,
            cores,
            spins: wait == WaitMode::Spin,
        }
    }

    /// Whether stages are spread over several threads.
    pub fn is_apart(self) -> bool {
        self.placement != Placement::Together
    }

    /// Describes the placement in a sentence.
    pub fn describe(self) -> String {
        let how = match self.placement {
            Placement::PerStage => "a thread a stage",
            Placement::PerDirection => "a thread a direction",
            Placement::Together | Placement::Auto => "one thread for all stages",
        };
        format!("placement: {how} ({} cores)", self.cores)
    }

    /// Returns the core to which a thread is pinned: if every stage has its
    /// own, or if threads that never sleep leave a core to others. Otherwise,
    /// with few cores, the scheduler chooses better.
    pub fn core_of(self, thread: usize) -> Option<usize> {
        let threads = match self.placement {
            Placement::PerStage => STAGES,
            Placement::PerDirection => 2,
            Placement::Together | Placement::Auto => 1,
        };
        let has_its_own = self.placement == Placement::PerStage || self.spins;
        (has_its_own && self.cores > threads)
            .then(|| host::allowed_cores().into_iter().nth_back(thread))
            .flatten()
    }
}

/// Builds the threads' workers from each direction's stages.
pub(crate) fn workers(
    directions: Vec<(Ingress<AnyRx>, Egress<AnyTx>)>,
    layout: Layout,
    wait: WaitMode,
    control: &Arc<Control>,
) -> Result<Vec<Worker>, nix::Error> {
    let mut spread: Vec<Stages> = Vec::new();
    // For each ingress stage's thread, the thread that empties its line.
    let mut feeds: Vec<Option<usize>> = Vec::new();
    for (ingress, egress) in directions {
        match layout.placement {
            Placement::PerStage => {
                spread.push(Stages::of(Some(ingress), None));
                feeds.push(Some(spread.len()));
                spread.push(Stages::of(None, Some(egress)));
                feeds.push(None);
            }
            Placement::PerDirection => {
                spread.push(Stages::of(Some(ingress), Some(egress)));
                feeds.push(None);
            }
            Placement::Together | Placement::Auto => {
                if spread.is_empty() {
                    spread.push(Stages::default());
                    feeds.push(None);
                }
                spread[0].ingress.push(ingress);
                spread[0].egress.push(egress);
            }
        }
    }
    connect(spread, &feeds, wait, control)
}

/// Builds the workers of threads with these stages. For each thread, `feeds`
/// has the one that empties its lines, if that is another.
pub(crate) fn connect(
    mut spread: Vec<Stages>,
    feeds: &[Option<usize>],
    wait: WaitMode,
    control: &Arc<Control>,
) -> Result<Vec<Worker>, nix::Error> {
    let bells: Vec<Arc<Bell>> = spread
        .iter()
        .map(|_| Bell::new().map(Arc::new))
        .collect::<Result<_, _>>()?;
    let inputs = spread
        .iter()
        .filter(|stages| !stages.ingress.is_empty())
        .count() as u64;
    let pauses: Vec<Arc<PauseHistory>> = spread.iter().map(|_| Arc::default()).collect();
    for (index, stages) in spread.iter_mut().enumerate() {
        // A frame is late by pauses of the thread that sends it, and of the
        // thread that received it.
        let feeding = feeds.iter().position(|feeds| *feeds == Some(index));
        for thread in [Some(index), feeding].into_iter().flatten() {
            let egress = stages.egress.iter_mut();
            egress.for_each(|stage| stage.excuse_by(&pauses[thread]));
        }
        if let Some(fabric) = &mut stages.fabric {
            fabric.excuse_by(&pauses);
        }
    }
    let workers = spread.into_iter().zip(feeds).enumerate();
    Ok(workers
        .map(|(index, (stages, feeds))| Worker {
            stages,
            wait,
            bell: Arc::clone(&bells[index]),
            pauses: Arc::clone(&pauses[index]),
            fed: feeds
                .filter(|_| wait != WaitMode::Spin)
                .map(|to| Arc::clone(&bells[to]))
                .into_iter()
                .collect(),
            all: bells.clone(),
            control: Arc::clone(control),
            inputs,
        })
        .collect())
}

impl Stages {
    fn of(ingress: Option<Ingress<AnyRx>>, egress: Option<Egress<AnyTx>>) -> Stages {
        Stages {
            ingress: ingress.into_iter().collect(),
            egress: egress.into_iter().collect(),
            fabric: None,
        }
    }
}
