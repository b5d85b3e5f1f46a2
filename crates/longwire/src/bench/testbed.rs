//! Testbed of the benches: two hosts and the emulator, each in a separate network namespace.

use longwire_engine::LinkConfig;
use longwire_io::net::NetNamespace;
use longwire_runtime::{DIRECTIONS, LinkSetup, NetworkPlan, RunConfig, RunningNetwork, start};
use longwire_testbed::{
    EnvironmentConfig, EnvironmentError, Networks, Plan, Side, direct_networks,
};
use longwire_traffic::sockets::{Host, Path};

use crate::Error;

/// Two hosts, joined by a veth pair or by the emulator.
#[derive(Debug)]
pub enum Testbed {
    /// Joined by a veth pair.
    Bare([NetNamespace; 2]),
    /// Each host has a veth pair to the emulator.
    Emulated(Networks),
}

impl Testbed {
    /// Returns two hosts joined by a veth pair: the baseline of the machine.
    ///
    /// # Errors
    /// If namespaces or devices cannot be created.
    pub fn bare() -> Result<Testbed, EnvironmentError> {
        direct_networks().map(Testbed::Bare)
    }

    /// Returns two hosts, each with a veth pair to the emulator.
    ///
    /// # Errors
    /// If namespaces or devices cannot be created.
    pub fn emulated() -> Result<Testbed, EnvironmentError> {
        Networks::new(&EnvironmentConfig::default()).map(Testbed::Emulated)
    }

    /// Returns the path from the near host to the far one.
    pub fn path(&self) -> Path<'_> {
        let host = |side| Host {
            namespace: match (self, side) {
                (Testbed::Bare([near, _]), Side::Near) => near,
                (Testbed::Bare([_, far]), Side::Far) => far,
                (Testbed::Emulated(networks), side) => networks.network(side),
            },
            address: Plan::USUAL.v4_of(side),
        };
        Path {
            from: host(Side::Near),
            to: host(Side::Far),
        }
    }

    /// Starts a link between the hosts, with ports of the given kind.
    ///
    /// # Errors
    /// If the testbed has no emulator, or the ports or the link cannot be started.
    pub fn start(
        &self,
        kind: &str,
        up: LinkConfig,
        down: LinkConfig,
        config: RunConfig,
    ) -> Result<RunningNetwork, Error> {
        let Testbed::Emulated(networks) = self else {
            return Err(Error::failed("no emulator between these hosts"));
        };
        let (near, far) = networks.open_ports(kind)?;
        let up = LinkSetup::new(DIRECTIONS[0], up);
        let down = Some(LinkSetup::new(DIRECTIONS[1], down));
        start(NetworkPlan::link(near, far, up, down), config, None).map_err(Error::failed)
    }
}
