//! Control API requests: any path, query, body and requested change is either accepted or refused
//! with one line of text. A refused or rolled-back change leaves the topology unchanged.
//!
//! The input is a line with method and target, `PATCH /v1/links/a?in=2s`, followed by the body.

use std::collections::HashMap;
use std::path::Path;

use longwire_control::requested_change;
use longwire_runtime::{FileAccess, FileLoader, PluginUse};
use longwire_topology::{StartFiles, Topology};

use super::head_line;
use super::topology::is_small;

/// Network to change: separate and shared links, a path over two of them, ports in a bridge.
const NETWORK: &str = r#"
[ports]
a = "null"
b = "null"
c = "null"

[defaults]
delay = "5ms"

[templates.slow]
rate = "1mbit"

[[link]]
name = "one"
match = "src=10.0.0.1"
down = { match = "dst=10.0.0.1" }

[[link]]
name = "two{n}"
count = 3
template = "slow"
shared = true
match = "vlan={n}"

[[path]]
name = "both"
via = ["one", "two1"]
match = "src=10.1.0.1,dst=10.1.0.2"
"#;

/// Reason to refuse every file, like a run without `--control-files`.
const REFUSED: &str = "no files";

/// Parses a request and reads its change; a refused or reverted change must leave the network as it
/// was.
pub fn check(data: &[u8]) {
    let Some((head, body)) = head_line(data) else {
        return;
    };
    let (method, target) = head.split_once(' ').unwrap_or((head, ""));
    let change = match requested_change(method, target, body) {
        Ok(Some(change)) => change,
        Ok(None) => return,
        Err(error) => {
            assert!(!error.is_empty(), "refused without a reason");
            return;
        }
    };
    if !is_small(&change.to_string()) {
        return;
    }
    let mut topology = Topology::parse("network", NETWORK, Path::new("/nowhere"))
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let before = shape(&topology);
    let access = FileAccess::Nothing(REFUSED);
    let loader = FileLoader::new().with_access(access);
    let files = StartFiles::of(loader.with_plugins(PluginUse::Refuse(REFUSED)));
    match topology.read_change(&change, &HashMap::new(), &files) {
        Ok(change) => topology.revert(&change.added),
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for problem in problems {
                assert!(!problem.reason.is_empty(), "{problem:?}");
            }
        }
    }
    assert_eq!(shape(&topology), before, "{change}");
}

/// Returns the parts of a topology that a refused change must not alter.
fn shape(topology: &Topology) -> (Vec<String>, usize, Vec<bool>) {
    let links = topology.links.iter().map(|link| link.name.to_string());
    let paths = topology.paths.iter().map(|path| path.name.to_string());
    let names: Vec<String> = links.chain(paths).collect();
    let others = ["new", "new1", "new2"];
    let known = names.iter().map(String::as_str).chain(others);
    let known = known.map(|name| topology.named(name).is_some()).collect();
    (names, topology.rules.len(), known)
}
