//! Rejected files, with positions and messages.

use std::path::Path;

use longwire_testbed::support::rows;

use super::refused;
use crate::{Topology, problem};

/// One row per error: the text after the ports, with two dashes per line break; line and field of
/// the only problem; a part of its message.
const REFUSED: &str = "
    [[lnik]] -- name = 'x' | 4 | lnik | did you mean 'link'?
    [[link]] -- name = 'x' -- match = 'any' -- shared = true -- rat = '1mbit' | 8 | link.rat | \
        did you mean 'rate'?
    [[link]] -- name = 'x' -- match = 'any' -- shared = true -- [[at]] -- time = '1s' -- \
        down = 'x' | 10 | at.down | did you mean 'off'?
    [[link]] -- name = 'x' -- match = 'any' -- shared = true -- rate = 'fast' | 8 | link.rate | fast
    [[link]] -- name = 'x' -- rate = ['1mbit'] | 6 | link.rate | found array
    [[link]] -- name = 'x' -- shared = 'yes' | 6 | link.shared | true or false
    [[link]] -- match = 'src=1.1.1.1' | 4 | link.name | no name
    [[link]] -- name = 'x*' | 5 | link.name | not a valid name
    [[link]] -- name = 'x' -- [[link]] -- name = 'x' | 7 | link.name | used twice
    [[link]] -- name = 'x' -- template = 'y' | 6 | link.template | [templates.y]
    [[link]] -- name = 'x' -- preset = 'y' | 6 | link.preset | unknown preset
    [[link]] -- name = 'x' -- match = 'source=1.1.1.1' | 6 | link.match | unknown field
    [[link]] -- name = 'x' -- match = 'src=1.1.1.1,ethertype=arp' | 6 | link.match | \
        no frame can match
    [[link]] -- name = 'x' -- match = 'in-port=c' | 6 | link.match | no port named 'c'
    c = 'packet:eth3' -- [[link]] -- name = 'x' -- match = 'any' | 7 | link.match | add in-port=a, \
        the port where frames in direction up arrive and down = { match = 'in-port=b' }
    c = 'packet:eth3' -- [[link]] -- name = 'x' -- match = 'vlan=7' | 7 | link.match | the matcher is symmetric
    [[link]] -- name = 'x' -- match = 'filter=udp' | 6 | link.match | a filter has no reverse
    [[link]] -- name = 'x' -- shared = true -- up = { rate = '1mbit' } | 4 | link.shared | \
        directions have different options
    [[link]] -- name = 'x' -- count = 3 | 5 | link.name | include {n}
    [[link]] -- name = 'x{n}' -- count = 0 | 6 | link.count | 1 to 4194304
    [[link]] -- name = 'x{n}' -- between = ['10.0.0.0/24', '10.0.1.0/25'] | 4 | link.between | \
        254 and 126 hosts
    [[link]] -- name = 'x{n}' -- between = ['10.0.0.1/24'] | 6 | link.between | host bits
    [[link]] -- name = 'x{n}' -- between = ['10.0.0.0/30'] -- count = 3 | 4 | link.count | \
        the maximum is 2
    [[link]] -- csv = 'missing.csv' | 5 | link.csv | missing.csv
    c = { opens = 'tap:c', carrier = 'x.down' } | 4 | ports.c.carrier | no link named 'x'
    c = { opens = 'tap:c', carrier = 'x*' } | 4 | ports.c.carrier | no link matches
    c = { carrier = 'x' } -- [[link]] -- name = 'x' -- shared = true -- match = 'any' | 4 | ports.c | \
        neither opens nor attach
    [[path]] -- name = 'p' -- via = ['x'] | 6 | path.via | no link named 'x'
    [[path]] -- name = 'p' | 4 | path.via | 0 links
    [[link]] -- name = 'x' -- [[path]] -- name = 'p' -- via = ['x', 'x.down'] | 8 | path.via | \
        a loop
    [[link]] -- name = 'x' -- [[path]] -- name = 'x' -- via = 'x' | 7 | path.name | used twice
    [switching] -- mode = 'hub' | 5 | switching.mode | \"bridge\", \"pairs\", \"static\"
    [switching] -- pairs = [['a', 'c']] | 5 | switching.pairs | no port named 'c'
    [switching] -- pairs = [['a', 'a']] | 4 | switching | paired with itself
    [switching] -- stations = { x = 'a' } | 5 | switching.stations | not a MAC address
    [switching] -- ageing = '5' | 5 | switching.ageing | unit
    [switching] -- storm-burst = 5 | 4 | switching.storm-burst | without storm-limit
    [[at]] -- set = {} | 4 | at.time | no time
    [[at]] -- time = '5s' | 4 | at | no action
    [[at]] -- time = '5s' -- off = 'x' | 6 | at.off | no link named 'x'
    [[link]] -- name = 'x' -- match = 'any' -- shared = true -- [[at]] -- time = '5s' -- \
        on = 'x' -- pause = '*' | 11 | at.pause | 'x' is also listed under 'on'
    [[at]] -- time = '5s' -- pause = 'x*' | 6 | at.pause | no link matches
    [[at]] -- time = '5s' -- move = { x = 'y' } -- [[link]] -- name = 'x' | 6 | at.move | 'y'
    [[link]] -- name = 'x' -- [[link]] -- name = 'y' -- match = 'src=10.0.0.1' -- [[at]] -- \
        time = '5s' -- move = { x = 'y' } | 11 | at.move | 'x' has no matcher
    [[link]] -- name = 'x' -- match = 'src=10.0.0.1' -- [[path]] -- name = 'p' -- via = ['x'] -- \
        [[at]] -- time = '5s' -- move = { p = 'x' } | 12 | at.move | 'p' has no matcher
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- off = 'x' -- [[at]] -- time = '4s' -- \
        on = 'x' | 10 | at.time | is before the previous event, at 5s
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- off = 'x' -- times = 2 | 6 | at.every | \
        write every = \"10s\"
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- off = 'x' -- every = '0s' | 9 | at.every | \
        a period of 0
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- off = 'x' -- every = '1ns' | 9 | \
        at.every | 1000000000 link changes/s; the maximum is 100000; write every = \"10us\"
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- \
        ramp = { x = { option = 'delay', from = '1ms', to = '2ms', time = '1s', steps = 1000000 } } | \
        6 | at.ramp | fewer steps
    [[link]] -- name = 'x{n}' -- count = 150000 -- [[at]] -- time = '5s' -- off = 'x*' -- \
        every = '500ms' | 10 | at.every | write every = \"1.5s\" or more
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- off = 'x' -- every = '16us' -- [[at]] -- \
        time = '6s' -- on = 'x' -- every = '16us' | 13 | at.every | 125000 link changes/s
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- set = { x = { delay = '-1ms' } } | 8 | \
        at.set.x.delay | negative
    [[link]] -- name = 'x' -- [[at]] -- time = '5s' -- \
        ramp = { x = { option = 'delay', from = 'normal:mean=1ms', to = '2ms', time = '1s' } } | \
        8 | at.ramp.x | plain numbers
    [[host]] -- address = '192.0.2.1' | 4 | host.name | no name
    [[host]] -- name = 'x' | 4 | host.address | no address
    [[host]] -- name = 'x' -- address = 'localhost' | 6 | host.address | not an IP address
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- listen = ':1' | 7 | host.listen | \
        not an IP address
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'c'] | 7 | host.ports | \
        no port named 'c'
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b', 'a'] | 7 | host.ports | \
        'a' already belongs to 'this host'
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a'] | 4 | host.ports | to no host
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b'] -- [[host]] -- \
        name = 'x' -- address = '192.0.2.2' | 9 | host.name | two hosts are named 'x'
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b'] -- [[host]] -- \
        name = 'y' -- address = '192.0.2.1:4795' | 10 | host.address | of another host
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b'] -- [[host]] -- \
        name = 'y' -- address = '192.0.2.2' | 8 | host.ports | 'y' has no ports
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b'] -- [[host]] -- \
        name = 'y' -- address = '2001:db8::1' | 10 | host.address | cannot reach
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- listen = '[::]:4795' | 7 | host.listen | \
        does not receive
    [[host]] -- name = 'x' -- address = '192.0.2.1:0' | 6 | host.address | no UDP port
    [[host]] -- name = 'x' -- address = '0.0.0.0' | 6 | host.address | unspecified address
    [[host]] -- name = 'x' -- address = '[::]:4795' | 6 | host.address | unspecified address
    [[host]] -- name = 'x' -- address = '224.0.0.1' | 6 | host.address | multicast
    [[host]] -- name = 'x' -- address = '255.255.255.255' | 6 | host.address | broadcast
    [[host]] -- name = 'x' -- address = 'fe80::1' | 6 | host.address | link-local
    [[host]] -- name = 'x y' -- address = '192.0.2.1' | 5 | host.name | not a valid name
    [[host]] -- name = 'x' -- address = '192.0.2.1' -- ports = ['a', 'b'] -- [[host]] -- \
        name = 'y' -- address = '::ffff:192.0.2.1' | 10 | host.address | of another host
    [underlay] -- mtu = 1200 | 4 | underlay | without hosts
    DIVIDED [underlay] -- mtu = 100 | 13 | underlay.mtu | 548 to 65000
    DIVIDED [switching] -- mode = 'bridge' | 4 | switching.mode | cannot span hosts: each host sees only its own
    DIVIDED [[link]] -- name = 'x' -- match = 'src=10.0.0.1' | 12 | link.match | add in-port=NAME
    DIVIDED [[link]] -- name = 'x' -- match = 'in-port=a' -- shared = true | 12 | link.match | \
        'one' and of 'two' cross 'x'
    DIVIDED [[link]] -- name = 'x' -- match = ['in-port=a', 'in-port=b'] | 12 | link.match | \
        cross 'x'
    DIVIDED [[link]] -- name = 'x' -- match = 'in-port=a' -- [[link]] -- name = 'y' -- \
        match = 'in-port=b' -- [[at]] -- time = '1s' -- move = { x = 'y' } | 15 | link.match | \
        cross 'y'
