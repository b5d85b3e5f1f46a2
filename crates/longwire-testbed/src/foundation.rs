//! The foundation of an environment: what only a process with a single thread
//! can do.

use longwire_io::net::record::restore_leftovers;
use nix::sys::signal::raise;

use crate::error::EnvironmentError;
use crate::forwarding;
use crate::guard::Guard;
use crate::supervise::{Signals, StopWatch};
use crate::user;

/// The rights to make networks, the guard, and the signals. All that may start
/// threads, as loading a plugin does, comes after it.
#[derive(Debug)]
pub struct Foundation {
    pub(crate) guard: Guard,
    pub(crate) signals: Signals,
}

impl Foundation {
    /// Gets the rights to make networks.
    ///
    /// Call before any thread is started: without root's rights the process
    /// moves into a user namespace, which it can only do alone, and a small
    /// process is forked that cleans up should this one be killed. From here
    /// on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD are blocked, in all
    /// threads that are started later, too.
    ///
    /// # Errors
    ///
    /// When the system does not allow user namespaces (the message says which
    /// setting stands in the way), and when an ordinary user asks for an uplink.
    pub fn new(uplink: bool) -> Result<Foundation, EnvironmentError> {
        let as_root = user::has_rights();
        if uplink && !as_root {
            return Err(EnvironmentError::Uplink(
                "only root may connect the link to the host's network; run Longwire with sudo, \
                 or leave --uplink out and run the other end with --peer"
                    .into(),
            ));
        }
        if as_root {
            forwarding::release_stale();
            restore_leftovers();
        } else {
            user::enter_user_namespace()?;
        }
        Ok(Foundation {
            guard: Guard::start()?,
            signals: Signals::take()?,
        })
    }

    /// Has signals to stop end the process, as they do by default, until what
    /// is returned is dropped: nothing runs yet, and a slow file or plugin may
    /// keep the main thread.
    ///
    /// # Errors
    /// If the thread that waits for signals cannot be started.
    pub fn end_on_signal(&self) -> Result<StopWatch, EnvironmentError> {
        let watch = StopWatch::start(self.signals.clone(), |signal| {
            // The process then ends by the signal itself, which shells look at.
            let _ = Signals::set().thread_unblock();
            let _ = raise(signal);
            let _ = Signals::set().thread_block();
        });
        watch.map_err(|error| {
            EnvironmentError::system("start a thread that waits for signals", error)
        })
    }
}
