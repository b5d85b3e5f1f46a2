//! The environment of `longwire exec`: host networks, and the commands in them.

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

/// Default time limit for the peer's command to start listening.
pub const PEER_WAIT: Duration = Duration::from_secs(2);
/// Polling interval for the peer's sockets. It grows from minimum to maximum, so that a quick
/// server is detected immediately, but waiting for a slow one takes little CPU time.
const POLL_MIN: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(50);

/// Environment variable with the address of the control API, for `longwire ctl`.
const CONTROL_VARIABLE: &str = "LONGWIRE_CONTROL";

/// Host networks and their commands, removed on drop, or by the guard if Longwire is killed.
#[derive(Debug)]
pub struct Environment {
    children: Children,
    relays: Vec<Relay>,
    /// Commands at hosts other than near.
    commands: Vec<(usize, OsString)>,
    networks: Networks,
    /// Indexed by host.
    mounts: Vec<Option<Mounts>>,
    /// Address of the control API, passed to the near command.
    control: Option<OsString>,
    uplink: Option<Uplink>,
    // Dropped last, to clean up after the other fields.
    guard: Guard,
}

impl Environment {
    /// Creates the networks on a foundation. Unlike for [`Foundation::new`], other threads may
    /// already exist. The uplink setting must match the foundation's.
    ///
    /// # Errors
    ///
    /// If the system does not allow namespaces (the message names the setting), or a requested
    /// uplink is not available.
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
                    "no mount namespace ({error}), so the names near and far do not resolve; use \
                     $LONGWIRE_NEAR and $LONGWIRE_FAR"
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

    /// Returns notes for the user about failed optional steps and automatic choices.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let uplink = self.uplink.iter().map(Uplink::note);
        self.networks.notes().chain(uplink)
    }

    /// Returns the host networks.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    fn place(&self, host: usize) -> Place<'_> {
        Place {
            network: &self.networks.all()[host],
            mounts: self.mounts[host].as_ref(),
        }
    }

    /// Returns the commands, to wait for their events.
    pub fn children(&mut self) -> &mut Children {
        &mut self.children
    }

    /// Sets the address of the control API for the command in near.
    pub fn set_control(&mut self, address: Option<OsString>) {
        self.control = address;
    }

    /// Starts the near command. Call once the link is up, from a thread that lasts for the whole
    /// run.
    ///
    /// # Errors
    ///
    /// If the command does not exist or is not executable; [`EnvironmentError::exit_code`] is then
    /// 127 or 126, like a shell's.
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

    /// Starts the peer's command in far; see [`Environment::spawn_at`].
    ///
    /// # Errors
    ///
    /// See [`Environment::spawn_at`].
    pub fn spawn_far(
        &mut self,
        command: &OsStr,
        output: PeerOutput,
        timeout: Duration,
    ) -> Result<bool, EnvironmentError> {
        self.spawn_at((Side::Far.index(), "peer: "), command, output, timeout)
    }

    /// Starts a command with `sh -c` on a host other than near (host 0), in its own process group
    /// and with an empty stdin. Waits until a socket of the host listens on TCP or is bound on UDP,
    /// or until `timeout` expires; [`PEER_WAIT`] is a good value. Returns whether such a socket
    /// exists. `prefix` precedes the command's lines on stderr.
    ///
    /// # Errors
    ///
    /// If the command fails before it is ready, or Longwire is stopped during the wait.
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
        let mut look = POLL_MIN;
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
            look = (look * 3 / 2).min(POLL_MAX);
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

    /// Ends the commands: near immediately, peers with SIGTERM and then SIGKILL. Discards any
    /// stderr output of peers after SIGTERM.
    pub fn end_commands(&mut self) {
        if self.children.peer_runs() {
            self.relays.iter_mut().for_each(Relay::discard_stderr);
        }
        self.children.end_all();
    }

    /// Ends the commands and removes everything, as on drop, and waits for completion.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.end_commands();
        self.uplink = None;
        self.guard.finish();
        // All writers have been closed.
        self.relays.clear();
    }
}