";

/// Two hosts with one port each, in eight lines.
const DIVIDED: &str = "[[host]] -- name = 'one' -- address = '192.0.2.1' -- ports = 'a' -- \
    [[host]] -- name = 'two' -- address = '192.0.2.2' -- ports = 'b' -- ";

#[test]
fn every_refusal_has_a_place_and_a_reason() {
    for [text, line, field, said] in rows(REFUSED) {
        let problems = refused(&text.replace("DIVIDED ", DIVIDED).replace(" -- ", "\n"));
        assert_eq!(problems.len(), 1, "{text}\n{problems:?}");
        let problem = &problems[0];
        assert_eq!(problem.line.to_string(), line, "{text}\n{problem}");
        assert_eq!(problem.field, field, "{text}\n{problem}");
        assert!(problem.column > 0, "{text}");
        assert!(!problem.remedy.is_empty(), "{problem}");
        assert!(problem.to_string().contains(said), "{said}: {problem}");
    }
}

/// Rejects names that look alike, or that would reorder a report's text.
#[test]
fn names_with_invisible_characters_are_refused() {
    let read = |port: &str, link: &str| {
        let text =
            format!("[ports]\n\"{port}\" = \"null\"\nb = \"null\"\n[[link]]\nname = \"{link}\"\n");
        Topology::parse("net.toml", &text, Path::new(""))
    };
    for name in ["größe", "日本", "e\u{301}", "a:b/c_d-1.x", "क्षि"] {
        read(name, name).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    }
    let unseen =
        "\u{202e} \u{200b} \u{feff} \u{2066} \u{ad} \u{e0041} \u{2028} \u{85} \u{e000} \u{600}";
    for c in unseen.split(' ') {
        let name = format!("a{c}b");
        for (port, link, field) in [(&*name, "x", "ports"), ("a", &*name, "link.name")] {
            let problems = read(port, link).expect_err("refused");
            let problem = &problems[0];
            assert_eq!(problem.field, field, "{}: {problem}", c.escape_unicode());
            assert!(problem.reason.contains("not a valid name"), "{problem}");
        }
    }
}

