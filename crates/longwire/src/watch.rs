//! Waits for the end of a live run; used by all commands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longwire_engine::Nanos;
use longwire_runtime::RunningNetwork;

use crate::report::ReplayLine;
use crate::{Error, Globals};

/// Interval between checks of a run.
const LOOK: Duration = Duration::from_millis(50);

/// Function that waits at most the given time, and returns whether the run has ended.
pub(crate) type Pause<'a> = &'a mut dyn FnMut(&RunningNetwork, Duration) -> Result<bool, Error>;

/// Waits until the run ends or `pause` returns true. Calls `look` after each pause; `look` returns
/// whether more work is pending.
///
/// # Errors
/// Any error of `pause`.
pub(crate) fn watch(
    running: &RunningNetwork,
    pause: Pause<'_>,
    mut look: impl FnMut() -> bool,
) -> Result<(), Error> {
    let mut wait = LOOK;
    while !pause(running, wait)? {
        wait = if look() { Duration::ZERO } else { LOOK };
        if running.ended() {
            break;
        }
    }
    Ok(())
}

/// Waits until a replay ends or a signal stops it; shows progress on a terminal.
///
/// # Errors
/// See [`watch`].
pub(crate) fn watch_replay(
    running: &RunningNetwork,
    stop: &AtomicBool,
    globals: &Globals,
) -> Result<(), Error> {
    let mut line = ReplayLine::new(globals);
    watch(running, &mut until_stopped(stop, None), || {
        line.announce_gap(running.gap_left());
        line.refresh(|| running.snapshot());
        false
    })?;
    line.clear();
    Ok(())
}

/// Returns a pause that ends the run on a signal, or `time` after the first pause.
pub(crate) fn until_stopped(
    stop: &AtomicBool,
    time: Option<Nanos>,
) -> impl FnMut(&RunningNetwork, Duration) -> Result<bool, Error> {
    let time = time.map(|time| Duration::from_nanos(time.as_nanos()));
    let mut started = None;
    move |running, pause| {
        let started = started.get_or_insert_with(Instant::now);
        let left = time.map_or(Duration::MAX, |time| time.saturating_sub(started.elapsed()));
        let stopped = || stop.load(Ordering::Relaxed);
        if left.is_zero() || stopped() {
            return Ok(true);
        }
        running.wait(left.min(pause));
        Ok(stopped())
    }
}
