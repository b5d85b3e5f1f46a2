//! Ports given as tables: attached to an interface in use (`NAME.attach = { … }` in `[ports]`), or
//! with a carrier that follows links (`NAME = { opens = "tap:lw0", carrier = "access.down" }`).

use longwire_attach::{ContainerName, PodName, Target};
use longwire_io::attach::Selection;
use longwire_packet::bridge::PortIndex;

use super::builder::Builder;
use super::events;
use super::plan::{AttachPlan, CarrierPlan, PortPlan};
use super::problem::Diagnostics;
use super::tree;
use super::value::{Span, Table};

/// Fields that select a namespace; exactly one is required.
const TARGETS: [&str; 4] = ["netns", "pid", "container", "pod"];

/// Returns an attached port's description, such as "attach pod shop/cart-0, eth0".
pub(super) fn description(port: &Table<'_>) -> String {
    let table = tree::table(port, "attach");
    let target = table.and_then(|table| target(table)?.ok());
    let target = target.map_or(String::new(), |target| format!(" {target}"));
    let interface = table.and_then(|table| tree::text(table, "interface"));
    let interface = interface.map_or(String::new(), |name| format!(", {}", name.value));
    format!("attach{target}{interface}")
}

/// Reads the attachments of all ports.
pub(super) fn read(
    file: &Table<'_>,
    ports: &[PortPlan],
    diagnostics: &mut Diagnostics,
) -> Vec<AttachPlan> {
    let mut plans: Vec<AttachPlan> = Vec::new();
    let Some(table) = tree::table(file, "ports") else {
        return plans;
    };
    for (name, value) in tree::entries(table) {
        let Some(port) = value.as_table() else {
            continue;
        };
        if port.contains_key("opens") {
            if port.contains_key("attach") {
                let at = format!("ports.{}", name.value);
                let reason = "the port has both opens and attach";
                diagnostics.refuse(value.span.clone(), at, reason, "remove one of them");
            }
            continue;
        }
        let index = ports.iter().position(|port| port.name == name.value);
        let at = format!("ports.{}", name.value);
        let (Some(index), Some(attach)) = (index, tree::table(port, "attach")) else {
            let reason = "the port has neither opens nor attach";
            let remedy = "write opens = \"tap:lw0\", or attach = { pod = \"shop/cart-0\", to = \
                          \"10.0.0.2\" }";
            diagnostics.refuse(value.span.clone(), at, reason, remedy);
            continue;
        };
        let place = (PortIndex(index as u16), value.span.clone());
        let at = format!("{at}.attach");
        if let Some(plan) = plan(attach, place, &at, diagnostics) {
            if let Some(other) = plans.iter().find(|other| overlaps(other, &plan)) {
                let other = &ports[usize::from(other.port.0)].name;
                let reason = format!("port '{other}' already takes packets to the same addresses");
                let remedy = "give each port of an interface other addresses in `to`";
                diagnostics.refuse(value.span.clone(), at, reason, remedy);
            }
            plans.push(plan);
        }
    }
    plans
}

fn plan(
    table: &Table<'_>,
    (port, span): (PortIndex, Span),
    at: &str,
    diagnostics: &mut Diagnostics,
) -> Option<AttachPlan> {
    let target = match target(table) {
        Some(Ok(target)) => Some(target),
        Some(Err(reason)) => {
            let remedy = "use the syntax of `longwire attach`";
            diagnostics.refuse(span.clone(), at, reason, remedy);
            None
        }
        None => {
            let reason = "exactly one of netns, pid, container and pod is required";
            diagnostics.refuse(span.clone(), at, reason, "write one");
            None
        }
    };
    let texts = tree::texts(table, "to");
    let remedy = "write it as 10.0.0.2 or 10.0.3.0/24";
    let to = texts
        .iter()
        .filter_map(|text| tree::parsed(text, tree::under(at, "to"), remedy, diagnostics))
        .collect();
    if texts.is_empty() {
        let reason = "no addresses are given to select the packets that enter the network";
        let remedy = "write to = [\"10.0.0.2\"]; ARP and all other packets bypass the network";
        diagnostics.refuse(span, at, reason, remedy);
    }
    let filter = tree::text(table, "filter").and_then(|text| {
        let at = tree::under(at, "filter");
        tree::parsed(&text, at, "use tcpdump syntax", diagnostics)
    });
    Some(AttachPlan {
        port,
        target: target?,
        interface: tree::text(table, "interface").map(|name| name.value.to_owned()),
        selection: Selection { to, filter },
        host_network: tree::flag(table, "host-network").unwrap_or(false),
    })
}

/// Returns an attachment's target; `None` unless exactly one is named.
fn target(table: &Table<'_>) -> Option<Result<Target, String>> {
    let given = TARGETS.iter().filter(|name| table.contains_key(name));
    if given.count() != 1 {
        return None;
    }
    let text = |name| tree::text(table, name).map(|text| text.value);
    Some(if let Some(pid) = tree::whole(table, "pid") {
        Ok(Target::Pid(pid as u32))
    } else if let Some(path) = text("netns") {
        Ok(Target::Netns(path.into()))
    } else if let Some(name) = text("container") {
        let name = name.parse::<ContainerName>();
        name.map(Target::Container).map_err(|it| it.to_string())
    } else {
        let name = text("pod")?.parse::<PodName>();
        name.map(Target::Pod).map_err(|it| it.to_string())
    })
}

/// Returns whether both ports capture packets to a common address at the same interface.
fn overlaps(one: &AttachPlan, other: &AttachPlan) -> bool {
    if (&one.target, &one.interface) != (&other.target, &other.interface) {
        return false;
    }
    let pairs = one.selection.to.iter();
    let mut pairs = pairs.flat_map(|a| other.selection.to.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| a.overlaps(b))
}

/// Reads the links followed by the carriers of ports. Requires all links to have been read.
pub(super) fn carriers(file: &Table<'_>, builder: &mut Builder) -> Vec<CarrierPlan> {
    let mut plans = Vec::new();
    let Some(table) = tree::table(file, "ports") else {
        return plans;
    };
    for (name, value) in tree::entries(table) {
        let port = value.as_table();
        let Some((port, field)) = port.and_then(|port| Some((port, port.get("carrier")?))) else {
            continue;
        };
        let at = format!("ports.{}.carrier", name.value);
        let refusal = if port.contains_key("attach") {
            let reason = "an attached interface keeps its carrier";
            Some((reason, "remove it, or use a tap:NAME port"))
        } else if file.contains_key("host") {
            let reason = "carrier is not supported in a network with several hosts";
            Some((reason, "remove it, or run the network on one host"))
        } else {
            None
        };
        if let Some((reason, remedy)) = refusal {
            builder.refuse(field.span.clone(), at, reason, remedy);
            continue;
        }
        for link in tree::texts(port, "carrier") {
            events::check_pattern(link.value, link.span, &at, builder);
        }
        let port_index = builder.topology.port_named(name.value);
        plans.extend(port_index.map(|index| CarrierPlan {
            port: index,
            links: tree::strings(port, "carrier"),
        }));
    }
    plans
}
