//! Topology files: any text is either parsed or refused, and every error names the fault and its
//! place. A parsed topology is consistent: rules refer to existing links and paths, paths cross
//! existing links, and commands are in time order.

use std::path::Path;

use longwire_topology::{Class, Topology, Unmatched};

/// A missing folder, so that no CSV file is found.
const NOWHERE: &str = "/nowhere";

/// Maximum number of scenario commands to check; some scenarios are endless.
const COMMANDS_MAX: usize = 1000;

/// Parses a text as a topology file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if !is_small(text) {
        return;
    }
    match Topology::parse("fuzz.toml", text, Path::new(NOWHERE)) {
        Ok(topology) => check_topology(&topology),
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for problem in problems {
                assert!(!problem.reason.is_empty(), "{problem:?}");
                assert!(problem.line <= text.lines().count() + 1, "{problem:?}");
            }
        }
    }
}

/// Returns whether a text defines few links and names no system files. Millions of links are valid
/// but exceed a fuzzer's time and memory, and a system file may be endless.
pub fn is_small(text: &str) -> bool {
    const DIGITS_MAX: usize = 4;
    let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '_');
    let few = |number: &str| number.len() <= DIGITS_MAX;
    // A number after a slash is a prefix length. 24 and 112 bits leave 256 and 65,536 hosts; prefix
    // lengths in between leave more hosts than accepted.
    let mut prefixes = text.split('/').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse::<u32>()
    });
    let narrow = prefixes.all(|bits| match bits {
        Ok(bits) => (24..=96).contains(&bits) || bits >= 120,
        Err(_) => true,
    });
    let system = ["/dev", "/proc", "/sys"].iter();
    numbers.into_iter().all(few) && narrow && system.into_iter().all(|path| !text.contains(path))
}

fn check_topology(topology: &Topology) {
    let there = |class: Class| match class {
        Class::Link(link) => (link as usize) < topology.links.len(),
        Class::Path(path) => (path as usize) < topology.paths.len(),
    };
    assert!(topology.rules.iter().all(|rule| there(rule.target.class)));
    let hops = topology.paths.iter().flat_map(|path| &path.hops);
    assert!(hops.into_iter().all(|hop| there(Class::Link(hop.link))));
    if let Unmatched::Link(link) = topology.unmatched {
        assert!(there(Class::Link(link)));
    }
    let times = topology.timeline.commands().take(COMMANDS_MAX);
    let times: Vec<_> = times.map(|command| command.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}
