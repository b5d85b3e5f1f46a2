//! `--uplink`: far is a router between the link and the host's network.
//!
//! Near sends outside traffic over the link to far. Far passes it to the host through a veth pair,
//! and the host forwards it with its own address. IPv4 only, because host networks rarely expect
//! masqueraded IPv6.

use std::net::IpAddr;

use longwire_io::net::address::{Prefix, addresses, routed_networks};
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetError, NetNamespace, sysctl};
use nix::unistd::getpid;

use crate::config::Side;
use crate::error::EnvironmentError;
use crate::forwarding::{self, Forwarding};
use crate::nftables::Masquerade;
use crate::plan::{Plan, mac_of};

/// Far's device that faces the host.
const DEVICE: &str = "uplink";

/// MAC addresses of the uplink's ends, configured as permanent neighbours.
const HOST_MAC: [u8; 6] = mac_of(Side::Near.number(), 2);
const FAR_MAC: [u8; 6] = mac_of(Side::Far.number(), 2);

/// The connection between far and the host's network, removed on drop.
#[derive(Debug)]
pub struct Uplink {
    host: NetNamespace,
    device: String,
    note: String,
    masquerade: Option<Masquerade>,
    forwarding: Option<Forwarding>,
}

impl Uplink {
    /// Returns IPv4 networks that the host does not use yet.
    pub fn choose_plan() -> Result<Plan, EnvironmentError> {
        let mut taken = routed_networks()?;
        taken.extend(addresses()?.into_iter().map(|(_, prefix)| prefix));
        Plan::candidates()
            .find(|plan| !taken.iter().any(|prefix| prefix.overlaps(&plan.all())))
            .ok_or_else(|| {
                EnvironmentError::Uplink(
                    "the host has routes to all of 10.77.0.0-10.127.255.255 and \
                     100.64.0.0-100.127.255.255; Longwire needs one free /16 of them"
                        .into(),
                )
            })
    }

    /// Connects far to the calling thread's namespace.
    pub fn new(
        plan: Plan,
        near: &NetNamespace,
        far: &NetNamespace,
    ) -> Result<Uplink, EnvironmentError> {
        let process = getpid().as_raw();
        let device = format!("lw{process}");
        let leaving = devices_with_ipv4()?;
        let mut uplink = Uplink {
            host: NetNamespace::current()?,
            note: format!(
                "far reaches the host's network through '{device}', forwarded and masqueraded as \
                 the host's address; a firewall on the host that drops forwarded packets also \
                 drops these"
            ),
            device,
            masquerade: None,
            forwarding: None,
        };
        // From here on, an error drops `uplink`, which removes the devices.
        uplink.connect(plan, near, far)?;
        let on = forwarding::switch_on(process, &leaving)
            .map_err(|e| EnvironmentError::Uplink(format!("cannot enable IPv4 forwarding: {e}")))?;
        uplink.forwarding = Some(on);
        let table = format!("longwire-{process}");
        let masquerade = Masquerade::new(&table, plan, &uplink.device).map_err(|e| {
            EnvironmentError::Uplink(format!(
                "the kernel refused a masquerade rule: {e}; it needs Linux 5.12 with nf_tables and \
                 nft_masq"
            ))
        })?;
        uplink.masquerade = Some(masquerade);
        Ok(uplink)
    }

    fn connect(
        &self,
        plan: Plan,
        near: &NetNamespace,
        far: &NetNamespace,
    ) -> Result<(), EnvironmentError> {
        let device = self.device.as_str();
        let (host_address, far_address) = plan.uplink();
        veth::create(&VethConfig {
            a: End {
                name: device,
                mac: Some(HOST_MAC),
                ..End::default()
            },
            b: End {
                name: DEVICE,
                namespace: Some(far),
                mac: Some(FAR_MAC),
                ..End::default()
            },
        })?;
        sysctl::set(&format!("ipv4/conf/{device}/forwarding"), "1")?;
        // The host's IPv6 must not announce itself to far.
        let _ = sysctl::set(&format!("ipv6/conf/{device}/disable_ipv6"), "1");
        net::link_up(device)?;
        net::addr_add(device, host_address.into(), 30)?;
        net::neighbour_add(device, far_address.into(), FAR_MAC)?;
        far.run(|| -> Result<(), NetError> {
            net::link_up(DEVICE)?;
            net::addr_add(DEVICE, far_address.into(), 30)?;
            net::neighbour_add(DEVICE, host_address.into(), HOST_MAC)?;
            net::default_route_add(host_address.into())?;
            sysctl::set("ipv4/ip_forward", "1")
        })??;
        let [first, second] = plan.network;
        let behind = Prefix {
            address: IpAddr::from([first, second, 0, 0]),
            length: 24,
        };
        net::route_add(behind, Some(far_address.into()), Some(device))?;
        near.run(|| net::default_route_add(plan.v4_of(Side::Far).into()))??;
        Ok(())
    }

    /// Returns a note for the user.
    pub fn note(&self) -> &str {
        &self.note
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        // Closes the socket that owns the table.
        self.masquerade = None;
        let device = self.device.as_str();
        // The device may already be gone if far's namespace was removed first.
        let _ = self.host.run(|| net::link_delete(device));
        // Unlock the record first, as `forwarding::release` requires.
        if self.forwarding.take().is_some() {
            let process = getpid().as_raw();
            let _ = self.host.run(|| forwarding::release(process));
        }
    }
}

/// Returns the host's devices through which packets may return: those with an IPv4 address, except
/// the loopback device.
fn devices_with_ipv4() -> Result<Vec<String>, NetError> {
    let addresses = addresses()?;
    let mut names = net::link_names()?;
    names.retain(|name| {
        let index = net::link::link_index(name);
        let has = |index| {
            let mut own = addresses.iter().filter(|(at, _)| *at == index);
            own.any(|(_, prefix)| prefix.address.is_ipv4())
        };
        name != "lo" && index.is_ok_and(has)
    });
    Ok(names)
}
