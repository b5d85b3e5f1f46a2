//! `[ports]` and `[switching]`.

use std::collections::HashMap;
use std::path::Path;

use longwire_engine::{Nanos, Packets};
use longwire_io::port::registry::{self, PORTS};
use longwire_packet::MacAddress;
use longwire_packet::bridge::{
    Bridge, BridgeConfig, BridgeError, PortIndex, Reserved, StaticEntry, StormLimit, Switching,
};
use longwire_runtime::FileAccess;
use longwire_runtime::suggest::closest;

use super::attach;
use super::builder::check_name;
use super::fields::PORTS_MAX;
use super::plan::PortPlan;
use super::problem::{Diagnostics, suggestion};
use super::tree::{self, Placed};
use super::value::{Span, Table, Value};

const AT: &str = "switching";

/// Reads the ports in file order.
pub(super) fn ports(
    file: &Table<'_>,
    access: &FileAccess,
    diagnostics: &mut Diagnostics,
) -> Vec<PortPlan> {
    let Some(table) = tree::table(file, "ports") else {
        let remedy = "add [ports] with lines such as left = \"packet:eth1\"";
        diagnostics.refuse(0..0, "ports", "no ports", remedy);
        return Vec::new();
    };
    let mut ports: Vec<PortPlan> = Vec::new();
    let mut check = PortCheck::default();
    let hosts = tree::tables(file, "host");
    for (name, value) in tree::entries(table) {
        let table = value.as_table();
        let opens = table.map_or(Some(value), |table| table.get("opens"));
        if let (Some(table), None) = (table, opens) {
            ports.push(PortPlan {
                name: name.value.to_owned(),
                opens: attach::description(table),
            });
            continue;
        }
        check_name(&name, "ports", diagnostics);
        let Some(opens) = opens.and_then(Value::as_str) else {
            continue;
        };
        let port = PortPlan {
            name: name.value.to_owned(),
            opens: opens.to_owned(),
        };
        // Devices of different hosts may have the same name.
        let opens = |host: &Placed<&Table<'_>>| {
            let mut ports = tree::texts(host.value, "ports").into_iter();
            ports.any(|port| port.value == name.value)
        };
        check.host = hosts.iter().position(opens);
        check.port(&port, &value.span, diagnostics);
        for file in registry::files(&port.opens) {
            if let Err(error) = access.check(Path::new(file)) {
                let at = format!("ports.{}", port.name);
                let reason = format!("'{file}': {error}");
                diagnostics.refuse(value.span.clone(), at, reason, "");
            }
        }
        ports.push(port);
    }
    if ports.len() as u64 > PORTS_MAX {
        let reason = format!("{} ports exceed the maximum of {PORTS_MAX}", ports.len());
        diagnostics.refuse(0..0, "ports", reason, "remove some");
        ports.truncate(PORTS_MAX as usize);
    }
    ports
}

/// Checks that port kinds exist and that devices are distinct.
#[derive(Debug, Default)]
pub(super) struct PortCheck {
    /// Host that opens the port, if there are several hosts.
    host: Option<usize>,
    /// Port that opens each device, by host and device.
    used: HashMap<(Option<usize>, String), String>,
}

impl PortCheck {
    /// Reports an unknown port kind, or a device that another port opens.
    pub fn port(&mut self, port: &PortPlan, span: &Span, diagnostics: &mut Diagnostics) {
        let PortPlan { name, opens } = port;
        let at = format!("ports.{name}");
        let (kind, argument) = opens.split_once(':').unwrap_or((opens, ""));
        let known = PORTS.iter().find(|port| port.name == kind);
        let is_bare = !opens.contains(':');
        let fine = match known {
            Some(port) => port.argument.is_empty() == argument.is_empty(),
            None => is_bare && !opens.is_empty(),
        };
        if !fine {
            let written: Vec<String> = PORTS.iter().map(|port| port.written()).collect();
            let kinds = PORTS.iter().map(|port| port.name);
            let close = closest(kind, kinds).filter(|_| known.is_none());
            let close = close.map_or(String::new(), |kind| format!("did you mean '{kind}'? "));
            let remedy = format!("{close}known: {}", written.join(", "));
            let reason = format!("'{opens}' is not a port");
            diagnostics.refuse(span.clone(), &at, reason, remedy);
        }
        // A bare interface name stands for `auto`.
        let device = if argument.is_empty() { opens } else { argument };
        let used = (self.host, device.to_owned());
        if opens != "null"
            && let Some(other) = self.used.insert(used, name.clone())
        {
            let reason = format!("'{device}' is already port '{other}'");
            diagnostics.refuse(span.clone(), &at, reason, "use each device once");
        }
    }
}

