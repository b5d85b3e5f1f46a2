//! Handlers of the signals that stop the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use longwire_runtime::shutdown;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::report::output::print_line;
use crate::rights;

/// Time for writing the report after the second signal.
const GRACE: Duration = Duration::from_secs(3);

/// Returns a flag that the first signal sets to end the run with its report. The second signal
/// abandons threads that do not end, and writes the report without them. The third signal, or the
/// end of `GRACE` after the second, ends the program immediately.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let thread = Builder::new().name("longwire-signals".to_owned());
    thread.spawn(move || {
        rights::give_up_for(None, &[]);
        for (before, _) in signals.forever().enumerate() {
            match before {
                0 => flag.store(true, Ordering::SeqCst),
                1 => hurry(),
                _ => shutdown::end_process("killed by a third signal"),
            }
        }
    })?;
    Ok(stop)
}

fn hurry() {
    shutdown::hurry();
    print_line(format_args!(
        "second signal; a third ends the program without a report"
    ));
    let thread = Builder::new().name("longwire-grace".to_owned());
    if thread.spawn(end_late).is_err() {
        end_late();
    }
}

fn end_late() {
    std::thread::sleep(GRACE);
    shutdown::end_process("did not stop in time after a second signal");
}
