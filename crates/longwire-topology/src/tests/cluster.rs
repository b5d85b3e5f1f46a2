//! Hosts, and the assignment of links to hosts.

use std::path::Path;

use crate::Topology;
use crate::summary::Summary;

const HOSTS: &str = "
[[host]]
name = 'west'
address = '192.0.2.1'
ports = ['a', 'c']
[[host]]
name = 'east'
address = '192.0.2.2:7000'
listen = '0.0.0.0:7000'
ports = 'b'
[underlay]
key = 'network.key'
";

fn read(network: &str) -> Topology {
    let text = format!("{network}{HOSTS}");
    let topology = Topology::parse("net.toml", &text, Path::new("/etc/longwire"));
    topology.unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

#[test]
fn each_direction_is_decided_where_frames_enter() {
    let topology = read(
        "[ports]
        a = 'packet:eth1'
        b = 'packet:eth2'
        c = 'packet:eth3'
        [switching]
        mode = 'static'
        [switching.stations]
        '02:00:00:00:00:01' = 'a'
        [[link]]
        name = 'ab'
        match = 'in-port=a'
        down = { match = 'in-port=b' }
        [[link]]
        name = 'core'
        [[link]]
        name = 'unused'
        [[path]]
        name = 'p'
        via = ['core']
        match = 'in-port=c'
        match-back = 'in-port=b,proto=udp'
        ",
    );
    let cluster = topology.cluster.as_ref().expect("hosts");
    assert_eq!(cluster.owners, [0, 1, 0]);
    let (west, east) = (Some(0), Some(1));
    assert_eq!(cluster.deciders, [[west, east], [west, east], [None, None]]);
    assert_eq!(cluster.hosts[0].address.to_string(), "192.0.2.1:4795");
    assert_eq!(cluster.hosts[0].listen, cluster.hosts[0].address);
    assert_eq!(cluster.hosts[1].listen.to_string(), "0.0.0.0:7000");
    assert_eq!(cluster.host_named("east"), Some(1));
    assert_eq!(cluster.host_named("north"), None);
    assert_eq!(cluster.key, Some(Ok("/etc/longwire/network.key".into())));
    assert_eq!(cluster.mtu, 1400);
    let lines = Summary::of(&topology).lines().join("\n");
    for host in [
        "west (192.0.2.1:4795): ports a, c",
        "east (192.0.2.2:7000): ports b",
    ] {
        let line = format!("host       {host}; decides 2 directions");
        assert!(lines.contains(&line), "{lines}");
    }
}

/// The only link between two ports needs no matcher. A single host may have shared links and a
/// learning switch.
#[test]
fn the_hosts_of_one_link_follow_its_ports() {
    let two = "host = [{ name = 'x', address = '192.0.2.1', ports = 'a' }, \
                { name = 'y', address = '192.0.2.2', ports = 'b' }]
        ports = { a = 'packet:eth1', b = 'packet:eth2' }
        link = [{ name = 'wire', delay = '1ms' }]";
    let one = "host = [{ name = 'x', address = '192.0.2.1', ports = ['a', 'b', 'c'] }]
        ports = { a = 'packet:eth1', b = 'packet:eth2', c = 'packet:eth3' }
        link = [{ name = 'wire', match = 'any', shared = true }]";
    for (text, deciders) in [(two, [Some(0), Some(1)]), (one, [Some(0), Some(0)])] {
        let topology = Topology::parse("net.toml", text, Path::new("")).expect("a topology");
        assert_eq!(topology.cluster.expect("hosts").deciders, [deciders]);
    }
}

#[test]
fn devices_of_two_hosts_may_have_one_name() {
    let text = |other: &str| {
        format!(
            "host = [{{ name = 'x', address = '192.0.2.1', ports = ['a', 'c'] }}, \
             {{ name = 'y', address = '192.0.2.2', ports = 'b' }}]
             ports = {{ a = 'packet:eth1', b = 'packet:eth1', c = 'packet:{other}' }}
             switching = {{ mode = 'static' }}"
        )
    };
    assert!(Topology::parse("net.toml", &text("eth2"), Path::new("")).is_ok());
    let problems = Topology::parse("net.toml", &text("eth1"), Path::new(""));
    let problems = problems.expect_err("one host opens eth1 twice");
    assert_eq!(problems[0].field, "ports.c", "{problems:?}");
}

#[test]
fn unmatched_frames_of_several_hosts_cannot_share_a_link() {
    let text = "unmatched = 'link:wire'
        host = [{ name = 'x', address = '192.0.2.1', ports = 'a' }, \
                { name = 'y', address = '192.0.2.2', ports = 'b' }]
        ports = { a = 'packet:eth1', b = 'packet:eth2' }
        link = [{ name = 'wire' }]";
    let problems = Topology::parse("net.toml", text, Path::new("")).expect_err("refused");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let place = (problems[0].line, problems[0].field.as_str());
    assert_eq!(place, (1, "unmatched"));
}
