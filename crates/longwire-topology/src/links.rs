//! `[[link]]`: a link, or a series of links.

use std::net::IpAddr;
use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_engine::presets::Duplex;

use super::builder::{Builder, Matches, NewLink};
use super::fields::LINKS_MAX;
use super::hosts::HostRange;
use super::options::overlay;
use super::paths;
use super::plan::Class;
use super::problem::{Place, suggestion};
use super::tree::{self, Placed};
use super::value::Table;

/// Placeholders in names and matchers: link number and host addresses.
const NUMBER: &str = "{n}";
const HOST_A: &str = "{a}";
const HOST_B: &str = "{b}";

/// One link's placeholder values.
#[derive(Clone, Debug, Default)]
struct Instance {
    number: u64,
    a: Option<String>,
    b: Option<String>,
}

impl Instance {
    fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut filled = text.replace(NUMBER, &self.number.to_string());
        for (written, address) in [(HOST_A, &self.a), (HOST_B, &self.b)] {
            if let Some(address) = address {
                filled = filled.replace(written, address);
            }
        }
        filled
    }
}

/// Reads the links and paths in a table.
pub(super) fn read_all(table: &Table<'_>, builder: &mut Builder) {
    for item in tree::tables(table, "link") {
        read(&item, builder);
    }
    for item in tree::tables(table, "path") {
        paths::read(&item, builder);
    }
}

/// Reads the links in a `[[link]]` table.
pub(super) fn read(item: &Placed<&Table<'_>>, builder: &mut Builder) {
    let table = item.value;
    let at = "link";
    let own = builder.store.duplex(table, at, &mut builder.diagnostics);
    let template = tree::text(table, "template");
    let place = template.as_ref().map_or(0..0, |name| name.span.clone());
    let template = template.map(|name| name.value);
    let Some(under) = template_of(template, place.into(), "link.template", builder) else {
        return;
    };
    let options = overlay(&under, &own);
    if table.contains_key("csv") {
        return super::rows::read(item, &own, builder);
    }
    let many = table.contains_key("count") || table.contains_key("between");
    let Some(name) = tree::text(table, "name") else {
        let (reason, remedy) = ("the link has no name", "write name = \"…\"");
        return builder.refuse(item.span.clone(), "link.name", reason, remedy);
    };
    let Some(instances) = instances(item, builder) else {
        return;
    };
    let holes = [NUMBER, HOST_A, HOST_B];
    if many && !holes.iter().any(|hole| name.value.contains(hole)) {
        let reason = "all links have the same name";
        let remedy = "include {n} (the link's number), {a} or {b}";
        return builder.refuse(name.span, "link.name", reason, remedy);
    }
    let shared = tree::flag(table, "shared") == Some(true);
    let place = item.span.clone().into();
    let (up, down) = shared_options(options, shared, place, "link.shared", builder);
    let matches = matches(table);
    for instance in instances {
        let fill = |texts: &[String]| texts.iter().map(|text| instance.fill(text)).collect();
        let link = NewLink {
            name: if many {
                instance.fill(name.value)
            } else {
                name.value.to_owned()
            },
            up: Arc::clone(&up),
            down: down.clone(),
            matches: Matches {
                forward: fill(&matches.forward),
                back: fill(&matches.back),
            },
            place: match_place(item),
            position: item.span.start,
        };
        // The remaining links would fail in the same way.
        if !builder.add_link(link) {
            return;
        }
    }
}

/// Returns the options of the named template, if any, overlaid on the defaults.
pub(super) fn template_of(
    name: Option<&str>,
    place: Place,
    at: &str,
    builder: &mut Builder,
) -> Option<Duplex> {
    let Some(name) = name else {
        return Some(builder.topology.defaults.clone());
    };
    if let Some(found) = builder.topology.templates.get(name) {
        return Some(overlay(&builder.topology.defaults, found));
    }
    let remedy = if builder.topology.templates.is_empty() {
        format!("write [templates.{name}]")
    } else {
        suggestion(name, builder.topology.templates.keys().map(String::as_str))
    };
    builder.refuse(place, at, format!("no template named '{name}'"), remedy);
    None
}

/// Options for direction up and, unless the link is shared, for direction down.
type SharedOptions = (Arc<LinkSpec>, Option<Arc<LinkSpec>>);

/// Returns the options for both directions, or those of a shared link.
pub(super) fn shared_options(
    options: Duplex,
    shared: bool,
    place: Place,
    at: &str,
    builder: &mut Builder,
) -> SharedOptions {
    let equal = options.up == options.down;
    if shared && !equal {
        let reason = "the link is shared, but its directions have different options";
        let remedy = "give both the same options, or remove shared";
        builder.refuse(place, at, reason, remedy);
    }
    let up = builder.store.intern(options.up);
    if shared {
        return (up, None);
    }
    let down = if equal {
        Arc::clone(&up)
    } else {
        builder.store.intern(options.down)
    };
    (up, Some(down))
}

