//! Namespaces, devices, addresses and routes in the kernel. Without the right to create network
//! namespaces, the tests are skipped with a message, except in CI, where they fail.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use longwire_io::net::address::{Prefix, addresses, routed_networks};
use longwire_io::net::interface::{Interface, InterfaceKind};
use longwire_io::net::netlink::Netlink;
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetError, NetNamespace, link, qdisc, sysctl};
use longwire_testbed::support::{device, namespace};

const A4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const B4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

#[test]
fn a_pair_carries_traffic_at_once() {
    let (Some(a), Some(b)) = (namespace(), namespace()) else {
        return;
    };
    let config = VethConfig {
        a: End {
            name: "left",
            mac: Some([2, 0, 0, 0, 0, 1]),
            mtu: Some(9000),
            tx_queue_len: Some(77),
            queues: Some(2),
            ..End::default()
        },
        b: End {
            name: "right",
            namespace: Some(&b),
            mtu: Some(9000),
            ..End::default()
        },
    };
    a.run(|| {
        veth::create(&config).unwrap();
        net::addr_add("left", A4, 24).unwrap();
        net::link_up("left").unwrap();
        assert_eq!(Interface::find("left").unwrap().kind, InterfaceKind::Veth);
    })
    .unwrap();
    let listener = b
        .run(|| {
            net::addr_add("right", B4, 24).unwrap();
            net::addr_add("right", B6, 64).unwrap();
            net::link_up("right").unwrap();
            // Binding would fail during duplicate address detection.
            TcpListener::bind(SocketAddr::new(B6, 0)).unwrap();
            TcpListener::bind(SocketAddr::new(B4, 7)).unwrap()
        })
        .unwrap();
    a.run(|| {
        let mut stream = TcpStream::connect((B4, 7)).unwrap();
        stream.write_all(b"longwire").unwrap();
    })
    .unwrap();
    let mut text = String::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "longwire");
    let running = || link::wait_running("left", Duration::from_secs(2));
    assert!(a.run(running).unwrap().unwrap());
    let stats = a.run(|| net::link_stats("left")).unwrap().unwrap();
    assert!(stats.tx_packets >= 3 && stats.rx_packets >= 2, "{stats:?}");
    assert!(a.run(|| link::link_index("left")).unwrap().unwrap() > 1);
}

#[test]
fn names_moves_and_removal() {
    let (Some(own), Some(other)) = (namespace(), namespace()) else {
        return;
    };
    let names = |at: &NetNamespace| {
        let mut names = at.run(|| net::link_names().unwrap()).unwrap();
        names.retain(|name| name.starts_with("lw"));
        names.sort();
        names
    };
    own.run(|| {
        let [a, b] = ["lw0", "lw1"].map(|name| device(name, None));
        veth::create(&VethConfig { a, b }).unwrap();
        link::set_mtu("lw0", 1400).unwrap();
        let mut netlink = Netlink::route().unwrap();
        link::set_tx_queue_len(&mut netlink, "lw0", 9).unwrap();
        link::set_mac("lw0", [2, 0, 0, 0, 0, 9]).unwrap();
        net::link_up("lw0").unwrap();
        net::link_down("lw0").unwrap();
        link::move_to("lw1", &other).unwrap();
    })
    .unwrap();
    assert_eq!([names(&own), names(&other)], [["lw0"], ["lw1"]]);
    other.run(|| net::link_delete("lw1").unwrap()).unwrap();
    assert_eq!((names(&own), names(&other)), (vec![], vec![]));
}

#[test]
fn addresses_routes_and_settings_are_the_namespaces_own_and_refusals_have_a_reason() {
    let Some(a) = namespace() else { return };
    a.run(|| {
        net::link_up("lo").unwrap();
        net::addr_add("lo", A4, 24).unwrap();
        let destination = prefix("192.0.2.0", 24);
        net::route_add(destination, None, Some("lo")).unwrap();
        net::default_route_add(B4).unwrap();
        let there = addresses().unwrap();
        assert!(there.contains(&(1, prefix("10.77.0.1", 24))), "{there:?}");
        assert!(routed_networks().unwrap().contains(&destination));
        sysctl::set("ipv4/ip_forward", "1").unwrap();
        assert_eq!(sysctl::get("ipv4/ip_forward").unwrap(), "1");
        let missing = net::link_up("lw-none").unwrap_err();
        assert!(matches!(missing, NetError::NoDevice { .. }), "{missing}");
        assert_eq!(missing.to_string(), "no device 'lw-none'");
        let absurd = link::set_mtu("lo", u32::MAX).unwrap_err().to_string();
        assert!(absurd.contains("'lo'"), "{absurd}");
    })
    .unwrap();
    assert_ne!(a.inode(), NetNamespace::current().unwrap().inode());
}

fn prefix(text: &str, length: u8) -> Prefix {
    Prefix {
        address: text.parse().unwrap(),
        length,
    }
}

#[test]
fn prefixes_overlap_when_one_holds_the_other() {
    assert!(prefix("10.77.0.0", 24).overlaps(&prefix("10.0.0.0", 8)));
    assert!(prefix("10.77.0.0", 24).overlaps(&prefix("1.2.3.4", 0)));
    assert!(!prefix("10.77.0.0", 24).overlaps(&prefix("10.77.1.0", 24)));
    assert!(!prefix("10.77.0.0", 24).overlaps(&prefix("fd77::", 8)));
    assert!(prefix("fd77::1", 64).overlaps(&prefix("fd77::2", 128)));
}

#[test]
fn the_disciplines_of_a_device_are_listed() {
    let Some(place) = namespace() else { return };
    let listed = place.run(|| {
        let of = |name| link::link_index(name).and_then(qdisc::qdiscs);
        net::link_up("lo").and_then(|()| of("lo"))
    });
    let listed = listed.unwrap().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(listed[0].is_root(), "{listed:?}");
    assert_eq!(listed[0].kind, "noqueue");
    assert!(!listed[0].is_below(&listed[0]));
    assert_eq!(qdisc::qdiscs(u32::MAX).unwrap(), []);
}
