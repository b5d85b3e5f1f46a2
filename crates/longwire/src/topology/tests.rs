use std::path::Path;

use longwire_engine::Nanos;
use longwire_engine::classify::Order;

use super::summary::Summary;
use super::*;

/// Two ports, so that what is tested stands alone.
const PORTS: &str = "[ports]\na = \"packet:eth1\"\nb = \"packet:eth2\"\n";

fn parse(text: &str) -> Result<Topology, Vec<Problem>> {
    Topology::parse("net.toml", &format!("{PORTS}{text}"), Path::new(""))
}

fn good(text: &str) -> Topology {
    parse(text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn refused(text: &str) -> Vec<Problem> {
    parse(text).expect_err(text)
}

/// Every refusal there is: what is written behind the ports, the line and the
/// field of the one problem, and a part of what is said.
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
    // All lines that are not TOML are told of, and nothing that follows.
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

#[test]
fn one_line_makes_a_thousand_links_forth_and_back() {
    let text = "[[link]]\nname = \"x{n}\"\nbetween = [\"10.1.0.0/22\", \"10.2.0.0/22\"]\nrate = \"1mbit\"\n";
    let topology = good(text);
    assert_eq!((topology.links.len(), topology.rules.len()), (1022, 2044));
    let last = &topology.rules[2042..];
    assert_eq!(last[0].matcher.to_string(), "src=10.1.3.254,dst=10.2.3.254");
    assert_eq!(last[1].matcher.to_string(), "src=10.2.3.254,dst=10.1.3.254");
    let link = Class::Link(1021);
    assert_eq!(topology.named("x1022"), Some(link));
    assert_eq!(
        last.iter().map(|rule| rule.target.way).collect::<Vec<_>>(),
        [Way::Up, Way::Down]
    );
    assert!(last.iter().all(|rule| rule.target.class == link));
    let all = good(
        "[[link]]\nname = \"{a}:{b}\"\nbetween = [\"10.1.0.0/30\", \"10.2.0.0/31\"]\npairing = \"all\"\n",
    );
    let names: Vec<&str> = all.links.iter().map(|link| &*link.name).collect();
    assert_eq!(
        names,
        [
            "10.1.0.1:10.2.0.0",
            "10.1.0.1:10.2.0.1",
            "10.1.0.2:10.2.0.0",
            "10.1.0.2:10.2.0.1"
        ]
    );
}

#[test]
fn options_lie_over_each_other_from_defaults_to_the_link() {
    let text = "[defaults]\nrate = \"1mbit\"\ndelay = \"1ms\"\nmtu = 1400\n[templates.t]\ndelay = \"2ms\"\n\
                down = { rate = \"3mbit\" }\n[[link]]\nname = \"x\"\ntemplate = \"t\"\nup = { delay = \"4ms\" }\n\
                match = \"in-port=a\"\n";
    let topology = good(text);
    let link = &topology.links[0];
    let of = |options: &longwire_engine::LinkOptions| {
        [&options.rate, &options.delay, &options.mtu].map(|text| text.clone().unwrap_or_default())
    };
    assert_eq!(of(&link.up), ["1mbit", "4ms", "1400"]);
    assert_eq!(
        of(link.down.as_ref().expect("two directions")),
        ["3mbit", "2ms", "1400"]
    );
    // With two ports, which are a pair, the way back comes from the other.
    assert_eq!(topology.rules[1].matcher.to_string(), "in-port=1");
}

#[test]
fn paths_are_crossed_backwards_on_the_way_back() {
    let text = "unmatched = \"link:x\"\nclassify = \"specific\"\n";
    let text = format!(
        "{text}{PORTS}[[link]]\nname = \"x\"\n[[link]]\nname = \"y\"\n[[path]]\nname = \"p\"\nvia = [\"x\", \"y.down\"]\nmatch = \"src=1.1.1.1\"\n"
    );
    let topology = Topology::parse("n", &text, Path::new("")).expect("good");
    let hops = |way| {
        let hops = topology.paths[0].hops(way).into_iter();
        hops.map(|hop| (hop.link, hop.way)).collect::<Vec<_>>()
    };
    assert_eq!(hops(Way::Up), [(0, Way::Up), (1, Way::Down)]);
    assert_eq!(hops(Way::Down), [(1, Way::Up), (0, Way::Down)]);
    assert_eq!(
        (topology.unmatched, topology.order),
        (Unmatched::Link(0), Order::MostSpecific)
    );
    assert!(topology.warnings.is_empty(), "{:?}", topology.warnings);
}

#[test]
fn what_is_probably_not_meant_is_warned_of() {
    let unused = good("[[link]]\nname = \"x\"\n");
    assert_eq!(unused.warnings[0].line, 4, "{:?}", unused.warnings);
    let path = good("[[link]]\nname = \"x\"\n[[path]]\nname = \"p\"\nvia = \"x\"\n");
    assert_eq!(path.warnings[0].field, "path.match");
    let doubts = good("[[link]]\nname = \"x\"\nmatch = \"src=10.0.0.0/8\"\n[[link]]\nname = \"y\"\nmatch = [\"src=10.1.0.0/16\", \"dst=9.9.9.9\"]\n").doubts();
    assert!(
        doubts
            .iter()
            .any(|doubt| doubt.contains("of y.up can never match")),
        "{doubts:?}"
    );
    assert!(
        doubts
            .iter()
            .any(|doubt| doubt.contains("match some frames both")),
        "{doubts:?}"
    );
}

#[test]
fn ramps_and_repetitions_come_in_order_of_time_and_without_end() {
    let text = "[[link]]\nname = \"x\"\nmatch = \"src=1.1.1.1\"\n[[at]]\ntime = \"1s\"\nevery = \"4s\"\n\
        ramp = { x = { option = \"rate\", from = \"10mbit\", to = \"1mbit\", time = \"2s\", steps = 2 } }\n\
        [[at]]\ntime = \"2s\"\ndown = \"x\"\nevery = \"1s\"\ntimes = 2\n";
    let timeline = good(text).timeline;
    assert_eq!(timeline.end(), None);
    let shown = timeline.commands().take(9).map(|command| {
        let what = match &command.actions[0] {
            Action::Set { options, .. } => options.rate.clone().unwrap_or_default(),
            Action::State { state, .. } => state.name().to_owned(),
            Action::Move { .. } => unreachable!("nothing is moved"),
        };
        (command.at.map_or(0, Nanos::as_nanos) / 1_000_000, what)
    });
    let shown: Vec<(u64, String)> = shown.collect();
    let expected = [
        (1000, "10000000bit"),
        (2000, "5500000bit"),
        (2000, "down"),
        (3000, "1000000bit"),
        (3000, "down"),
        (5000, "10000000bit"),
        (6000, "5500000bit"),
        (7000, "1000000bit"),
        (9000, "10000000bit"),
    ];
    assert_eq!(shown, expected.map(|(at, what)| (at, what.to_owned())));
}

#[test]
fn names_of_links_fit_patterns() {
    for (pattern, name, fits) in [
        ("dsl*", "dsl12", true),
        ("dsl*", "ds", false),
        ("*", "", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*a*b", "xaybzb", true),
        ("*a*b", "xaybz", false),
        ("é?", "éé", true),
    ] {
        assert_eq!(glob::fits(pattern, name), fits, "{pattern} {name}");
    }
}

#[test]
fn the_examples_are_right_and_nothing_in_them_is_doubtful() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/topologies");
    let links = [
        ("households", 1000),
        ("satellite", 3),
        ("datacentre", 1000),
        ("parking-lot", 3),
        ("linkem", 9),
    ];
    for (name, count) in links {
        let topology = Topology::read(&folder.join(format!("{name}.toml")));
        let topology = topology.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(topology.links.len(), count, "{name}");
        assert!(
            topology.warnings.is_empty(),
            "{name}: {:?}",
            topology.warnings
        );
        let doubts = topology.doubts();
        assert!(doubts.is_empty(), "{name}: {doubts:?}");
        // What ramps make is read when its time comes, and must be right then.
        for command in topology.timeline.commands().take(100) {
            for action in &command.actions {
                if let Action::Set { options, .. } = action {
                    assert!(options.parse().is_ok(), "{name}: {options:?}");
                }
            }
        }
        let summary = Summary::of(&topology);
        assert_eq!(
            summary
                .kinds
                .iter()
                .map(|kind| kind.directions)
                .sum::<usize>(),
            topology.engine_links()
        );
        assert!(
            summary.rate.is_some() && summary.lines().len() > 4,
            "{name}"
        );
    }
}

/// Whatever the schema has, the reader knows, and the other way round: both
/// follow one table, and this holds the link options to it too.
#[test]
fn the_schema_is_what_the_reader_takes() {
    let schema = schema::schema();
    let link = &schema["properties"]["link"]["items"]["properties"];
    for option in crate::cli::link_options() {
        assert!(link.get(option.name).is_some(), "{}", option.name);
    }
    for field in fields::FILE.fields {
        let described = &schema["properties"][field.name];
        assert_eq!(described["description"], field.help);
        let wrong = format!("{} = 1979-05-27\n{PORTS}", field.name);
        let problems = Topology::parse("n", &wrong, Path::new("")).expect_err(field.name);
        let reason = &problems[0].reason;
        assert!(!reason.contains("there is no"), "{}: {reason}", field.name);
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn scripts_of_emulab_become_topologies_that_are_right() {
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
    let hops = topology.paths[path as usize].hops(Way::Up).into_iter();
    let hops: Vec<(&str, Way)> = hops
        .map(|hop| (&*topology.links[hop.link as usize].name, hop.way))
        .collect();
    assert_eq!(
        hops,
        [
            ("access", Way::Up),
            ("lan0-r", Way::Up),
            ("lan0-n-2", Way::Down)
        ]
    );
    let lan = &topology.links[2].up;
    assert_eq!(
        (lan.delay.as_deref(), lan.loss[0].as_str()),
        (Some("1ms"), "1%"),
        "{toml}"
    );
    let one = &topology.links[1];
    let down = one.down.as_ref().expect("two directions");
    assert_eq!(
        (down.queue.as_deref(), one.up.queue.as_deref()),
        (Some("20p"), Some("50p"))
    );
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