/// Reads the `[switching]` section.
pub(super) fn bridge(
    file: &Table<'_>,
    ports: &[PortPlan],
    diagnostics: &mut Diagnostics,
) -> BridgeConfig {
    let mut config = BridgeConfig::new(ports.len() as u16);
    let empty = Table::default();
    let table = tree::table(file, AT).unwrap_or(&empty);
    let at = file.get(AT).map_or(0..0, |value| value.span.clone());
    let pairs = pairs(table, ports, diagnostics);
    let mode = tree::text(table, "mode").map(|mode| mode.value);
    let mode = mode.unwrap_or(if ports.len() == 2 || !pairs.is_empty() {
        "pairs"
    } else {
        "bridge"
    });
    config.switching = match mode {
        "bridge" => Switching::Bridge,
        "static" => Switching::Static,
        _ if pairs.is_empty() && ports.len() == 2 => {
            Switching::Pairs(vec![(PortIndex(0), PortIndex(1))])
        }
        _ => Switching::Pairs(pairs.clone()),
    };
    if mode == "pairs" && pairs.is_empty() && ports.len() != 2 {
        let reason = format!("mode pairs with {} ports needs pairs", ports.len());
        let remedy = "write pairs = [[\"left\", \"right\"], …]";
        diagnostics.refuse(at.clone(), AT, reason, remedy);
    }
    if mode != "pairs" && !pairs.is_empty() {
        let reason = format!("pairs are given, but the mode is {mode}");
        diagnostics.refuse(at.clone(), AT, reason, "remove one");
    }
    if let Some(ageing) = tree::unit::<Nanos>(table, "ageing", AT, diagnostics) {
        config.ageing = ageing;
    }
    if let Some(size) = tree::whole(table, "table-size") {
        config.table_max = size as u32;
    }
    if let Some(rate) = tree::unit(table, "storm-limit", AT, diagnostics) {
        let burst = Packets(tree::whole(table, "storm-burst").unwrap_or(100));
        config.storm = Some(StormLimit { rate, burst });
    } else if table.contains_key("storm-burst") && !table.contains_key("storm-limit") {
        let (reason, remedy) = (
            "storm-burst is given without storm-limit",
            "add storm-limit",
        );
        diagnostics.refuse(at.clone(), "switching.storm-burst", reason, remedy);
    }
    if tree::text(table, "reserved").is_some_and(|word| word.value == "pass") {
        config.reserved = Reserved::Pass;
    }
    config.loop_detection = tree::flag(table, "loop-detection").unwrap_or(true);
    config.statics = stations(table, ports, diagnostics);
    // The bridge checks the remaining settings. Missing ports have already been reported.
    if diagnostics.has_no_errors()
        && let Err(error) = Bridge::new(small(&config))
        && !matches!(error, BridgeError::NoPorts)
    {
        diagnostics.refuse(at, AT, error.to_string(), "correct this table");
    }
    config
}

/// Returns the configuration with the smallest valid table, so that checking it allocates little
/// memory.
fn small(config: &BridgeConfig) -> BridgeConfig {
    let statics = config.statics.len() as u32;
    BridgeConfig {
        table_max: config.table_max.min(statics.max(1)),
        ..config.clone()
    }
}

fn pairs(
    table: &Table<'_>,
    ports: &[PortPlan],
    diagnostics: &mut Diagnostics,
) -> Vec<(PortIndex, PortIndex)> {
    let mut pairs = Vec::new();
    let written = table.get("pairs").and_then(Value::as_list);
    for pair in written.into_iter().flatten() {
        let names = pair.as_list().unwrap_or_default().iter();
        let mut found = names
            .filter_map(|name| port(tree::placed(name)?, ports, "switching.pairs", diagnostics));
        if let (Some(a), Some(b)) = (found.next(), found.next()) {
            pairs.push((a, b));
        }
    }
    pairs
}

pub(super) fn port(
    name: Placed<&str>,
    ports: &[PortPlan],
    at: &str,
    diagnostics: &mut Diagnostics,
) -> Option<PortIndex> {
    let place = ports.iter().position(|port| port.name == name.value);
    if place.is_none() {
        let known = ports.iter().map(|port| port.name.as_str());
        let reason = format!("no port named '{}'", name.value);
        diagnostics.refuse(name.span, at, reason, suggestion(name.value, known));
    }
    place.map(|place| PortIndex(place as u16))
}

fn stations(
    table: &Table<'_>,
    ports: &[PortPlan],
    diagnostics: &mut Diagnostics,
) -> Vec<StaticEntry> {
    let at = "switching.stations";
    let mut stations = Vec::new();
    let Some(table) = tree::table(table, "stations") else {
        return stations;
    };
    for (key, value) in tree::entries(table) {
        let Some(name) = tree::placed(value) else {
            continue;
        };
        let Some((mac, vlan)) = station(key.value) else {
            let reason = format!("'{}' is not a MAC address", key.value);
            let remedy = "write 02:00:00:00:00:01, or 02:00:00:00:00:01@7 for VLAN 7";
            diagnostics.refuse(key.span, at, reason, remedy);
            continue;
        };
        if let Some(port) = port(name, ports, at, diagnostics) {
            stations.push(StaticEntry { vlan, mac, port });
        }
    }
    stations
}

/// Parses a station such as `02:00:00:00:00:01@7`.
fn station(text: &str) -> Option<([u8; 6], u16)> {
    let (mac, vlan) = match text.split_once('@') {
        Some((mac, vlan)) => (mac, vlan.parse().ok()?),
        None => (text, 0),
    };
    Some((mac.parse::<MacAddress>().ok()?.0, vlan))
}
