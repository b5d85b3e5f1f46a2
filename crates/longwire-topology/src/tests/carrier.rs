//! Ports whose carriers follow links.

use std::path::Path;

use longwire_packet::bridge::PortIndex;

use crate::summary::Summary;
use crate::{CarrierPlan, Topology};

fn read(right: &str, more: &str) -> Result<Topology, String> {
    let text = format!(
        "[ports]\nleft = 'tap:lw0'\nright = {right}\n\
         [[link]]\nname = 'wire'\nmatch = 'in-port=left'\n{more}"
    );
    Topology::parse("net.toml", &text, Path::new("")).map_err(|problems| problems[0].to_string())
}

#[test]
fn a_port_names_the_links_toward_it() {
    let plan = |links: &[&str]| CarrierPlan {
        port: PortIndex(1),
        links: links.iter().map(|link| link.to_string()).collect(),
    };
    for (carrier, links) in [
        ("'wire.up'", &["wire.up"][..]),
        ("['wire.up', 'w*']", &["wire.up", "w*"]),
    ] {
        let port = format!("{{ opens = 'tap:lw1', carrier = {carrier} }}");
        let topology = read(&port, "").expect("a topology");
        assert_eq!(topology.ports[1].opens, "tap:lw1");
        assert_eq!(topology.carriers, [plan(links)]);
        let shown = Summary::of(&topology).lines().join("\n");
        let expected = format!(
            "carrier    right: down while all of these links are off: {}",
            links.join(", ")
        );
        assert!(shown.contains(&expected), "{shown}");
        assert!(topology.carrier_of(0).is_none() && topology.carrier_of(1).is_some());
    }
    let topology = read("{ opens = 'tap:lw1' }", "").expect("a topology");
    assert_eq!(topology.carriers, []);
}

#[test]
fn carriers_of_attached_and_remote_ports_are_refused() {
    let attached = "{ attach = { pid = 7, to = '10.0.0.2' }, carrier = 'wire.up' }";
    let problem = read(attached, "").expect_err("an interface in use");
    assert!(problem.contains("3:"), "{problem}");
    let said = "ports.right.carrier: an attached interface keeps";
    assert!(problem.contains(said), "{problem}");
    let hosts = "[[host]]\nname = 'one'\naddress = '10.0.0.1'\nports = ['left', 'right']\n";
    let port = "{ opens = 'tap:lw1', carrier = 'wire.up' }";
    let problem = read(port, hosts).expect_err("several hosts");
    assert!(problem.contains("several hosts"), "{problem}");
    let both = "{ opens = 'tap:lw1', attach = { pid = 7, to = '10.0.0.2' } }";
    let problem = read(both, "").expect_err("two places");
    assert!(problem.contains("both opens and attach"), "{problem}");
}
