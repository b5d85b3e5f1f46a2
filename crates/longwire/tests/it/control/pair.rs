//! Control of a link between two ports, without a file.

use crate::common::site::{Site, assert_nothing_lost, link};
use crate::control::ControlledRun;
use longwire_testbed::support::Folder;

#[test]
fn a_link_between_two_ports_is_controlled_too() {
    let Some(site) = Site::new(2) else { return };
    let arguments = [
        "packet:p0",
        "packet:p1",
        "--delay",
        "10ms",
        "--up-rate",
        "80mbit",
    ];
    let controlled = ControlledRun::of(site, Folder::new(), &arguments);
    controlled.site.wait_for_answer(0, 1);
    controlled.takes(20.0);
    controlled.well("set link.down delay=40ms");
    controlled.takes(50.0);
    assert_eq!(
        controlled.json("get link")["up"]["options"]["rate"],
        "80mbit"
    );
    let report = controlled.stop();
    assert!(link(&report, "link.up")["packets_out"].as_u64() >= Some(8));
    assert_nothing_lost(&report);
}
