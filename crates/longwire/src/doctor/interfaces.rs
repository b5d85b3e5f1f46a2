//! Checks the interfaces and which port kinds each supports.

use longwire_io::net::ethtool::Ethtool;
use longwire_io::net::interface::{Interface, InterfaceKind};
use longwire_io::net::link_names;

use super::Finding;

/// Maximum number of interfaces shown; more would bury other findings.
const SHOWN_MAX: usize = 16;

pub(super) fn check() -> Vec<Finding> {
    let names = match link_names() {
        Ok(names) => names,
        Err(error) => {
            let finding = Finding::warn("interfaces", error.to_string());
            return vec![finding.costs("run: no interface ports")];
        }
    };
    let ethtool = Ethtool::open().ok();
    let interfaces = names.iter().filter_map(|name| Interface::find(name).ok());
    let interfaces = interfaces.filter(|interface| interface.kind != InterfaceKind::Loopback);
    let ethtool = ethtool.as_ref();
    let finding = |found: Interface| finding(&found, offloads(ethtool, &found.name));
    interfaces.take(SHOWN_MAX).map(finding).collect()
}

/// Offloads that merge or split frames: the host's frames then differ from those on the wire.
const OFFLOADS: [(&str, &str); 4] = [
    ("tx-tcp-segmentation", "tso"),
    ("tx-generic-segmentation", "gso"),
    ("rx-gro", "gro"),
    ("rx-lro", "lro"),
];

/// Returns the active [`OFFLOADS`].
fn offloads(ethtool: Option<&Ethtool>, name: &str) -> Vec<&'static str> {
    let Some(features) = ethtool.and_then(|ethtool| ethtool.features(name).ok()) else {
        return Vec::new();
    };
    let active = OFFLOADS.iter().filter(|(id, _)| features.active(id));
    active.map(|(_, short)| *short).collect()
}

fn finding(interface: &Interface, offloads: Vec<&str>) -> Finding {
    let kind = match &interface.kind {
        InterfaceKind::Veth => "veth",
        InterfaceKind::Tun => "tun or tap",
        InterfaceKind::Loopback => "loopback",
        InterfaceKind::Virtual(kind) => kind,
        InterfaceKind::Physical(driver) => driver,
    };
    let state = match (interface.up, interface.running) {
        (false, _) => "down",
        (true, false) => "up, no carrier",
        (true, true) => "up",
    };
    let mut found = format!("{state}, {kind}, MTU {}", interface.mtu);
    if interface.rx_queues > 1 {
        found += &format!(", {} receive queues", interface.rx_queues);
    }
    if !offloads.is_empty() {
        found += &format!(", with {}", offloads.join(" "));
    }
    if !interface.is_ethernet() {
        found += ": not Ethernet, unusable as port";
    }
    Finding::ok(&interface.name, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_summed_up_in_a_line() {
        // Every network namespace has a loopback device.
        let Ok(loopback) = Interface::find("lo") else {
            return;
        };
        let interface = Interface {
            name: "eth0".to_owned(),
            mtu: 1500,
            mac: Some([2, 0, 0, 0, 0, 1]),
            up: true,
            running: true,
            kind: InterfaceKind::Physical("virtio_net".to_owned()),
            rx_queues: 4,
            ..loopback
        };
        let found = finding(&interface, vec!["tso", "gro"]).found;
        let words = "up, virtio_net, MTU 1500, 4 receive queues, with tso gro";
        assert_eq!(found, words);
        let tunnel = Interface {
            mac: None,
            up: false,
            kind: InterfaceKind::Virtual("wireguard".to_owned()),
            rx_queues: 1,
            ..interface
        };
        let found = finding(&tunnel, Vec::new()).found;
        let words = "down, wireguard, MTU 1500: not Ethernet, unusable as port";
        assert_eq!(found, words);
    }
}
