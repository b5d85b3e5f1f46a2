//! The bridge of `longwire run FILE.toml` with real stations on its ports: address resolution by ARP
//! and IPv6 neighbour discovery, and a loop. longwire-packet tests the switch with a model.
//!
//! Skipped without permission to create namespaces, except in CI.

use crate::common::program::run_in;
use crate::common::site::{Network, Site, address, assert_nothing_lost};
use crate::common::{count, named};
use longwire_testbed::support::{Folder, device, wire, within};

/// Starts a bridge with four ports, whose frames leave immediately, and these additional lines.
fn start(site: &Site, lines: &str) -> Network {
    let ports = ["a", "b", "c", "d"].into_iter().enumerate();
    let ports = ports.map(|(number, name)| format!("{name} = 'packet:p{number}'\n"));
    let text = format!("[ports]\n{}{lines}", ports.collect::<String>());
    site.start_network(&Folder::new(), &text, "")
}

#[test]
fn stations_find_one_another_by_both_protocols() {
    let Some(site) = Site::new(4) else { return };
    let six = |station: usize| format!("fd00:9::{}", station + 1);
    for station in 0..4 {
        site.said(
            station,
            format!("ip addr add {}/64 dev eth0 nodad", six(station)),
        );
    }
    let lines =
        "[[link]]\nname = \"six\"\nmatch = \"src=fd00:9::1,dst=fd00:9::2\"\ndelay = \"20ms\"";
    let network = start(&site, lines);
    for (from, to) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let four = address(to).to_string();
        for (its, delays) in [(four, 0.0), (six(to), 40.0)] {
            let expected = if (from, to) == (0, 1) { delays } else { 0.0 };
            site.assert_not_early(from, &its, expected);
            let known = site.said(from, format!("ip neigh show {its} dev eth0"));
            assert!(known.contains(&site.mac(to)), "{from} of {to}: {known}");
        }
    }
    let report = network.stop();
    let six = named(&report["links"], "six.up");
    assert!(count(&six["packets_in"]) >= 4, "{report}");
    // Requests and replies of the pairs that have no link.
    assert!(count(&report["passed"]) >= 11 * 8, "{report}");
    let switch = &report["switch"];
    // Each station was resolved by broadcast and multicast; the remaining frames went to one port
    // each.
    let flooded = [0, 1].map(|kind| count(&switch["flooded"][kind]));
    assert!(flooded[0] >= 3 && flooded[1] >= 6, "{switch}");
    assert!(count(&switch["forwarded"]) >= 2 * 2 * 6 * 4, "{switch}");
    let others = ["learnt", "loop_signs", "moved"].map(|name| count(&switch[name]));
    assert_eq!(others, [4, 0, 0], "{switch}");
    assert_nothing_lost(&report);
}

#[test]
fn a_storm_in_a_loop_is_reported() {
    let Some(site) = Site::without_addresses(2) else {
        return;
    };
    // One wire joins the third and fourth ports.
    within(&site.middle, || {
        wire(device("p2", None), device("p3", None))
    });
    let lines = "[switching]\nmode = \"bridge\"\nstorm-limit = \"500pps\"\nstorm-burst = 50\n";
    let network = start(&site, lines);
    let broadcasts = "longwire generate -q --rate 200pps --time 2s --to packet:eth0 \
                      --dst-mac ff:ff:ff:ff:ff:ff";
    run_in(&site.stations[0], broadcasts).well();
    let (report, text) = network.stop_with_text();
    let switch = &report["switch"];
    // A frame circulates until the limit at either end drops it.
    let dropped = count(&switch["not_forwarded"]["storm"]);
    assert!(dropped >= 2 * 200, "{switch}");
    assert!(count(&switch["loop_signs"]) >= 1, "{switch}");
    assert!(text.contains("possible loop between ports"), "{text}");
}
