use std::collections::HashMap;
use std::path::Path;

use longwire_engine::Nanos;
use longwire_packet::classify::Order;

use super::files::StartFiles;
use super::summary::Summary;
use super::*;

mod attach;
mod carrier;
mod cluster;
mod import;
mod refused;
mod rows;

/// Ports of the tested topologies.
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

#[test]
fn two_subnets_make_a_link_per_pair_of_hosts() {
    let text = "[[link]]\nname = \"x{n}\"\nbetween = [\"10.1.0.0/22\", \"10.2.0.0/22\"]\nrate = \"1mbit\"\n";
    let topology = good(text);
    assert_eq!((topology.links.len(), topology.rules.len()), (1022, 2044));
    let up = "src=10.1.3.254,dst=10.2.3.254: x1022.up";
    let down = "src=10.2.3.254,dst=10.1.3.254: x1022.down";
    assert_eq!(rules_in_words(&topology)[2042..], [up, down]);
    assert_eq!(topology.named("x1022"), Some(Class::Link(1021)));
    let all = good(
        "[[link]]\nname = \"{a}:{b}\"\nbetween = [\"10.1.0.0/30\", \"10.2.0.0/31\"]\npairing = \"all\"\n",
    );
    let names: Vec<&str> = all.links.iter().map(|link| &*link.name).collect();
    let [first, second] =
        ["10.1.0.1", "10.1.0.2"].map(|a| [0, 1].map(|b| format!("{a}:10.2.0.{b}")));
    assert_eq!(names, [first, second].concat());
}

#[test]
fn the_only_link_between_two_ports_needs_no_match() {
    let topology = good("[[link]]\nname = \"x\"\nrate = \"1mbit\"\n");
    assert!(topology.warnings.is_empty(), "{:?}", topology.warnings);
    let rules = ["in-port=a: x.up", "in-port=b: x.down"];
    assert_eq!(rules_in_words(&topology), rules);
    let shared = good("[[link]]\nname = \"x\"\nshared = true\n");
    let rules = ["in-port=a: x.up", "in-port=b: x.up"];
    assert_eq!(rules_in_words(&shared), rules);
    // With several links, or with `unmatched`, no link has an implicit matcher.
    let two = good("[[link]]\nname = \"x\"\n[[link]]\nname = \"y\"\n");
    assert!(two.rules.is_empty());
    let parse = |text: String| Topology::parse("n", &text, Path::new("")).expect("good");
    let dropped = parse(format!(
        "unmatched = \"drop\"\n{PORTS}[[link]]\nname = \"x\"\n"
    ));
    assert!(dropped.rules.is_empty());
    let three = parse(format!(
        "{PORTS}c = \"packet:eth3\"\n[[link]]\nname = \"x\"\n"
    ));
    assert!(three.rules.is_empty() && three.warnings.len() == 1);
}

#[test]
fn no_host_is_paired_with_itself() {
    let names = |networks: &str, more: &str| {
        let text = format!(
            "[[link]]\nname = \"{{n}}-{{a}}-{{b}}\"\nbetween = [{networks}]\npairing = \"all\"\n{more}"
        );
        let links = good(&text).links.into_iter();
        links.map(|link| link.name.to_string()).collect::<Vec<_>>()
    };
    let twice = names("\"10.0.0.0/30\", \"10.0.0.0/30\"", "");
    assert_eq!(twice, ["1-10.0.0.1-10.0.0.2", "2-10.0.0.2-10.0.0.1"]);
    // The subnets overlap: both contain hosts 1 and 2.
    let overlap = names("\"10.0.0.0/30\", \"10.0.0.0/29\"", "");
    assert_eq!(overlap.len(), 2 * 6 - 2);
    assert_eq!(overlap[5], "6-10.0.0.2-10.0.0.1");
    let first = names("\"10.0.0.0/30\", \"10.0.0.0/30\"", "count = 1\n");
    assert_eq!(first, twice[..1]);
}

