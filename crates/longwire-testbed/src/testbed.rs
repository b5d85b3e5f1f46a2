//! A link between two sockets of a test.

use std::time::Duration;

use longwire_engine::Nanos;
use longwire_runtime::{DIRECTIONS, Faults, LinkSetup, NetworkPlan, RunConfig, start};

use crate::config::{EnvironmentConfig, Side};
use crate::link_text::DuplexOptions;
use crate::networks::Networks;
use crate::running::RunningTestbed;
use crate::testbed_error::TestbedError;
use crate::user;

/// Kind of port on the emulator's devices; needs only packet sockets.
const PORT_KIND: &str = "packet";

/// Configuration of two networks and the link between them.
///
/// The link is written as `NAME=VALUE` pairs separated by blanks. Names and values are the options
/// of `longwire exec` without the two hyphens: `rate=10mbit delay=20ms,4ms loss=1%`. By default, a
/// link has no delay, loss or rate limit.
#[derive(Clone, Debug)]
pub struct Testbed {
    options: DuplexOptions,
    run: RunConfig,
}

impl Testbed {
    /// Describes a link that is the same in both directions. Names prefixed with `up-` or `down-`
    /// apply to one direction: `up-rate=2mbit`. `preset=lte` selects a link by name.
    ///
    /// # Errors
    ///
    /// If a word is not `NAME=VALUE`, a name is unknown or repeated, or a value is invalid.
    pub fn link(text: &str) -> Result<Testbed, TestbedError> {
        let mut options = DuplexOptions::default();
        options.set(None, text)?;
        Ok(Testbed {
            options,
            run: RunConfig::default(),
        })
    }

    /// Changes the direction from near to far.
    ///
    /// # Errors
    ///
    /// See [`Testbed::link`].
    pub fn up(mut self, text: &str) -> Result<Testbed, TestbedError> {
        self.options.set(Some(Side::Near), text)?;
        Ok(self)
    }

    /// Changes the direction from far to near.
    ///
    /// # Errors
    ///
    /// See [`Testbed::link`].
    pub fn down(mut self, text: &str) -> Result<Testbed, TestbedError> {
        self.options.set(Some(Side::Far), text)?;
        Ok(self)
    }

    /// Sets the seed of all random numbers, 1 by default. With the same seed, the same packets are
    /// lost.
    pub fn seed(mut self, seed: u64) -> Testbed {
        self.run.seed = seed;
        self
    }

    /// Sets the lateness above which a packet counts as an artifact, 1 ms by default. Tests on a
    /// shared machine may allow more.
    pub fn tolerance(mut self, tolerance: Duration) -> Testbed {
        let nanos = u64::try_from(tolerance.as_nanos()).unwrap_or(u64::MAX);
        self.run.tolerance = Nanos::from_nanos(nanos);
        self
    }

    /// Creates the networks and starts the link in threads of this process. The threads request a
    /// higher priority and locked memory; the report notes refusals.
    ///
    /// # Errors
    ///
    /// If the process lacks the capabilities CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and
    /// CAP_SYS_CHROOT ([`TestbedError::is_unprivileged`]), a plugin cannot be loaded, or the system
    /// lacks memory or threads.
    pub fn start(mut self) -> Result<RunningTestbed, TestbedError> {
        let faults = Faults::new();
        let [mut up, mut down] = self.options.links(&faults)?;
        self.run.faults = faults;
        if !user::has_rights() {
            return Err(TestbedError::Unprivileged);
        }
        let mtus = [&up, &down].into_iter().filter_map(|link| link.mtu.bytes());
        let networks = Networks::new(&EnvironmentConfig::with_room_for(mtus))?;
        let (near, far) = networks.open_ports(PORT_KIND)?;
        let plan = networks.plan();
        for link in [&mut up, &mut down] {
            link.router = link.router.map(|router| plan.address_router(router, 0));
        }
        let (up, down) = (
            LinkSetup::new(DIRECTIONS[0], up),
            LinkSetup::new(DIRECTIONS[1], down),
        );
        let plan = NetworkPlan::link(near, far, up, Some(down));
        let running = start(plan, self.run, None)?;
        RunningTestbed::new(networks, running)
    }
}
