//! Alters arbitrary frames: for any options and bytes, nothing panics and valid checksums stay
//! valid.
//!
//! The input is text with one option per line (`map 10.0.0.0/8=11.0.0.0/8`), then a line `---`,
//! then a frame.

use super::{accepted, parts, set};
use longwire_engine::Nanos;
use longwire_packet::alter::{About, AlterOptions, Alterations, Truncated, parse_dscp};
use longwire_packet::filter::Filter;
use longwire_packet::header::{IpHeader, IpVersion};
use std::fmt::Display;

/// Number of times a frame is sent.
const ROUNDS: u64 = 3;

/// Options of an input: alterations, a filter, and the frame's uncaptured bytes.
#[derive(Default)]
pub(crate) struct AlterInput {
    pub(crate) options: AlterOptions,
    filter: Option<Filter>,
    /// Bytes at the end of the frame that were not captured.
    missing: u32,
}

/// Checks a set of options with a frame.
pub fn check(data: &[u8]) {
    let Some((text, frame)) = parts(data) else {
        return;
    };
    let mut wanted = AlterInput::default();
    for line in text.lines() {
        read(&mut wanted, line);
    }
    let mut frame = frame.to_vec();
    longwire_packet::repair_checksums(&mut frame);
    let wire_len = frame.len() as u32 + wanted.missing;
    if let Some(filter) = &wanted.filter {
        filter.matches(&frame, wire_len);
    }
    if let Some(splitter) = &mut wanted.options.splitter.clone() {
        assert!(splitter.side(&frame) < 2);
    }
    check_frame(wanted, &frame, wire_len);
}

fn check_frame(wanted: AlterInput, frame: &[u8], wire_len: u32) {
    let is_plain = IpHeader::parse(frame).is_some()
        && (wanted.missing == 0 || is_v4(frame) && wanted.options.truncated != Truncated::Keep)
        && !wanted.options.strip_fcs;
    // Removing tags may expose a packet that had too many tags for `IpHeader::parse`.
    let uncovers = !wanted.options.vlan.is_empty();
    let mut alterations = Alterations::new(wanted.options);
    for round in 0..ROUNDS {
        let (number, into_round) = (round, Nanos::from_millis(round * 7));
        let about = About {
            round,
            into_round,
            number,
        };
        alterations.apply(frame, wire_len, about, &mut |bytes, wire_len| {
            assert!(bytes.len() <= wire_len as usize);
            if is_plain && !uncovers {
                let wrong = longwire_packet::repair_checksums(&mut bytes.to_vec());
                assert!(!wrong, "a valid checksum became invalid");
            }
        });
        alterations.next_round();
    }
    assert!(!alterations.counts().is_empty());
}

fn is_v4(frame: &[u8]) -> bool {
    IpHeader::parse(frame).is_some_and(|ip| ip.version == IpVersion::V4)
}

/// Parses a line; an invalid value must produce an error message.
pub(crate) fn read(wanted: &mut AlterInput, line: &str) {
    let (name, value) = line.split_once(' ').unwrap_or((line, ""));
    let options = &mut wanted.options;
    match name {
        "filter" => set(&mut wanted.filter, Filter::parse(value)),
        "missing" => wanted.missing = value.parse().unwrap_or(0).min(2_000),
        "split" => set(&mut options.splitter, value.parse()),
        "truncated" => options.truncated = accepted(value.parse()).unwrap_or_default(),
        "strip-fcs" => options.strip_fcs = true,
        "fix-checksums" => options.fix_checksums = true,
        "src-mac" => set(&mut options.source_mac, value.parse()),
        "dst-mac" => set(&mut options.destination_mac, value.parse()),
        "map-mac" => add(&mut options.mac_maps, value.parse()),
        "vlan" => add(&mut options.vlan, value.parse()),
        "map" => add(&mut options.address_maps, value.parse()),
        "anonymize" => set(&mut options.anonymize, value.parse()),
        "map-port" => add(&mut options.port_maps, value.parse()),
        "dscp" => set(&mut options.dscp, parse_dscp(value)),
        "ttl" => set(&mut options.ttl, value.parse()),
        "mtu" => options.mtu = value.parse().ok().filter(|mtu| (68..=65_535).contains(mtu)),
        "mtu-action" => options.mtu_action = accepted(value.parse()).unwrap_or_default(),
        "loop-addresses" => add(&mut options.loop_addresses, value.parse()),
        "loop-renumber" => options.loop_renumber = true,
        "keep-groups" => options.keep_groups = true,
        "inner" => options.inner = true,
        "unaltered" => set(&mut options.unaltered, value.parse()),
        _ => {}
    }
}

fn add<T, E: Display>(field: &mut Vec<T>, read: Result<T, E>) {
    const ENOUGH: usize = 8;
    field.extend(accepted(read));
    field.truncate(ENOUGH);
}
