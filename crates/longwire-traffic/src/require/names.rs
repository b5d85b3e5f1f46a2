//! Names of links in conditions, and for readers.

use longwire_runtime::{LinkReport, suggest};

/// Returns the name of a direction for readers: the only link of a run is `link`, as in
/// `ctl set link.up`, also where the report's JSON has `up` or `ab`.
pub fn link_name(name: &str) -> &str {
    match name {
        "up" | "ab" => "link.up",
        "down" | "ba" => "link.down",
        name => name,
    }
}

/// Returns the direction of a name: `up` is `ab`, `down` is `ba`.
fn direction(name: &str) -> Option<&'static str> {
    match name {
        "up" | "ab" => Some("up"),
        "down" | "ba" => Some("down"),
        _ => None,
    }
}

/// Removes the direction from a name; `None` without a direction.
fn without_direction(name: &str) -> Option<&str> {
    let (link, way) = name.rsplit_once('.')?;
    matches!(way, "up" | "down").then_some(link)
}

/// The name of the link of `run A B` and `exec` with --control.
const SINGLE_LINK: &str = "link";

/// Whether this is a direction of the only link of a run.
fn is_direction(link: &LinkReport) -> bool {
    direction(&link.name).is_some()
}

/// Returns the links of a name: the one with this name; a direction of the only
/// link; or both directions of a link.
pub(super) fn named<'a>(name: &str, links: &'a [LinkReport]) -> Vec<&'a LinkReport> {
    let same = |link: &&LinkReport| {
        link.name == name || (direction(name).is_some() && direction(name) == direction(&link.name))
    };
    let found: Vec<&LinkReport> = links.iter().filter(same).collect();
    if !found.is_empty() {
        return found;
    }
    // The names that the same link has with --control.
    match name.strip_prefix(SINGLE_LINK) {
        Some("") if links.iter().all(is_direction) => return links.iter().collect(),
        Some(rest) if links.iter().all(is_direction) => {
            return rest
                .strip_prefix('.')
                .map_or(Vec::new(), |way| named(way, links));
        }
        _ => {}
    }
    let Some(way) = direction(name) else {
        let of_it = |link: &&LinkReport| without_direction(&link.name) == Some(name);
        return links.iter().filter(of_it).collect();
    };
    let mut directions = links
        .iter()
        .filter_map(|link| without_direction(&link.name));
    let Some(only) = directions.next() else {
        return Vec::new();
    };
    if directions.any(|other| other != only) {
        return Vec::new();
    }
    let wanted = format!("{only}.{way}");
    links.iter().filter(|link| link.name == wanted).collect()
}

/// How many links a sentence lists.
const LISTED_MAX: usize = 12;

/// Returns an error with the links that exist.
pub(super) fn no_such_link(clause: &str, name: &str, links: &[LinkReport]) -> String {
    let known = known(name, links, "were");
    format!("{clause}: the run had no such link '{name}'; {known}")
}

/// Returns a similar name, or the links that there `are` or `were`.
pub(super) fn known(name: &str, links: &[LinkReport], are: &str) -> String {
    let names = || links.iter().map(|link| link_name(&link.name));
    match suggest::closest(name, names()) {
        Some(close) => format!("did you mean '{close}'?"),
        None if links.is_empty() => format!("there {are} none"),
        None => {
            let listed: Vec<&str> = names().take(LISTED_MAX).collect();
            let more = match links.len().saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("there {are} {}{more}", listed.join(", "))
        }
    }
}