#[test]
fn options_of_the_link_override_template_and_defaults() {
    let text = "[defaults]\nrate = \"1mbit\"\ndelay = \"1ms\"\nmtu = 1400\n[templates.t]\ndelay = \"2ms\"\n\
                down = { rate = \"3mbit\" }\n[[link]]\nname = \"x\"\ntemplate = \"t\"\nup = { delay = \"4ms\" }\n\
                match = \"in-port=a\"\n";
    let topology = good(text);
    let link = &topology.links[0];
    assert_eq!(link.up.to_string(), "rate=1mbit delay=4ms mtu=1400");
    let down = link.down.as_ref().expect("two directions");
    assert_eq!(down.to_string(), "rate=3mbit delay=2ms mtu=1400");
    // With two paired ports, frames of direction down enter at the second port.
    assert_eq!(topology.rules[1].matcher.to_string(), "in-port=1");
}

#[test]
fn direction_down_crosses_a_path_backwards() {
    let text = "unmatched = \"link:x\"\nclassify = \"specific\"\n";
    let text = format!(
        "{text}{PORTS}[[link]]\nname = \"x\"\n[[link]]\nname = \"y\"\n[[path]]\nname = \"p\"\nvia = [\"x\", \"y.down\"]\nmatch = \"src=1.1.1.1\"\n"
    );
    let topology = Topology::parse("n", &text, Path::new("")).expect("good");
    let hops = |direction| topology.paths[0].hops(direction);
    let [x, y] =
        [(0, Direction::Up), (1, Direction::Down)].map(|(link, direction)| Hop { link, direction });
    assert_eq!(hops(Direction::Up), [x, y]);
    let back = [y, x].map(|hop| Hop {
        direction: hop.direction.reversed(),
        ..hop
    });
    assert_eq!(hops(Direction::Down), back);
    assert_eq!(topology.unmatched, Unmatched::Link(0));
    assert_eq!(topology.order, Order::MostSpecific);
    assert!(topology.warnings.is_empty(), "{:?}", topology.warnings);
}

#[test]
fn unused_links_and_unreachable_rules_are_reported() {
    let unused = good("[[link]]\nname = \"x\"\n[[link]]\nname = \"y\"\nmatch = \"src=1.1.1.1\"\n");
    assert_eq!(unused.warnings[0].line, 4, "{:?}", unused.warnings);
    let path = good("[[link]]\nname = \"x\"\n[[path]]\nname = \"p\"\nvia = \"x\"\n");
    assert_eq!(path.warnings[0].field, "path.match");
    let same = good(
        "[[link]]\nname = \"x\"\nmatch = \"in-port=a\"\n[[link]]\nname = \"y\"\nmatch = \"in-port=a,dport=53\"\n",
    );
    let doubts = same.doubts().join("\n");
    let said = "'in-port=a' of x.up precedes it";
    assert!(doubts.contains(said), "{doubts}");
    let doubts = good("[[link]]\nname = \"x\"\nmatch = \"src=10.0.0.0/8\"\n[[link]]\nname = \"y\"\nmatch = [\"src=10.1.0.0/16\", \"dst=9.9.9.9\"]\n").doubts().join("\n");
    assert!(doubts.contains("of y.up can never match"), "{doubts}");
    assert!(doubts.contains("overlap"), "{doubts}");
}

/// Formats each rule as `matcher: link.direction`.
fn rules_in_words(topology: &Topology) -> Vec<String> {
    let rules = topology.rules.iter().map(|rule| {
        let Target { class, direction } = rule.target;
        let matcher = topology.matcher_in_words(&rule.matcher);
        let name = topology.name_of(class);
        format!("{matcher}: {name}.{}", direction.name())
    });
    rules.collect()
}

/// Between two ports, a matcher without an endpoint selects frames from the first port.
#[test]
fn matchers_without_an_address_select_frames_of_the_first_port() {
    let link = |name: &str, text: &str| format!("[[link]]\nname = '{name}'\nmatch = '{text}'\n");
    for (text, up, down) in [
        ("any", "in-port=a", "in-port=b"),
        ("dport=53", "dport=53,in-port=a", "sport=53,in-port=b"),
        ("proto=udp", "proto=udp,in-port=a", "proto=udp,in-port=b"),
        (
            "dport=53,in-port=b",
            "dport=53,in-port=b",
            "sport=53,in-port=a",
        ),
        ("src=10.0.0.1", "src=10.0.0.1", "dst=10.0.0.1"),
    ] {
        let expected = [format!("{up}: x.up"), format!("{down}: x.down")];
        assert_eq!(rules_in_words(&good(&link("x", text))), expected, "{text}");
    }
    // A specific link followed by a catch-all link.
    for special in ["dport=53", "src=10.0.0.1,dport=53", "dst=10.0.0.0/8"] {
        for rest in ["any", "in-port=a"] {
            let topology = good(&(link("x", special) + &link("y", rest)));
            assert_eq!(topology.doubts(), Vec::<String>::new(), "{special} {rest}");
        }
    }
    // In the opposite order, no frame reaches the specific link.
    let doubts = good(&(link("y", "any") + &link("x", "dport=53"))).doubts();
    assert_eq!(doubts.len(), 2, "{doubts:?}");
}