#[test]
fn missing_and_duplicate_ports_are_refused() {
    let read = |text| Topology::parse("net.toml", text, Path::new("")).expect_err(text);
    assert_eq!(read("seed = 1")[0].field, "ports");
    let twice = read("[ports]\na = \"packet:eth1\"\nb = \"xdp:eth1\"\n");
    let place = (twice[0].line, twice[0].field.as_str());
    assert_eq!(place, (3, "ports.b"), "{twice:?}");
    assert_eq!(read("[ports]\na = \"pocket:eth1\"\n")[0].field, "ports.a");
    // All syntax errors are reported, without consequential errors.
    let broken = read("[ports\na = 1\nb = = 2\n");
    assert!(broken.len() >= 2, "{broken:?}");
    assert!(broken.iter().all(|problem| problem.line > 0), "{broken:?}");
}

#[test]
fn all_problems_are_reported_in_file_order() {
    let problems =
        refused("[[link]]\nname = \"x\"\nrate = \"no\"\ndelay = \"no\"\n[[link]]\nname = \"x\"\n");
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [6, 7, 9]);
    let problems = refused(&"[[link]]\nrate = \"no\"\nname = \"a\"\n".repeat(300));
    assert_eq!(problems.len(), problem::PROBLEMS_MAX + 1);
    let last = problems.last().expect("a problem");
    assert!(last.reason.contains("499 more"), "{last}");
}
