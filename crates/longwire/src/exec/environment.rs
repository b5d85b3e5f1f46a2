//! Two networks with a gap between them, for a link to close.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use longwire_io::net::{NetError, NetNamespace};

use super::error::ExecError;
use super::forwarding;
use super::guard::Guard;
use super::mounts::Mounts;
use super::network::{self, Plan};
use super::ready;
use super::spawn::{self, Place};
use super::supervise::{Children, Event, Signals};
use super::uplink::Uplink;
use super::user;

/// How long the peer's command may take until something listens.
pub const PEER_WAIT: Duration = Duration::from_secs(2);
/// How often that is looked at.
const PEER_LOOK: Duration = Duration::from_millis(5);

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the command runs.
    Near,
    /// Where the peer's command runs.
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

    /// The last byte of its addresses.
    pub(super) const fn number(self) -> u8 {
        match self {
            Side::Near => 1,
            Side::Far => 2,
        }
    }
}

/// What the device `eth0` of each side is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// One end of a veth pair; the emulator opens the other, named after the
    /// side, in a namespace of its own.
    #[default]
    Veth,
    /// A TAP device; the emulator opens it by name, in the side's namespace.
    /// Needs `/dev/net/tun` to be open to the user.
    Tap,
}

/// What to make.
#[derive(Clone, Copy, Debug)]
pub struct EnvironmentConfig {
    /// What the devices are.
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

/// Where the emulator opens the port of a side.
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
    near: Place,
    far: Place,
    hub: NetNamespace,
    plan: Plan,
    device: Device,
    notes: Vec<String>,
    uplink: Option<Uplink>,
    // The last to go: it looks after what the others leave.
    guard: Guard,
}

impl Environment {
    /// Makes the networks.
    ///
    /// Call before any thread is started: without root's rights the process
    /// moves into a user namespace, which it can only do alone, and a small
    /// process is forked that cleans up should this one be killed. From here
    /// on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of this process arrive
    /// as [`Event`]s only.
    ///
    /// # Errors
    ///
    /// When the system does not allow namespaces (the message says which
    /// setting stands in the way), and when an uplink is asked for and cannot
    /// be had.
    pub fn new(config: &EnvironmentConfig) -> Result<Environment, ExecError> {
        let as_root = user::has_rights();
        if config.uplink && !as_root {
            return Err(ExecError::Uplink(
                "only root may connect the link to the host's network; run Longwire with sudo, \
                 or leave --uplink out and run the other end with --peer"
                    .into(),
            ));
        }
        if as_root {
            forwarding::release_stale();
        } else {
            user::enter_user_namespace()?;
        }
        let mut guard = Guard::start()?;
        let signals = Signals::take()?;
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
            near,
            far,
            hub,
            plan,
            device: config.device,
            notes,
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

    /// What could not be done and can be done without, and what was chosen,
    /// in sentences.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let uplink = self.uplink.iter().map(Uplink::note);
        self.notes.iter().map(String::as_str).chain(uplink)
    }

    /// Where to open a side's port.
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

    /// Starts the command in near. Call from a thread that lives as long as
    /// the run, and once the link is up.
    ///
    /// # Errors
    ///
    /// When there is no such command, or it may not be run;
    /// [`ExecError::exit_code`] is then a shell's 127 or 126.
    pub fn spawn_near(&mut self, words: &[OsString]) -> Result<(), ExecError> {
        let variables = self.plan.names().variables();
        let child = spawn::start(&self.near, words, &variables, false)?;
        self.children.set_command(child);
        Ok(())
    }

    /// Starts the peer's command in far with `sh -c`, in a process group of
    /// its own, and waits until it is ready: until something in far listens
    /// on TCP or is bound on UDP, or the command has ended with 0 (it went to
    /// the background), or `patience` is over ([`PEER_WAIT`] is a good one).
    /// Returns whether something listens.
    ///
    /// # Errors
    ///
    /// When the command fails before it is ready, and when Longwire is asked
    /// to stop meanwhile.
    pub fn spawn_far(&mut self, command: &OsStr, patience: Duration) -> Result<bool, ExecError> {
        let words = ["sh".into(), "-c".into(), command.to_owned()];
        let variables = self.plan.names().variables();
        let child = spawn::start(&self.far, &words, &variables, true)?;
        self.children.set_peer(child);
        let end = Instant::now() + patience;
        loop {
            if ready::listens(&self.far.network) {
                return Ok(true);
            }
            match self.children.next(PEER_LOOK) {
                Some(Event::PeerEnded(status)) if !status.success() => {
                    let command = command.to_string_lossy().into_owned();
                    return Err(ExecError::PeerEnded { command, status });
                }
                Some(Event::StopRequested(signal)) => return Err(ExecError::Stopped { signal }),
                _ => {}
            }
            if Instant::now() >= end {
                return Ok(false);
            }
        }
    }

    /// Ends the commands and removes everything, and waits until that is
    /// done. Dropping does the same.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.children.end_all();
        self.uplink = None;
        self.guard.finish();
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