#[test]
fn a_ramp_that_replaces_another_model_is_reported() {
    let ramp = |loss: &str| {
        let link = "[[link]]\nname = \"x\"\nmatch = \"any\"\n";
        let ramp = "[[at]]\ntime = \"0s\"\nramp = { x = { option = \"loss\", from = \"1%\", to = \"50%\", time = \"1s\" } }\n";
        good(&format!("{link}loss = \"{loss}\"\n{ramp}")).doubts()
    };
    assert_eq!(ramp("2%"), Vec::<String>::new());
    let doubt = "the ramp of loss replaces 'packet:rate=1%,run-max=1' of 'x' with plain values; its other parameters are lost";
    assert_eq!(ramp("packet:rate=1%,run-max=1"), [doubt]);
}

#[test]
fn directions_of_one_link_may_match_the_same_frames() {
    // Both directions match frames within one subnet.
    let link =
        |name: &str, net: &str| format!("[[link]]\nname = \"{name}\"\nmatch = \"src={net}\"\n");
    let one = good(&link("x", "10.0.0.0/8"));
    assert_eq!(one.doubts(), Vec::<String>::new());
    let two = good(&(link("x", "10.0.0.0/8") + &link("y", "11.0.0.0/8"))).doubts();
    assert!(!two.is_empty(), "both links match some frames");
    let apart = |doubt: &String| doubt.contains("of x.") && doubt.contains("of y.");
    assert!(two.iter().all(apart), "{two:?}");
}

#[test]
fn a_scenario_without_topology_is_refused() {
    let text = "[[at]]\ntime = \"1s\"\noff = [\"x\"]\n";
    let problems =
        Topology::parse("call.toml", text, Path::new("")).expect_err("a scenario, not a topology");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let said = problems[0].to_string();
    assert!(said.contains("it is a scenario"), "{said}");
    let remedy = "check network.toml --scenario call.toml";
    assert!(said.contains(remedy), "{said}");
    let empty = Topology::parse("none.toml", "", Path::new("")).expect_err("an empty file");
    assert!(!empty[0].reason.contains("scenario"), "{empty:?}");
}

/// A doubtful value causes one warning, at its first occurrence; a doubtful combination causes one
/// at its link.
#[test]
fn doubtful_values_give_one_warning() {
    let link = |name: &str| {
        format!("[[link]]\nname = \"x{name}\"\nmatch = \"src=1.1.1.{name}\"\nrate = \"10Mbps\"\n")
    };
    let text = link("1") + &link("2");
    let found = good(&text).warnings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].line, found[0].field.as_str()), (7, "link.rate"));
    assert!(found[0].reason.contains("10Mbps is 80mbit"), "{found:?}");
}

/// Each change warns again, because its sender has not seen the responses to earlier ones.
#[test]
fn doubtful_values_of_a_change_give_a_warning_each_time() {
    let mut topology = good("[[link]]\nname = \"x\"\nmatch = \"src=1.1.1.1\"\n");
    let body = serde_json::json!({ "set": { "x": { "rate": "10Mbps" } } });
    let files = StartFiles::any();
    for _ in 0..2 {
        let change = topology.read_change(&body, &HashMap::new(), &files);
        let warnings = change.expect("a valid change").warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let reason = &warnings[0].reason;
        assert!(reason.contains("10Mbps is 80mbit"), "{reason}");
    }
}

