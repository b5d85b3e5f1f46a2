//! Placement of stages on threads and cores.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Placement, WaitMode};
use crate::crossing::{self, FAR};
use crate::host;
use crate::thread::{Bell, Control, Stages, Worker};
use crate::witness::PauseHistory;

/// A chosen placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    placement: Placement,
    cores: usize,
    spins: bool,
    /// The core of each stage if there are more cores than stages: first one direction's receiver
    /// and sender, then the other's.
    stages: Option<[usize; STAGES]>,
    /// Cache-line latency between a direction's stages, if it is high.
    far: Option<Duration>,
}

/// Number of stages: two directions with two stages each.
const STAGES: usize = 4;

impl Layout {
    /// Chooses the placement. With a core per stage, each stage has a thread; with further cores,
    /// the stages are pinned, those of one direction to near cores. With fewer cores, one thread
    /// runs all stages and leaves the other cores to the programs under test.
    pub fn choose(asked: Placement, wait: WaitMode) -> Layout {
        Layout::choose_on(&host::allowed_cores(), asked, wait, crossing::between)
    }

    /// Like [`Layout::choose`], for these cores and this latency measurement.
    fn choose_on(
        cores: &[usize],
        asked: Placement,
        wait: WaitMode,
        crossing: impl Fn(usize, usize) -> Option<Duration>,
    ) -> Layout {
        let placement = match asked {
            Placement::Auto if cores.len() >= STAGES => Placement::PerStage,
            Placement::Auto => Placement::Together,
            given => given,
        };
        let spins = wait == WaitMode::Spin;
        let has_own = placement == Placement::PerStage && cores.len() > STAGES;
        let last = cores.last_chunk::<STAGES>().filter(|_| has_own);
        let near = last.map(|last| near_pairs(*last, crossing));
        Layout {
            placement,
            cores: cores.len(),
            spins,
            stages: near.map(|(cores, _)| cores),
            far: near.and_then(|(_, time)| time).filter(|time| *time > FAR),
        }
    }

    /// Returns the placement of a single group of stages: a thread per stage, or one thread.
    pub fn of_one_group(mut self) -> Layout {
        if self.placement == Placement::PerDirection {
            self.placement = Placement::PerStage;
        }
        self
    }

    /// Returns a description, in one sentence.
    pub fn describe(self) -> String {
        let how = match self.placement {
            Placement::PerStage => "one thread per stage",
            Placement::PerDirection => "one thread per direction",
            Placement::Together | Placement::Auto => "one thread for all stages",
        };
        let far = self.far.map(|time| {
            let time = time.as_nanos();
            format!("; a cache line takes {time} ns between the stages of a direction")
        });
        format!(
            "placement: {how} ({} cores{})",
            self.cores,
            far.unwrap_or_default()
        )
    }

    /// Returns the core to which to pin a thread. Threads are pinned if there are more cores than
    /// stages, or if threads never sleep and leave a core free. Otherwise, the scheduler makes the
    /// better choice.
    pub fn core_of(self, thread: usize) -> Option<usize> {
        if let Some(stages) = self.stages {
            return stages.get(thread).copied();
        }
        let threads = match self.placement {
            Placement::PerStage => STAGES,
            Placement::PerDirection => 2,
            Placement::Together | Placement::Auto => 1,
        };
        (self.spins && self.cores > threads)
            .then(|| host::allowed_cores().into_iter().nth_back(thread))
            .flatten()
    }
}

/// Splits four cores into two pairs whose higher cache-line latency is at most [`FAR`], if
/// possible, and returns them with that latency; otherwise minimizes it. Keeps the order if busy
/// cores prevent the measurement.
fn near_pairs(
    [a, b, c, d]: [usize; STAGES],
    crossing: impl Fn(usize, usize) -> Option<Duration>,
) -> ([usize; STAGES], Option<Duration>) {
    let slower = |[a, b, c, d]: [usize; STAGES]| Some(crossing(a, b)?.max(crossing(c, d)?));
    let mut best = ([d, c, b, a], slower([d, c, b, a]));
    for pairs in [[d, b, c, a], [d, a, c, b]] {
        if best.1.is_none_or(|time| time <= FAR) {
            break;
        }
        if let Some(time) = slower(pairs)
            && Some(time) < best.1
        {
            best = (pairs, Some(time));
        }
    }
    best
}

