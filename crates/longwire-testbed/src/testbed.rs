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

/// The kind of port on the emulator's devices. It needs nothing of the kernel
/// but packet sockets.
const PORT_KIND: &str = "packet";

/// Configuration of two networks and the link between them.
///
/// The link is written as `NAME=VALUE` pairs with blanks between them. Names
/// and values are those of the options of `longwire exec`, without the two
/// hyphens: `rate=10mbit delay=20ms,4ms loss=1%`. What is left out is as on a
/// wire: no delay, no loss, no limit of the rate.
#[derive(Clone, Debug)]
pub struct Testbed {
    options: DuplexOptions,
    run: RunConfig,
}

impl Testbed {
    /// Describes a link, both directions alike. A name with `up-` or `down-` in
    /// front is one direction's, as in `up-rate=2mbit`, and `preset=lte` is a
    /// link by its name.
    ///
    /// # Errors
    ///
    /// A word that is not `NAME=VALUE`, a name that is unknown or given twice, and a
    /// value that is refused.
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
    /// As of [`Testbed::link`].
    pub fn up(mut self, text: &str) -> Result<Testbed, TestbedError> {
        self.options.set(Some(Side::Near), text)?;
        Ok(self)
    }

    /// Changes the direction from far to near.
    ///
    /// # Errors
    ///
    /// As of [`Testbed::link`].
    pub fn down(mut self, text: &str) -> Result<Testbed, TestbedError> {
        self.options.set(Some(Side::Far), text)?;
        Ok(self)
    }

    /// Sets the seed of all random draws; 1 without it. With the same seed,
    /// the same packets are lost.
    pub fn seed(mut self, seed: u64) -> Testbed {
        self.run.seed = seed;
        self
    }

    /// Sets how late a packet may leave the link before it counts as an
    /// artifact; 1 ms without it. A test on a shared machine may allow more.
    pub fn tolerance(mut self, tolerance: Duration) -> Testbed {
        let nanos = u64::try_from(tolerance.as_nanos()).unwrap_or(u64::MAX);
        self.run.tolerance = Nanos::from_nanos(nanos);
        self
    }

    /// Makes the networks and starts the link, in threads of this process.
    /// They ask for a higher priority and for locked memory, which the report
    /// notes where it is refused.
    ///
    /// # Errors
    ///
    /// Without the capabilities CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and
    /// CAP_SYS_CHROOT ([`TestbedError::is_unprivileged`]); with a plugin that cannot
    /// be loaded; and when the system lacks memory or threads.
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
