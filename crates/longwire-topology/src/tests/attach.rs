//! Ports attached to interfaces in use.

use std::path::Path;

use longwire_attach::Target;
use longwire_packet::bridge::PortIndex;
use longwire_testbed::support::rows;

use crate::Topology;

const LINK: &str = "[[link]]\nname = 'wire'\ndelay = '5ms'\n";

fn read(ports: &str) -> Result<Topology, Vec<String>> {
    let text = format!("[ports]\n{ports}\n{LINK}");
    let topology = Topology::parse("net.toml", &text, Path::new(""));
    topology.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn attached_ports_name_an_interface_and_addresses() {
    let topology = read(
        "left.attach = { netns = 'blue', interface = 'eth0', to = ['10.0.0.2/32', 'fd00::/64'] }
        right.attach = { pod = 'shop/cart-0', to = '10.0.0.1', filter = 'udp' }",
    );
    let topology = topology.expect("a topology");
    let [left, right] = topology.attached.as_slice() else {
        panic!("two ports: {:?}", topology.attached);
    };
    assert_eq!(left.port, PortIndex(0));
    assert_eq!(left.target, Target::Netns("blue".into()));
    assert_eq!(left.interface.as_deref(), Some("eth0"));
    let to: Vec<String> = left.selection.to.iter().map(ToString::to_string).collect();
    assert_eq!(to, ["10.0.0.2/32", "fd00::/64"]);
    assert_eq!(right.selection.to[0].to_string(), "10.0.0.1/32");
    assert!(right.selection.filter.is_some() && right.interface.is_none());
    assert_eq!(topology.ports[0].opens, "attach namespace blue, eth0");
    assert_eq!(topology.ports[1].opens, "attach pod shop/cart-0");
}

#[test]
fn invalid_ports_are_refused_with_their_place() {
    for [left, place, reason] in rows(
        "
        attach = { netns = 'blue' } | net.toml:2: | no addresses
        attach = { to = '10.0.0.2' } | net.toml:2: | one of netns
        attach = { netns = 'blue', pid = 7, to = '10.0.0.2' } | net.toml:2: | one of netns
        attach = { pid = 7, to = '10.0.0.2/33' } | ports.left.attach.to | above 32 for IPv4
        attach = { pid = 7, to = '10.0.0.2', filter = 'udp dst' } | ports.left.attach.filter |
        attach = { pid = 7, too = '10.0.0.2' } | ports.left.attach.too | 'to'
        attach = 'eth0' | ports.left.attach | a table
        attach = { container = '', to = '10.0.0.2' } | ports.left.attach |
        attach = { netns = 'red', to = '10.0.0.0/24' } | ports.right.attach | \
            port 'left' already takes packets to the same addresses
        ",
    ) {
        let ports = format!(
            "left.{left}\nright.attach = {{ netns = 'red', to = ['10.1.0.1', '10.0.0.2'] }}"
        );
        let problems = read(&ports).expect_err("it is refused").join("\n");
        assert!(problems.contains(place), "{place}: {problems}");
        assert!(problems.contains(reason), "{reason}: {problems}");
    }
}
