//! `[[path]]`: links in series.

use super::builder::{Builder, Matches, split_direction};
use super::plan::{Class, Direction, Hop, PathPlan};
use super::problem::Place;
use super::tree::{self, Placed};
use super::value::Table;

/// Maximum number of links in a path.
const HOPS_MAX: usize = 1024;

/// Reads a path. Requires all links to have been read.
pub(super) fn read(item: &Placed<&Table<'_>>, builder: &mut Builder) {
    let table = item.value;
    let Some(name) = tree::text(table, "name") else {
        let (reason, remedy) = ("the path has no name", "write name = \"…\"");
        return builder.refuse(item.span.clone(), "path.name", reason, remedy);
    };
    let hops = hops(table, item, builder);
    let class = Class::Path(builder.topology.paths.len() as u32);
    let place = Place::Span(name.span.clone());
    let Some(name) = builder.add_name(name.value, class, place.clone(), "path.name") else {
        return;
    };
    let shared = |hop: &Hop| builder.topology.links[hop.link as usize].down.is_none();
    // Only a path of a single shared link works with a matcher for one direction.
    let one_way = hops.len() == 1 && hops.iter().all(shared);
    builder.topology.paths.push(PathPlan { name, hops });
    let matches = Matches {
        forward: tree::strings(table, "match"),
        back: tree::strings(table, "match-back"),
    };
    let first = tree::texts(table, "match").into_iter().next();
    let place = first.map_or(place, |text| Place::Span(text.span));
    let at = (place, item.span.start);
    builder.add_rules(class, &matches, one_way, at, "path.match");
}

fn hops(table: &Table<'_>, item: &Placed<&Table<'_>>, builder: &mut Builder) -> Vec<Hop> {
    let at = "path.via";
    let mut hops: Vec<Hop> = Vec::new();
    let via = tree::texts(table, "via");
    if via.is_empty() || via.len() > HOPS_MAX {
        let reason = format!("the path has {} links", via.len());
        let remedy = format!("write via = [\"access\", \"core\"] with 1 to {HOPS_MAX} of them");
        builder.refuse(item.span.clone(), at, reason, remedy);
        return hops;
    }
    for text in via {
        let (name, direction) = split_direction(text.value);
        let Some(link) = builder.topology.link_named(name) else {
            builder.no_link(name, text.span, at);
            continue;
        };
        if hops.iter().any(|hop| hop.link == link as u32) {
            let reason = format!("the path crosses '{name}' twice, a loop");
            let remedy = "list each link once, or add a second link with the same options";
            builder.refuse(text.span, at, reason, remedy);
            continue;
        }
        builder.used[link] = true;
        hops.push(Hop {
            link: link as u32,
            direction: direction.unwrap_or(Direction::Up),
        });
    }
    hops
}
