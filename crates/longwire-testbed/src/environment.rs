//! The environment of `longwire exec`: networks of hosts, and the commands in them.

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

/// The networks, until dropped. Everything in them goes with it, also
/// when Longwire is killed.
#[derive(Debug)]
pub struct Environment {
    children: Children,
    relays: Vec<Relay>,
    /// The commands at hosts other than near.
    commands: Vec<(usize, OsString)>,
    networks: Networks,
    /// In the order of the hosts.
    mounts: Vec<Option<Mounts>>,
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
        let mut notes = Vec::new();
        let mounts = networks.all().iter().map(|network| {
            let made = Mounts::new(network, &networks.names(), config.uplink, &mut notes);
            if let Err(error) = &made {
                notes.push(format!(
                    "no mount namespace ({error}): the names near and far do not resolve; \
                     use $LONGWIRE_NEAR and $LONGWIRE_FAR"
                ));
            }
            made.ok()
        });
        let mounts = mounts.collect();
        networks.add_notes(notes);
        let uplink = if config.uplink {
            let [near, far] = [Side::Near, Side::Far].map(|side| networks.network(side));
            Some(Uplink::new(plan, near, far)?)
        } else {
            None
        };
        Ok(Environment {
            children: Children::new(signals),
            relays: Vec::new(),
            commands: Vec::new(),
            networks,
            mounts,
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

    /// The networks.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    fn place(&self, host: usize) -> Place<'_> {
        Place {
            network: &self.networks.all()[host],
            mounts: self.mounts[host].as_ref(),
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
        let mut variables = self.variables();
        let control = self.control.clone();
        variables.extend(control.map(|address| (CONTROL_VARIABLE, address)));
        let child = spawn::start(self.place(Side::Near.index()), words, &variables, None)?;
        self.children.set_command(child);
        Ok(())
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let names = self.networks.names().variables().into_iter();
        names.map(|(name, value)| (name, value.into())).collect()
    }

    /// Starts the peer's command in far, as [`Environment::spawn_at`] does.
    ///
    /// # Errors
    ///
    /// As [`Environment::spawn_at`].
    pub fn spawn_far(
        &mut self,
        command: &OsStr,
        output: PeerOutput,
        timeout: Duration,
    ) -> Result<bool, EnvironmentError> {
        self.spawn_at((Side::Far.index(), "peer: "), command, output, timeout)
    }

    /// Starts a command at a host other than near (they count from 0, near) with `sh -c`, in
    /// a separate process group and with an empty input, and waits until it is ready: until
    /// something there listens on TCP or is bound on UDP, or `timeout` is
    /// over ([`PEER_WAIT`] is a good one). Returns whether something listens.
    /// The host comes with the prefix of its lines on stderr.
    ///
    /// # Errors
    ///
    /// When the command fails before it is ready, and when Longwire is asked
    /// to stop meanwhile.
    pub fn spawn_at(
        &mut self,
        (host, prefix): (usize, &str),
        command: &OsStr,
        output: PeerOutput,
        timeout: Duration,
    ) -> Result<bool, EnvironmentError> {
        let words = ["sh".into(), "-c".into(), command.to_owned()];
        let variables = self.variables();
        let opened = output.open(prefix);
        let (streams, relay) = opened.map_err(|error| {
            EnvironmentError::system("open pipes for the peer's command", error)
        })?;
        self.relays.extend(relay);
        let child = spawn::start(self.place(host), &words, &variables, Some(streams))?;
        self.children.add_peer(host, child);
        self.commands.push((host, command.to_owned()));
        let mut sockets = SocketTables::open(&self.networks.all()[host])?;
        let end = Instant::now() + timeout;
        let mut look = LOOK_MIN;
        while !sockets.any_listens() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            match self.children.next(look.min(left)) {
                Some(Event::PeerEnded(host, status)) if !status.success() => {
                    let command = self.command_at(host);
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

    fn command_at(&self, host: usize) -> String {
        let mut commands = self.commands.iter();
        let found = commands.find(|(at, _)| *at == host);
        found.map_or_else(String::new, |(_, command)| {
            command.to_string_lossy().into_owned()
        })
    }

    /// Ends the commands: the one in near at once, the peers' with SIGTERM,
    /// and with SIGKILL if they go on. What a peer prints about being stopped
    /// is no news.
    pub fn end_commands(&mut self) {
        if self.children.peer_runs() {
            self.relays.iter_mut().for_each(Relay::discard_stderr);
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
        self.relays.clear();
    }
}