#[test]
fn a_change_warns_of_the_added_link_that_no_frame_crosses() {
    let link = |name: &str| format!("[[link]]\nname = \"{name}\"\nmatch = \"src=1.1.1.{name}\"\n");
    let mut topology = good(&(link("1") + &link("2")));
    let added = serde_json::json!([{ "name": "3", "match": "src=1.1.1.3" }, { "name": "4" }]);
    let body = serde_json::json!({ "add": { "link": added } });
    let change = topology.read_change(&body, &HashMap::new(), &StartFiles::any());
    let warnings = change.expect("a valid change").warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let reason = &warnings[0].reason;
    assert!(
        reason.starts_with("no frame crosses link '4': "),
        "{reason}"
    );
}

#[test]
fn ramps_and_unlimited_repetitions_are_ordered_by_time() {
    let text = "[[link]]\nname = \"x\"\nmatch = \"src=1.1.1.1\"\n[[at]]\ntime = \"1s\"\nevery = \"4s\"\n\
        ramp = { x = { option = \"rate\", from = \"10mbit\", to = \"1mbit\", time = \"2s\", steps = 2 } }\n\
        [[at]]\ntime = \"2s\"\noff = \"x\"\nevery = \"1s\"\ntimes = 2\n";
    let topology = good(text);
    let expected = [
        "1s: x: ramp rate from 10mbit to 1mbit over 2s in 2 steps, repeats every 4s",
        "2s: x is off, every 1s, 2 times",
    ];
    assert_eq!(Summary::of(&topology).timeline, expected);
    let timeline = topology.timeline;
    assert_eq!(timeline.end(), None);
    let shown = timeline.commands().take(9).map(|command| {
        let what = match &command.actions[0] {
            Action::Set { options, .. } => options.texts("rate").concat(),
            Action::State { state, .. } => state.name().to_owned(),
            Action::Move { .. } => unreachable!("nothing is moved"),
        };
        (command.at.map_or(0, Nanos::as_nanos) / 1_000_000, what)
    });
    let shown: Vec<(u64, String)> = shown.collect();
    let expected = [
        (1000, "10000000bit"),
        (2000, "5500000bit"),
        (2000, "off"),
        (3000, "1000000bit"),
        (3000, "off"),
        (5000, "10000000bit"),
        (6000, "5500000bit"),
        (7000, "1000000bit"),
        (9000, "10000000bit"),
    ];
    assert_eq!(shown, expected.map(|(at, what)| (at, what.to_owned())));
}

#[test]
fn the_examples_are_valid_without_warnings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/topologies");
    let links = [
        ("households", 1000),
        ("satellite", 3),
        ("datacentre", 1000),
        ("parking-lot", 3),
        ("linkem", 9),
        ("routers", 2),
    ];
    for (name, count) in links {
        let topology = Topology::read(&folder.join(format!("{name}.toml")));
        let topology = topology.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(topology.links.len(), count, "{name}");
        assert_eq!(topology.warnings, [], "{name}");
        assert_eq!(topology.doubts(), Vec::<String>::new(), "{name}");
        // Ramps compute values at run time; an invalid value would be skipped.
        for command in topology.timeline.commands().take(100) {
            for action in &command.actions {
                if let Action::Set { options, .. } = action {
                    assert!(!options.is_empty(), "{name}: {action:?}");
                }
            }
        }
        let summary = Summary::of(&topology);
        let directions: usize = summary.kinds.iter().map(|kind| kind.directions).sum();
        assert_eq!(directions, topology.engine_links(), "{name}");
        assert!(summary.rate.is_some(), "{name}");
        assert!(summary.lines().len() > 4, "{name}");
    }
}

/// The parser and the schema agree on all fields, including link options.
#[test]
fn the_schema_has_the_fields_of_the_parser() {
    let schema = schema::schema();
    let link = &schema["properties"]["link"]["items"]["properties"];
    for option in &longwire_engine::PARTS {
        assert!(link.get(option.name).is_some(), "{}", option.name);
    }
    for field in fields::FILE.fields {
        let described = &schema["properties"][field.name];
        assert_eq!(described["description"], field.help);
        let wrong = format!("{} = 1979-05-27\n{PORTS}", field.name);
        let problems = Topology::parse("n", &wrong, Path::new("")).expect_err(field.name);
        let reason = &problems[0].reason;
        assert!(!reason.contains("unknown key"), "{}: {reason}", field.name);
    }
    assert_eq!(schema["additionalProperties"], false);
}
