//! Refusals: their places and their words.

use std::path::Path;

use super::refused;
use crate::{Topology, problem};

/// Every refusal there is: what is written behind the ports, the line and the
/// field of the one problem, and a part of its text.
const REFUSED: &[(&str, usize, &str, &str)] = &[
    ("[[lnik]]\nname = \"x\"", 4, "lnik", "did you mean 'link'?"),
    (
        "[[link]]\nname = \"x\"\nmatch = \"any\"\nshared = true\nrat = \"1mbit\"",
        8,
        "link.rat",
        "did you mean 'rate'?",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"any\"\nshared = true\nrate = \"fast\"",
        8,
        "link.rate",
        "fast",
    ),
    (
        "[[link]]\nname = \"x\"\nrate = [\"1mbit\"]",
        6,
        "link.rate",
        "of type array",
    ),
    (
        "[[link]]\nname = \"x\"\nshared = \"yes\"",
        6,
        "link.shared",
        "true or false",
    ),
    (
        "[[link]]\nmatch = \"src=1.1.1.1\"",
        4,
        "link.name",
        "no name",
    ),
    (
        "[[link]]\nname = \"x*\"",
        5,
        "link.name",
        "cannot be a name",
    ),
    (
        "[[link]]\nname = \"x\"\n[[link]]\nname = \"x\"",
        7,
        "link.name",
        "used twice",
    ),
    (
        "[[link]]\nname = \"x\"\ntemplate = \"y\"",
        6,
        "link.template",
        "[templates.y]",
    ),
    (
        "[[link]]\nname = \"x\"\npreset = \"y\"",
        6,
        "link.preset",
        "unknown preset",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"source=1.1.1.1\"",
        6,
        "link.match",
        "no such field",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"src=1.1.1.1,ethertype=arp\"",
        6,
        "link.match",
        "no frame can be so",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"in-port=c\"",
        6,
        "link.match",
        "no port 'c'",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"vlan=7\"",
        6,
        "link.match",
        "no direction",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"filter=udp\"",
        6,
        "link.match",
        "follow from a filter",
    ),
    (
        "[[link]]\nname = \"x\"\nshared = true\nup = { rate = \"1mbit\" }",
        4,
        "link.shared",
        "directions differ",
    ),
    (
        "[[link]]\nname = \"x\"\ncount = 3",
        5,
        "link.name",
        "put {n} into it",
    ),
    (
        "[[link]]\nname = \"x{n}\"\ncount = 0",
        6,
        "link.count",
        "1 to 4194304",
    ),
    (
        "[[link]]\nname = \"x{n}\"\nbetween = [\"10.0.0.0/24\", \"10.0.1.0/25\"]",
        4,
        "link.between",
        "254 and 126 hosts",
    ),
    (
        "[[link]]\nname = \"x{n}\"\nbetween = [\"10.0.0.1/24\"]",
        6,
        "link.between",
        "behind its prefix",
    ),
    (
        "[[link]]\nname = \"x{n}\"\nbetween = [\"10.0.0.0/30\"]\ncount = 3",
        4,
        "link.count",
        "there can be 2",
    ),
    (
        "[[link]]\ncsv = \"missing.csv\"",
        5,
        "link.csv",
        "missing.csv",
    ),
    (
        "[[path]]\nname = \"p\"\nvia = [\"x\"]",
        6,
        "path.via",
        "no link 'x'",
    ),
    ("[[path]]\nname = \"p\"", 4, "path.via", "0 links"),
    (
        "[[link]]\nname = \"x\"\n[[path]]\nname = \"p\"\nvia = [\"x\", \"x.down\"]",
        8,
        "path.via",
        "a loop",
    ),
    (
        "[[link]]\nname = \"x\"\n[[path]]\nname = \"x\"\nvia = \"x\"",
        7,
        "path.name",
        "used twice",
    ),
    (
        "[switching]\nmode = \"hub\"",
        5,
        "switching.mode",
        "\"bridge\", \"pairs\", \"static\"",
    ),
    (
        "[switching]\npairs = [[\"a\", \"c\"]]",
        5,
        "switching.pairs",
        "no port 'c'",
    ),
    (
        "[switching]\npairs = [[\"a\", \"a\"]]",
        4,
        "switching",
        "paired with itself",
    ),
    (
        "[switching]\nstations = { x = \"a\" }",
        5,
        "switching.stations",
        "no Ethernet address",
    ),
    ("[switching]\nageing = \"5\"", 5, "switching.ageing", "unit"),
    (
        "[switching]\nstorm-burst = 5",
        4,
        "switching.storm-burst",
        "no limit",
    ),
    ("[[at]]\nset = {}", 4, "at.time", "no time"),
    ("[[at]]\ntime = \"5s\"", 4, "at", "nothing happens"),
    (
        "[[at]]\ntime = \"5s\"\ndown = \"x\"",
        6,
        "at.down",
        "no link 'x'",
    ),
    (
        "[[at]]\ntime = \"5s\"\npause = \"x*\"",
        6,
        "at.pause",
        "no link's name fits",
    ),
    (
        "[[at]]\ntime = \"5s\"\nmove = { x = \"y\" }\n[[link]]\nname = \"x\"",
        6,
        "at.move",
        "'y'",
    ),
    (
        "[[link]]\nname = \"x\"\n[[link]]\nname = \"y\"\nmatch = \"src=10.0.0.1\"\n[[at]]\ntime = \"5s\"\nmove = { x = \"y\" }",
        11,
        "at.move",
        "'x' has no matcher",
    ),
    (
        "[[link]]\nname = \"x\"\nmatch = \"src=10.0.0.1\"\n[[path]]\nname = \"p\"\nvia = [\"x\"]\n[[at]]\ntime = \"5s\"\nmove = { p = \"x\" }",
        12,
        "at.move",
        "'p' has no matcher",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\ndown = \"x\"\n[[at]]\ntime = \"4s\"\nup = \"x\"",
        10,
        "at.time",
        "before 5s",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\ndown = \"x\"\ntimes = 2",
        6,
        "at.every",
        "every = ",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\ndown = \"x\"\nevery = \"0s\"",
        9,
        "at.every",
        "no time at all",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\ndown = \"x\"\nevery = \"1ns\"",
        9,
        "at.every",
        "1000000000 times a second; at most 100000 are possible; write every = \"10us\"",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\nramp = { x = { option = \"delay\", from = \"1ms\", to = \"2ms\", time = \"1s\", steps = 1000000 } }",
        6,
        "at.ramp",
        "fewer steps",
    ),
    (
        "[[link]]\nname = \"x{n}\"\ncount = 150000\n[[at]]\ntime = \"5s\"\ndown = \"x*\"\nevery = \"500ms\"",
        10,
        "at.every",
        "write every = \"1.5s\" or more",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\ndown = \"x\"\nevery = \"16us\"\n[[at]]\ntime = \"6s\"\nup = \"x\"\nevery = \"16us\"",
        13,
        "at.every",
        "125000 times a second",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\nset = { x = { delay = \"-1ms\" } }",
        8,
        "at.set.x.delay",
        "negative",
    ),
    (
        "[[link]]\nname = \"x\"\n[[at]]\ntime = \"5s\"\nramp = { x = { option = \"delay\", from = \"normal:mean=1ms\", to = \"2ms\", time = \"1s\" } }",
        8,
        "at.ramp.x",
        "plain numbers",
    ),
];

#[test]
fn every_refusal_says_where_and_what() {
    for (text, line, field, said) in REFUSED {
        let problems = refused(text);
        assert_eq!(problems.len(), 1, "{text}\n{problems:?}");
        let problem = &problems[0];
        assert_eq!(
            (problem.line, problem.field.as_str()),
            (*line, *field),
            "{text}\n{problem}"
        );
        assert!(problem.column > 0, "{text}");
        assert!(!problem.remedy.is_empty(), "{problem}");
        assert!(problem.to_string().contains(said), "{said}: {problem}");
    }
}

#[test]
fn files_without_ports_and_ports_twice_are_refused() {
    let read = |text| Topology::parse("net.toml", text, Path::new("")).expect_err(text);
    assert_eq!(read("seed = 1")[0].field, "ports");
    let twice = read("[ports]\na = \"packet:eth1\"\nb = \"xdp:eth1\"\n");
    assert_eq!(
        (twice[0].line, twice[0].field.as_str()),
        (3, "ports.b"),
        "{twice:?}"
    );
    assert_eq!(read("[ports]\na = \"pocket:eth1\"\n")[0].field, "ports.a");
    // All lines that are not TOML are reported, and nothing that follows from them.
    let broken = read("[ports\na = 1\nb = = 2\n");
    assert!(
        broken.len() >= 2 && broken.iter().all(|problem| problem.line > 0),
        "{broken:?}"
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let problems =
        refused("[[link]]\nname = \"x\"\nrate = \"no\"\ndelay = \"no\"\n[[link]]\nname = \"x\"\n");
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [6, 7, 9]);
    let many: String = (0..300)
        .map(|_| "[[link]]\nrate = \"no\"\nname = \"a\"\n")
        .collect();
    let problems = refused(&many);
    assert_eq!(problems.len(), problem::PROBLEMS_MAX + 1);
    assert!(
        problems
            .last()
            .is_some_and(|last| last.reason.contains("499 more")),
        "{problems:?}"
    );
}
