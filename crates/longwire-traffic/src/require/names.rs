//! Names of links in conditions.

use longwire_runtime::{LinkReport, suggest};

/// Returns the direction that a short name means: as the options, `up` or `ab`.
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

/// Returns the links of a name: the one with this name; a direction of the only
/// link; or both directions of a link.
pub(super) fn named<'a>(name: &str, links: &'a [LinkReport]) -> Vec<&'a LinkReport> {
    let found: Vec<&LinkReport> = links.iter().filter(|link| link.name == name).collect();
    if !found.is_empty() {
        return found;
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
    let names = || links.iter().map(|link| link.name.as_str());
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