/// Returns the position of a link's matchers or, without matchers, of its name.
fn match_place(item: &Placed<&Table<'_>>) -> Place {
    let written = tree::texts(item.value, "match");
    let name = tree::text(item.value, "name").map(|name| name.span);
    let first = written.into_iter().next().map(|text| text.span);
    Place::Span(first.or(name).unwrap_or(item.span.clone()))
}

/// Returns a link's matchers, by default those of its pair of hosts.
pub(super) fn matches(table: &Table<'_>) -> Matches {
    let mut forward = tree::strings(table, "match");
    let down = tree::table(table, "down");
    let back = down.map(|down| tree::strings(down, "match"));
    if forward.is_empty() {
        match tree::texts(table, "between").len() {
            1 => forward.push(format!("src={HOST_A}")),
            2 => forward.push(format!("src={HOST_A},dst={HOST_B}")),
            _ => {}
        }
    }
    Matches {
        forward,
        back: back.unwrap_or_default(),
    }
}

/// Makes all frames cross the only link between two ports, if there are no paths, rules or
/// `unmatched`.
pub(super) fn match_all(file: &Table<'_>, builder: &mut Builder) {
    let ([left, right], [link]) = (
        builder.topology.ports.as_slice(),
        builder.topology.links.as_slice(),
    ) else {
        return;
    };
    let others = !builder.topology.paths.is_empty() || !builder.rules.is_empty();
    if others || file.contains_key("unmatched") {
        return;
    }
    let shared = link.down.is_none();
    let matches = Matches {
        forward: vec![format!("in-port={}", left.name)],
        back: vec![format!("in-port={}", right.name)],
    };
    let at = (Place::Span(0..0), 0);
    builder.add_rules(Class::Link(0), &matches, shared, at, "link.match");
    builder.used[0] = true;
}

/// Returns the placeholder values of each link; `None` if the number of links cannot be determined.
fn instances(
    item: &Placed<&Table<'_>>,
    builder: &mut Builder,
) -> Option<Box<dyn Iterator<Item = Instance>>> {
    let table = item.value;
    let first = tree::whole(table, "first").unwrap_or(1);
    let count = tree::whole(table, "count");
    let networks = networks(table, builder)?;
    let all = tree::text(table, "pairing").is_some_and(|pairing| pairing.value == "all");
    let available = match networks.as_slice() {
        [] => count.unwrap_or(1),
        [a] => a.count(),
        // Exclude pairs of a host with itself.
        [a, b] if all => a.count().saturating_mul(b.count()) - a.common(b),
        [a, b] => {
            let (fewer, more) = (a.count().min(b.count()), a.count().max(b.count()));
            if fewer != more && count.is_none() {
                let reason = format!(
                    "the subnets have {} and {} hosts, which cannot be paired one-to-one",
                    a.count(),
                    b.count()
                );
                let remedy = "use subnets of equal size, pairing = \"all\", or a count";
                builder.refuse(item.span.clone(), "link.between", reason, remedy);
                return None;
            }
            fewer
        }
        _ => return None,
    };
    let made = count.unwrap_or(available);
    if made > available || made > LINKS_MAX {
        let reason = format!("{made} links are too many");
        let remedy = format!("the maximum is {}", available.min(LINKS_MAX));
        builder.refuse(item.span.clone(), "link.count", reason, remedy);
        return None;
    }
    let width = networks.get(1).map_or(1, HostRange::count).max(1);
    let all = all && networks.len() == 2;
    let host = move |network: usize, nth| networks.get(network).map(|hosts| hosts.host(nth));
    let hosts = (0..u64::MAX).map(move |nth| {
        if all {
            (host(0, nth / width), host(1, nth % width))
        } else {
            (host(0, nth), host(1, nth))
        }
    });
    let pairs = hosts.filter(move |(a, b)| !all || a != b);
    let address = |host: Option<IpAddr>| host.map(|host| host.to_string());
    let instances = (first..).zip(pairs).take(made as usize);
    Some(Box::new(instances.map(move |(number, (a, b))| Instance {
        number,
        a: address(a),
        b: address(b),
    })))
}

fn networks(table: &Table<'_>, builder: &mut Builder) -> Option<Vec<HostRange>> {
    let mut networks = Vec::new();
    let mut fine = true;
    for text in tree::texts(table, "between") {
        match HostRange::read(text.value) {
            Ok(hosts) => networks.push(hosts),
            Err(reason) => {
                let remedy = "for example: between = [\"10.1.0.0/22\", \"10.2.0.0/22\"]";
                builder.refuse(text.span, "link.between", reason, remedy);
                fine = false;
            }
        }
    }
    fine.then_some(networks)
}
