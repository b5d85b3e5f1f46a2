use std::path::Path;

use crate::{Class, Direction, Topology, ns};

#[test]
fn emulab_scripts_convert_to_valid_topologies() {
    let script = "source tb_compat.tcl\nset ns [new Simulator]\n# three nodes in a row, and a LAN\n\
        for {set i 0} {$i < 3} {incr i} {\n  set n($i) [$ns node]\n}\nset r [$ns node]\n\
        set access [$ns duplex-link $n(0) $r 100Mb 10ms DropTail]\n\
        $ns simplex-link $n(1) $r 1.5Mb 5ms DropTail\n$ns simplex-link $r $n(1) 8Mb 5ms DropTail\n\
        $ns queue-limit $r $n(1) 20\nset lan0 [$ns make-lan \"$n(2) $r\" 1Gb 2ms]\n\
        tb-set-link-loss $access 0.01\ntb-set-lan-loss $lan0 0.0199\ntb-set-ip $n(0) 10.7.0.1\n$ns run\n";
    let toml = ns::import(script, 100).expect("understood");
    let topology =
        Topology::parse("n", &toml, Path::new("")).unwrap_or_else(|e| panic!("{toml}\n{e:?}"));
    assert_eq!(
        (
            topology.ports.len(),
            topology.links.len(),
            topology.paths.len()
        ),
        (4, 4, 6),
        "{toml}"
    );
    let Some(Class::Path(path)) = topology.named("n-0:n-2") else {
        panic!("{toml}");
    };
    let hops = topology.paths[path as usize]
        .hops(Direction::Up)
        .into_iter();
    let hops: Vec<(&str, Direction)> = hops
        .map(|hop| (&*topology.links[hop.link as usize].name, hop.direction))
        .collect();
    assert_eq!(
        hops,
        [
            ("access", Direction::Up),
            ("lan0-r", Direction::Up),
            ("lan0-n-2", Direction::Down)
        ]
    );
    let lan = &topology.links[2].up;
    assert_eq!(
        [lan.texts("delay"), lan.texts("loss")],
        [["1ms"], ["1%"]],
        "{toml}"
    );
    let one = &topology.links[1];
    let down = one.down.as_ref().expect("two directions");
    assert_eq!(
        [down.texts("queue"), one.up.texts("queue")],
        [["20p"], ["50p"]]
    );
}

#[test]
fn scripts_that_cannot_be_imported_are_refused_by_line() {
    for (wrong, line) in [
        (
            "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms RED",
            4,
        ),
        (
            "set ns [new Simulator]\n$ns duplex-link $a $b 1Mb 1ms DropTail",
            2,
        ),
        ("set x {\n", 1),
        ("for {set i 0} {$i < 1} {set i 0} {\n}\n", 1),
        ("proc f {} {}\n", 1),
        (
            "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns simplex-link $a $b 1Mb 1ms DropTail",
            4,
        ),
    ] {
        let refusal = ns::import(wrong, 100).expect_err(wrong);
        assert!(
            refusal.starts_with(&format!("{line}: ")),
            "{wrong}\n{refusal}"
        );
    }
}
