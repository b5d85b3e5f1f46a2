//! Ports whose carrier follows links: `NAME = { opens = "tap:lw0", carrier = "access.down"
//! }` in `[ports]`.

use super::builder::Builder;
use super::events;
use super::plan::CarrierPlan;
use super::tree;
use super::value::Table;

/// Reads the links that port carriers follow. All links must have been read.
pub(super) fn read(file: &Table<'_>, builder: &mut Builder) -> Vec<CarrierPlan> {
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
            let reason = "a carrier cannot follow links decided on another host";
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
