//! Link names in conditions.

use longwire_runtime::suggest;

/// Parses a direction: `up` or `ab`, `down` or `ba`.
fn direction(name: &str) -> Option<&'static str> {
    match name {
        "up" | "ab" => Some("up"),
        "down" | "ba" => Some("down"),
        _ => None,
    }
}

/// Strips the direction from a name; `None` without one.
fn without_direction(name: &str) -> Option<&str> {
    let (link, way) = name.rsplit_once('.')?;
    matches!(way, "up" | "down").then_some(link)
}

/// Returns the indices of the places that a name means: the one with this name; a direction
/// of the only link; or both directions of a link.
pub(super) fn named(name: &str, names: &[&str]) -> Vec<usize> {
    let chosen = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|index| is(names[*index])).collect()
    };
    let found = chosen(&|known| known == name);
    if !found.is_empty() {
        return found;
    }
    let Some(way) = direction(name) else {
        return chosen(&|known| without_direction(known) == Some(name));
    };
    let mut directions = names.iter().filter_map(|known| without_direction(known));
    let Some(only) = directions.next() else {
        return Vec::new();
    };
    if directions.any(|other| other != only) {
        return Vec::new();
    }
    let wanted = format!("{only}.{way}");
    chosen(&|known| known == wanted)
}

/// Maximum names listed.
const LISTED_MAX: usize = 12;

/// Returns an error with the links that exist.
pub(super) fn no_such_link(clause: &str, name: &str, names: &[&str]) -> String {
    let known = known(name, names, "were");
    format!("{clause}: no link named '{name}'; {known}")
}

/// Returns a similar name, or the links that there `are` or `were`.
pub(super) fn known(name: &str, names: &[&str], are: &str) -> String {
    match suggest::closest(name, names.iter().copied()) {
        Some(close) => format!("did you mean '{close}'?"),
        None if names.is_empty() => format!("there {are} none"),
        None => {
            let listed: Vec<&str> = names.iter().take(LISTED_MAX).copied().collect();
            let more = match names.len().saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("there {are} {}{more}", listed.join(", "))
        }
    }
}
