//! Two networks with a gap between them, for a link to close.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use longwire_io::net::{NetError, NetNamespace};

use super::error::ExecError;
use super::foundation::Foundation;
use super::guard::Guard;
use super::mounts::Mounts;
use super::network::{self, Plan};
use super::peer_output::{PeerOutput, Relay};
use super::ready::SocketTables;
use super::silence;
use super::spawn::{self, Place};
use super::supervise::{Children, Event};
use super::uplink::Uplink;
use super::user;

/// The default time in which the peer's command begins to listen.
pub const PEER_WAIT: Duration = Duration::from_secs(2);
/// The interval between two looks at the peer's sockets grows from the first
/// to the second: a server in a script is ready at once, a slow one costs no
/// CPU time.
const LOOK_MIN: Duration = Duration::from_millis(2);
const LOOK_MAX: Duration = Duration::from_millis(50);

/// The variable in which `longwire ctl` looks for the control API.
const CONTROL_VARIABLE: &str = "LONGWIRE_CONTROL";

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end of the command.
    Near,
    /// The end of the peer's command.
    Far,
}

impl Side {
    /// Its name, which is also that of the emulator's device for it.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }

    /// The opposite end.
    pub const fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }

    /// The last byte of its addresses.
    pub(super) const fn number(self) -> u8 {
        match self {
            Side::Near => 1,
            Side::Far => 2,
        }
    }
}

/// The kind of the device `eth0` of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// One end of a veth pair; the emulator opens the other, named after the
    /// side, in the emulator's namespace.
    #[default]
    Veth,
    /// A TAP device; the emulator opens it by name, in the side's namespace.
    /// Needs `/dev/net/tun` to be open to the user.
    Tap,
}

/// The configuration of an environment.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentConfig {
    /// The kind of the devices.
    pub device: Device,
    /// The longest packet, in bytes without the Ethernet header.
    pub mtu: u32,
    /// Queues each way of every veth device. With one, all frames are where
    /// a single AF_XDP socket finds them.
    pub queues: u32,
    /// Connect far to the host's network. For root only.
    pub uplink: bool,
}

impl Default for EnvironmentConfig {
    fn default() -> EnvironmentConfig {
        EnvironmentConfig {
            device: Device::Veth,
            mtu: 1500,
            queues: 1,
            uplink: false,
        }
    }
}

/// The place in which the emulator opens the port of a side.
#[derive(Clone, Copy, Debug)]
pub struct PortPlace<'a> {
    /// The namespace to be in when opening it.
    pub namespace: &'a NetNamespace,
    /// The device's name there.
    pub device: &'static str,
}

/// The two networks, until dropped. Everything in them goes with it, also
/// when Longwire is killed.
#[derive(Debug)]
pub struct Environment {
    children: Children,
    relay: Option<Relay>,
    near: Place,
    far: Place,
    hub: NetNamespace,
    plan: Plan,
    device: Device,
    notes: Vec<String>,
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
    pub fn new(config: &EnvironmentConfig) -> Result<Environment, ExecError> {
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
    ) -> Result<Environment, ExecError> {
        let Foundation { mut guard, signals } = foundation;
        let plan = match config.uplink {
            true => Uplink::choose_plan()?,
            false => Plan::USUAL,
        };
        let hub = namespace(&mut guard)?;
        let mut notes = network::prepare_hub(&hub)?;
        let mut side = |side| -> Result<Place, ExecError> {
            let network = namespace(&mut guard)?;
            notes.extend(network::prepare_side(side, &network, &hub, plan, config)?);
            let mounts = Mounts::new(&network, &plan.names(), config.uplink, &mut notes);
            if let Err(error) = &mounts {
                notes.push(format!(
                    "no mount namespace ({error}): the names near and far do not resolve; \
                     use $LONGWIRE_NEAR and $LONGWIRE_FAR"
                ));
            }
            let mounts = mounts.ok();
            Ok(Place { network, mounts })
        };
        let (near, far) = (side(Side::Near)?, side(Side::Far)?);
        notes.sort();
        notes.dedup();
        let uplink = match config.uplink {
            true => Some(Uplink::new(plan, &near.network, &far.network)?),
            false => None,
        };
        Ok(Environment {
            children: Children::new(signals),
            relay: None,
            near,
            far,
            hub,
            plan,
            device: config.device,
            notes,
            control: None,
            uplink,
            guard,
        })
    }

    fn place(&self, side: Side) -> &Place {
        match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        }
    }

    /// Notes for the user: optional steps that failed, and choices.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let uplink = self.uplink.iter().map(Uplink::note);
        self.notes.iter().map(String::as_str).chain(uplink)
    }

    /// The place in which to open a side's port.
    pub fn port(&self, side: Side) -> PortPlace<'_> {
        match self.device {
            Device::Veth => PortPlace {
                namespace: &self.hub,
                device: side.name(),
            },
            Device::Tap => PortPlace {
                namespace: &self.place(side).network,
                device: network::DEVICE,
            },
        }
    }

    /// Waits until the kernel itself has nothing more to send. Call
    /// with both ports open, and discard what they have received by then:
    /// nothing but the commands' frames follows.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered.
    pub fn settle(&self) -> Result<(), ExecError> {
        if self.device == Device::Tap {
            // A TAP device has a carrier, and the kernel an IPv6 address on
            // it, once its port is open.
            for side in [Side::Near, Side::Far] {
                network::wait_running(self.network(side))?;
            }
        }
        silence::wait_for_silence([&self.near.network, &self.far.network])?;
        Ok(())
    }

    /// The network of a side, for threads that send or receive there. Its
    /// device is [`network::DEVICE`].
    pub fn network(&self, side: Side) -> &NetNamespace {
        &self.place(side).network
    }

    /// The addresses of both sides.
    pub fn plan(&self) -> Plan {
        self.plan
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
    /// [`ExecError::exit_code`] is then a shell's 127 or 126.
    pub fn spawn_near(&mut self, words: &[OsString]) -> Result<(), ExecError> {
        let names = self.plan.names().variables();
        let mut variables: Vec<_> = names.map(|(name, value)| (name, value.into())).into();
        let control = self.control.clone();
        variables.extend(control.map(|address| (CONTROL_VARIABLE, address)));
        let child = spawn::start(&self.near, words, &variables, None)?;
        self.children.set_command(child);
        Ok(())
    }

    /// Starts the peer's command in far with `sh -c`, in a process group of
    /// its own and with an empty input, and waits until it is ready: until
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
    ) -> Result<bool, ExecError> {
        let words = ["sh".into(), "-c".into(), command.to_owned()];
        let variables = self.plan.names().variables();
        let variables = variables.map(|(name, value)| (name, value.into()));
        let opened = output.open();
        let (streams, relay) = opened
            .map_err(|error| ExecError::system("open pipes for the peer's command", error))?;
        self.relay = relay;
        let child = spawn::start(&self.far, &words, &variables, Some(streams))?;
        self.children.set_peer(child);
        let mut sockets = SocketTables::open(&self.far.network)?;
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
                    return Err(ExecError::PeerEnded { command, status });
                }
                Some(Event::StopRequested(signal)) => return Err(ExecError::Stopped { signal }),
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

/// A new namespace whose processes the guard ends with us.
fn namespace(guard: &mut Guard) -> Result<NetNamespace, ExecError> {
    let namespace = NetNamespace::new().map_err(forbidden)?;
    guard.add(namespace.inode())?;
    Ok(namespace)
}

/// A refusal inside a user namespace has its own reasons.
fn forbidden(source: NetError) -> ExecError {
    ExecError::Forbidden {
        source,
        advice: user::advice(),
    }
}
