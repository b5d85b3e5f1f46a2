use std::path::Path;

use longwire_testbed::support::rows;

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
    let (ports, links) = (topology.ports.len(), topology.links.len());
    assert_eq!((ports, links, topology.paths.len()), (4, 4, 6), "{toml}");
    let Some(Class::Path(path)) = topology.named("n-0:n-2") else {
        panic!("{toml}");
    };
    let hops = topology.paths[path as usize].hops(Direction::Up);
    let hops = hops.iter().map(|hop| {
        let link = &topology.links[hop.link as usize].name;
        format!("{link}.{}", hop.direction.name())
    });
    let hops: Vec<String> = hops.collect();
    assert_eq!(hops, ["access.up", "lan0-r.up", "lan0-n-2.down"]);
    let lan = &topology.links[2].up;
    let texts = [lan.texts("delay"), lan.texts("loss")];
    assert_eq!(texts, [["1ms"], ["1%"]], "{toml}");
    let access = &topology.links[0];
    let down = access.down.as_ref().unwrap_or(&access.up);
    assert_eq!(
        [&access.up, down].map(|it| it.texts("loss")),
        [["1%"]; 2],
        "{toml}"
    );
    let one = &topology.links[1];
    let down = one.down.as_ref().expect("two directions");
    let queues = [down, &one.up].map(|options| options.texts("queue"));
    assert_eq!(queues, [["20p"], ["50p"]]);
}

#[test]
fn loops_run_while_their_condition_holds() {
    for [first, test, step, count] in rows(
        "
        0 | < 3 | 1 | 3
        0 | <= 3 | 1 | 4
        3 | > 0 | -1 | 3
        3 | >= 0 | -1 | 4
        0 | != 4 | 2 | 2
        4 | < 4 | 1 | 0
        ",
    ) {
        let script = format!(
            "set ns [new Simulator]\nset hub [$ns node]\nset a [$ns node]\n\
             $ns duplex-link $hub $a 1Mb 1ms DropTail\n\
             for {{set i {first}}} {{$i {test}}} {{incr i {step}}} {{\n  set n($i) [$ns node]\n  \
             $ns duplex-link $n($i) $hub 1Mb 1ms DropTail\n}}\n"
        );
        let toml = ns::import(&script, 100).unwrap_or_else(|error| panic!("{test}: {error}"));
        let topology = Topology::parse("n", &toml, Path::new("")).expect("valid");
        assert_eq!((topology.links.len() - 1).to_string(), count, "{test}");
    }
}

#[test]
fn scripts_that_cannot_be_imported_are_refused_by_line() {
    for [wrong, line] in rows(
        "
        NODES -- $ns duplex-link $a $b 1Mb 1ms RED | 4
        set ns [new Simulator] -- $ns duplex-link $a $b 1Mb 1ms DropTail | 2
        set x { -- | 1
        for {set i 0} {$i < 1} {set i 0} { -- } -- | 1
        proc f {} {} -- | 1
        NODES -- $ns simplex-link $a $b 1Mb 1ms DropTail | 4
        ",
    ) {
        let nodes = "set ns [new Simulator] -- set a [$ns node] -- set b [$ns node]";
        let wrong = &wrong
            .replace("NODES", nodes)
            .replace(" -- ", "\n")
            .replace(" --", "\n");
        let refusal = ns::import(wrong, 100).expect_err(wrong);
        let at = refusal.split_once(": ").map(|(at, _)| at);
        assert_eq!(at, Some(line), "{wrong}\n{refusal}");
    }
}
