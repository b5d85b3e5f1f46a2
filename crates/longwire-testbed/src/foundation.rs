//! The foundation of an environment: the steps that require a single-threaded process.

use longwire_io::net::record::restore_leftovers;
use nix::sys::signal::raise;

use crate::error::EnvironmentError;
use crate::forwarding;
use crate::guard::Guard;
use crate::supervise::{Signals, StopWatch};
use crate::user;

/// The privileges to create networks, the guard and the signals. Create it before anything that may
/// start threads, such as loading a plugin.
#[derive(Debug)]
pub struct Foundation {
    pub(crate) guard: Guard,
    pub(crate) signals: Signals,
}

impl Foundation {
    /// Acquires the privileges to create networks.
    ///
    /// Call before starting any thread. Without root privileges, the process enters a user
    /// namespace, which only a single-threaded process can do. This function also forks a small
    /// process that cleans up if this one is killed. From then on, SIGINT, SIGTERM, SIGHUP, SIGQUIT
    /// and SIGCHLD are blocked in all threads, including later ones.
    ///
    /// # Errors
    ///
    /// If the system does not allow user namespaces (the message names the setting), or an ordinary
    /// user requests an uplink.
    pub fn new(uplink: bool) -> Result<Foundation, EnvironmentError> {
        let as_root = user::has_rights();
        if uplink && !as_root {
            return Err(EnvironmentError::Uplink(
                "only root may connect the link to the host's network; run Longwire with sudo, or \
                 omit --uplink and run the other end with --peer"
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

    /// Lets stop signals terminate the process, as by default, until the returned value is dropped.
    /// Use this before any command runs, while a slow file or plugin may block the main thread.
    ///
    /// # Errors
    /// If the thread that waits for signals cannot be started.
    pub fn end_on_signal(&self) -> Result<StopWatch, EnvironmentError> {
        let watch = StopWatch::start(self.signals.clone(), |signal| {
            // Re-raise the signal, because shells check how a process ended.
            let _ = Signals::set().thread_unblock();
            let _ = raise(signal);
            let _ = Signals::set().thread_block();
        });
        watch.map_err(|error| {
            EnvironmentError::system("start a thread that waits for signals", error)
        })
    }
}
