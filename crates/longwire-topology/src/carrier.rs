//! Carriers of ports: `NAME = { opens = "tap:lw0", carrier = "access.down" }` in `[ports]`.

use longwire_packet::bridge::PortIndex;

use super::builder::Builder;
use super::events;
use super::plan::CarrierPlan;
use super::tree;
use super::value::Table;

/// Reads the links that the carriers of ports follow. All links must have been read.
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
            let reason = "the interface is in use, and its carrier is not Longwire's to take";
            Some((reason, "leave it out, or open a tap:NAME as a port"))
        } else if file.contains_key("host") {
            let reason = "the carrier of a port does not follow links that another host decides";
            Some((reason, "leave it out, or run the network on one host"))
        } else {
            None
        };
        if let Some((reason, remedy)) = refusal {
            let span = field.span.clone();
            builder.complaints.refuse(span, at, reason, remedy);
            continue;
        }
        let links = tree::texts(port, "carrier");
        for link in &links {
            events::check_pattern(link.value, link.span.clone(), &at, builder);
        }
        let index = builder
            .ports
            .iter()
            .position(|port| port.name == name.value);
        plans.extend(index.map(|index| CarrierPlan {
            port: PortIndex(index as u16),
            links: links.iter().map(|link| link.value.to_owned()).collect(),
        }));
    }
    plans
}
