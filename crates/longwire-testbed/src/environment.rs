//! The environment of `longwire exec`: two networks, and the commands in them.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use crate::config::{EnvironmentConfig, Side};
use crate::error::EnvironmentError;
use crate::foundation::Foundation;
use crate::guard::Guard;
use crate::mounts::Mounts;
use crate::networks::{Networks, new_namespace};
use crate::peer_output::{PeerOutput, Relay};
use crate::plan::Plan;
use crate::ready::SocketTables;
use crate::spawn::{self, Place};
use crate::supervise::{Children, Event};
use crate::uplink::Uplink;

/// The default time in which the peer's command begins to listen.
pub const PEER_WAIT: Duration = Duration::from_secs(2);
/// The interval between two looks at the peer's sockets grows from the first
/// to the second: a server in a script is ready at once, a slow one costs no
/// CPU time.
const LOOK_MIN: Duration = Duration::from_millis(2);
const LOOK_MAX: Duration = Duration::from_millis(50);

/// The variable in which `longwire ctl` looks for the control API.
const CONTROL_VARIABLE: &str = "LONGWIRE_CONTROL";

/// The two networks, until dropped. Everything in them goes with it, also
/// when Longwire is killed.
#[derive(Debug)]
pub struct Environment {
    children: Children,
    relay: Option<Relay>,
    networks: Networks,
    near: Option<Mounts>,
    far: Option<Mounts>,
    /// For the command in near only.
    control: Option<OsString>,
    uplink: Option<Uplink>,
    // The last to go: it looks after what the others leave.
    guard: Guard,
}

impl Environment {
    /// Makes the networks. Call before any thread is started, as
    /// [`Foundation::new`], which this begins with.
    ///
    /// # Errors
    ///
    /// As of [`Foundation::new`] and [`Environment::on`].
    pub fn new(config: &EnvironmentConfig) -> Result<Environment, EnvironmentError> {
        Environment::on(Foundation::new(config.uplink)?, config)
    }

    /// Makes the networks. There may be threads by now. The uplink must be
    /// that of the foundation.
    ///
    /// # Errors
    ///
    /// When the system does not allow namespaces (the message says which
    /// setting stands in the way), and when an uplink is asked for and cannot
    /// be had.
    pub fn on(
        foundation: Foundation,
        config: &EnvironmentConfig,
    ) -> Result<Environment, EnvironmentError> {
        let Foundation { mut guard, signals } = foundation;
        let plan = if config.uplink {
            Uplink::choose_plan()?
        } else {
            Plan::USUAL
        };
        let mut networks = Networks::make(plan, config, || {
            let namespace = new_namespace()?;
            guard.add(namespace.inode())?;
            Ok(namespace)
        })?;
        let mut mounts = |side| {
            let names = plan.names();
            let made = networks.network(side);
            let mut notes = Vec::new();
            let made = Mounts::new(made, &names, config.uplink, &mut notes);
            if let Err(error) = &made {
                notes.push(format!(
                    "no mount namespace ({error}): the names near and far do not resolve; \
                     use $LONGWIRE_NEAR and $LONGWIRE_FAR"
                ));
            }
            networks.add_notes(notes);
            made.ok()
        };
        let (near, far) = (mounts(Side::Near), mounts(Side::Far));
        let uplink = if config.uplink {
            let [near, far] = [Side::Near, Side::Far].map(|side| networks.network(side));
            Some(Uplink::new(plan, near, far)?)
        } else {
            None
        };
        Ok(Environment {
            children: Children::new(signals),
            relay: None,
            networks,
            near,
            far,
            control: None,
            uplink,
            guard,
        })
    }

    /// Notes for the user: optional steps that failed, and choices.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let uplink = self.uplink.iter().map(Uplink::note);
        self.networks.notes().chain(uplink)
    }

    /// The two networks.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    fn place(&self, side: Side) -> Place<'_> {
        let mounts = match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        };
        Place {
            network: self.networks.network(side),
            mounts: mounts.as_ref(),
        }
    }

    /// The commands, for waiting.
    pub fn children(&mut self) -> &mut Children {
        &mut self.children
    }

    /// Sets where the command in near finds the control API.
    pub fn set_control(&mut self, address: Option<OsString>) {
        self.control = address;
    }

    /// Starts the command in near. Call from a thread that lives as long as
    /// the run, and once the link is up.
    ///
    /// # Errors
    ///
    /// When there is no such command, or it may not be run;
    /// [`EnvironmentError::exit_code`] is then a shell's 127 or 126.
    pub fn spawn_near(&mut self, words: &[OsString]) -> Result<(), EnvironmentError> {
        let names = self.networks.plan().names().variables();
        let mut variables: Vec<_> = names.map(|(name, value)| (name, value.into())).into();
        let control = self.control.clone();
        variables.extend(control.map(|address| (CONTROL_VARIABLE, address)));
        let child = spawn::start(self.place(Side::Near), words, &variables, None)?;
        self.children.set_command(child);
        Ok(())
    }

    /// Starts the peer's command in far with `sh -c`, in a separate process
    /// group and with an empty input, and waits until it is ready: until
    /// something in far listens on TCP or is bound on UDP, or `timeout` is
    /// over ([`PEER_WAIT`] is a good one). Returns whether something listens.
    ///
    /// # Errors
    ///
    /// When the command fails before it is ready, and when Longwire is asked
    /// to stop meanwhile.
    pub fn spawn_far(
        &mut self,
        command: &OsStr,
        output: PeerOutput,
        timeout: Duration,
    ) -> Result<bool, EnvironmentError> {
        let words = ["sh".into(), "-c".into(), command.to_owned()];
        let variables = self.networks.plan().names().variables();
        let variables = variables.map(|(name, value)| (name, value.into()));
        let opened = output.open();
        let (streams, relay) = opened.map_err(|error| {
            EnvironmentError::system("open pipes for the peer's command", error)
        })?;
        self.relay = relay;
        let child = spawn::start(self.place(Side::Far), &words, &variables, Some(streams))?;
        self.children.set_peer(child);
        let mut sockets = SocketTables::open(self.networks.network(Side::Far))?;
        let end = Instant::now() + timeout;
        let mut look = LOOK_MIN;
        while !sockets.any_listens() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            match self.children.next(look.min(left)) {
                Some(Event::PeerEnded(status)) if !status.success() => {
                    let command = command.to_string_lossy().into_owned();
                    return Err(EnvironmentError::PeerEnded { command, status });
                }
                Some(Event::StopRequested(signal)) => {
                    return Err(EnvironmentError::Stopped { signal });
                }
                _ => {}
            }
            look = (look * 3 / 2).min(LOOK_MAX);
        }
        Ok(true)
    }

    /// Ends the commands: the one in near at once, the peer's with SIGTERM,
    /// and with SIGKILL if it goes on. What a peer prints about being stopped
    /// is no news.
    pub fn end_commands(&mut self) {
        if self.children.peer_runs()
            && let Some(relay) = &mut self.relay
        {
            relay.discard_stderr();
        }
        self.children.end_all();
    }

    /// Ends the commands and removes everything, and waits until that is
    /// done. Dropping does the same.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.end_commands();
        self.uplink = None;
        self.guard.finish();
        // All its writers are gone.
        self.relay = None;
    }
}