/// Builds the workers from groups of stages that share lines, such as the stages of one direction.
pub(crate) fn workers(
    groups: Vec<Stages>,
    layout: Layout,
    wait: WaitMode,
    control: &Arc<Control>,
) -> Result<Vec<Worker>, nix::Error> {
    let mut spread: Vec<Stages> = Vec::new();
    for Stages { ingress, outputs } in groups {
        match (layout.placement, spread.first_mut()) {
            // A thread without outputs feeds the next one.
            (Placement::PerStage, _) => {
                let (receiving, sending) = (Stages::default(), Stages::default());
                spread.push(Stages {
                    ingress,
                    ..receiving
                });
                spread.push(Stages { outputs, ..sending });
            }
            (Placement::Together | Placement::Auto, Some(first)) => {
                first.ingress.extend(ingress);
                first.outputs.extend(outputs);
            }
            _ => spread.push(Stages { ingress, outputs }),
        }
    }
    let bells = spread.iter().map(|_| Bell::new().map(Arc::new));
    let bells: Vec<Arc<Bell>> = bells.collect::<Result<_, _>>()?;
    let inputs = spread.iter().filter(|stages| !stages.ingress.is_empty());
    let inputs = inputs.count() as u64;
    let pauses: Vec<Arc<PauseHistory>> = spread.iter().map(|_| Arc::default()).collect();
    control.count_pauses(&pauses);
    for (index, stages) in spread.iter_mut().enumerate() {
        // A pause of either the sending or the receiving thread makes frames late.
        let feeding = index.checked_sub(1).filter(|_| stages.ingress.is_empty());
        for thread in [Some(index), feeding].into_iter().flatten() {
            let outputs = stages.outputs.iter_mut();
            outputs.for_each(|output| output.excuse_by(&pauses[thread]));
        }
    }
    let workers = spread.into_iter().enumerate().map(|(index, stages)| {
        let feeds = stages.outputs.is_empty() && wait != WaitMode::Spin;
        Worker {
            stages,
            wait,
            bell: Arc::clone(&bells[index]),
            pauses: Arc::clone(&pauses[index]),
            fed: feeds.then(|| Arc::clone(&bells[index + 1])),
            all: bells.clone(),
            control: Arc::clone(control),
            inputs,
        }
    });
    Ok(workers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the layout for cores with this latency in nanoseconds.
    fn chosen(cores: usize, nanos: impl Fn(usize, usize) -> Option<u64>) -> Layout {
        let cores: Vec<usize> = (0..cores).collect();
        let time = |one, other| nanos(one, other).map(Duration::from_nanos);
        Layout::choose_on(&cores, Placement::Auto, WaitMode::Adaptive, time)
    }

    fn cores_of(layout: Layout) -> Vec<Option<usize>> {
        (0..5).map(|thread| layout.core_of(thread)).collect()
    }

    #[test]
    fn the_stages_of_a_direction_are_near_each_other() {
        let near = chosen(5, |_, _| Some(60));
        assert_eq!(
            cores_of(near),
            [Some(4), Some(3), Some(2), Some(1), None],
            "the first core is left to others"
        );
        assert_eq!(near.describe(), "placement: one thread per stage (5 cores)");
        // Odd cores share a cache, and so do even cores.
        let alternating = |one: usize, other: usize| Some([60, 210][(one + other) % 2]);
        let layout = chosen(5, alternating);
        assert_eq!(cores_of(layout), [Some(4), Some(2), Some(3), Some(1), None]);
        assert_eq!(layout.far, None);
        // Outer cores share a cache, and so do inner cores.
        let nested = |one: usize, other: usize| Some([60, 210][usize::from(one + other != 5)]);
        assert_eq!(
            cores_of(chosen(5, nested)),
            [Some(4), Some(1), Some(3), Some(2), None]
        );
    }

    #[test]
    fn cores_that_are_all_far_are_named_and_busy_ones_are_not_measured() {
        let far = chosen(8, |one, _| Some(200 + one as u64));
        assert_eq!(far.stages, Some([7, 6, 5, 4]));
        assert_eq!(
            far.describe(),
            "placement: one thread per stage (8 cores; a cache line takes 207 ns between the stages \
             of a direction)"
        );
        let busy = chosen(8, |_, _| None);
        assert_eq!((busy.stages, busy.far), (Some([7, 6, 5, 4]), None));
    }

    #[test]
    fn few_cores_and_other_placements_are_not_measured() {
        let unmeasured = |_, _| -> Option<u64> { panic!("measured") };
        let few = chosen(3, unmeasured);
        assert_eq!(few.placement, Placement::Together);
        assert_eq!(few.core_of(0), None);
        let four = chosen(4, unmeasured);
        assert_eq!((four.placement, four.stages), (Placement::PerStage, None));
        let measured = |_, _| -> Option<Duration> { panic!("measured") };
        for asked in [Placement::PerDirection, Placement::Together] {
            let cores: Vec<usize> = (0..8).collect();
            let layout = Layout::choose_on(&cores, asked, WaitMode::Adaptive, measured);
            assert_eq!(layout.placement, asked);
        }
    }
}
