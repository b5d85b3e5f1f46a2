//! Where links are measured: two hosts and the emulator, each in a network
//! namespace of its own that nothing else shares.

use std::net::{IpAddr, Ipv4Addr};

use longwire_engine::LinkConfig;
use longwire_io::net::{NetError, NetNamespace, addr_add, link_up, veth};
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_runtime::{LinkSetup, RunConfig, Running};

use crate::Error;
use crate::traffic::{Host, Path};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX_LEN: u8 = 24;
const MTU: u32 = 1500;

/// Two hosts; between them a veth pair, or the emulator.
#[derive(Debug)]
pub struct Testbed {
    near: NetNamespace,
    far: NetNamespace,
    /// Where the emulator's ends of the hosts' devices are.
    middle: Option<NetNamespace>,
}

impl Testbed {
    /// Two hosts joined by nothing but a veth pair: what the machine itself
    /// can do.
    pub fn bare() -> Result<Testbed, NetError> {
        let (near, far) = (NetNamespace::new()?, NetNamespace::new()?);
        let pair = veth::VethConfig {
            a: end("eth0", &near),
            b: end("eth0", &far),
        };
        near.run(|| veth::create(&pair))??;
        Testbed {
            near,
            far,
            middle: None,
        }
        .with_addresses()
    }

    /// Two hosts, each with a veth pair to the emulator.
    pub fn emulated() -> Result<Testbed, NetError> {
        let (near, far, middle) = (
            NetNamespace::new()?,
            NetNamespace::new()?,
            NetNamespace::new()?,
        );
        for (name, host) in [("near", &near), ("far", &far)] {
            let pair = veth::VethConfig {
                a: end("eth0", host),
                b: end(name, &middle),
            };
            middle.run(|| veth::create(&pair).and_then(|()| link_up(name)))??;
        }
        Testbed {
            near,
            far,
            middle: Some(middle),
        }
        .with_addresses()
    }

    fn with_addresses(self) -> Result<Testbed, NetError> {
        for (host, address) in [(&self.near, NEAR), (&self.far, FAR)] {
            host.run(|| {
                link_up("lo")?;
                addr_add("eth0", IpAddr::V4(address), PREFIX_LEN)?;
                link_up("eth0")
            })??;
        }
        Ok(self)
    }

    /// From the near host to the far one.
    pub fn path(&self) -> Path<'_> {
        Path {
            from: Host {
                namespace: &self.near,
                address: NEAR,
            },
            to: Host {
                namespace: &self.far,
                address: FAR,
            },
        }
    }

    /// Starts a link between the hosts, through ports of this kind.
    pub fn start(
        &self,
        kind: &str,
        up: LinkConfig,
        down: LinkConfig,
        config: RunConfig,
    ) -> Result<Running, Error> {
        let Some(middle) = &self.middle else {
            return Err(Error::Failed(
                "there is no emulator between these hosts".to_owned(),
            ));
        };
        let options = OpenOptions::default();
        let open = |name: &str| registry::open(&format!("{kind}:{name}"), &options);
        let ports = middle
            .run(|| open("near").and_then(|near| open("far").map(|far| (near, far))))
            .map_err(|error| Error::Failed(error.to_string()))?;
        let (near, far) = ports?;
        let setup = |name: &str, config| LinkSetup {
            name: name.to_owned(),
            config,
        };
        let (up, down) = (setup("up", up), setup("down", down));
        longwire_runtime::start(near, far, up, Some(down), config)
            .map_err(|error| Error::Failed(error.to_string()))
    }
}

fn end<'a>(name: &'a str, namespace: &'a NetNamespace) -> veth::End<'a> {
    veth::End {
        name,
        namespace: Some(namespace),
        mtu: Some(MTU),
        queues: Some(1),
        ..veth::End::default()
    }
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Error {
        Error::Failed(format!(
            "{error}; as root it would work, or where user namespaces are allowed"
        ))
    }
}

impl From<crate::traffic::TrafficError> for Error {
    fn from(error: crate::traffic::TrafficError) -> Error {
        Error::Failed(error.to_string())
    }
}
