//! Pushes, pops and changes VLAN tags (IEEE 802.1Q).

use core::str::FromStr;

use super::value::AlterError;
use super::workspace::Workspace;
use crate::bytes::{array_mut, put_word};
use crate::filter::values::number;
use crate::frame::{VLAN_TYPES, mac_header_len};

/// Length of a tag in bytes.
pub(super) const TAG_LEN: usize = 4;

/// Offset of the outermost tag, after the addresses.
const TAG_AT: usize = 12;

/// A change to VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanChange {
    /// Push an outermost tag.
    Push {
        /// Tag type: 0x8100, 0x88a8 or 0x9100.
        tag_type: u16,
        /// Priority, drop eligible indicator and VLAN ID.
        control: u16,
    },
    /// Pop the outermost tag, if any.
    Pop,
    /// Replace a VLAN ID in all tags.
    Map {
        /// Old VLAN ID.
        from: u16,
        /// New VLAN ID.
        to: u16,
    },
    /// Set the priority in all tags, 0 to 7.
    Priority(u8),
}

const VLAN_MAX: u16 = 4095;

const WHAT: &str = "push:VLAN[,pcp=0..7][,dei=0|1][,type=0x88a8], pop, map:OLD=NEW or pcp:0..7";
const PUSH: &str = "one of pcp=0..7, dei=0|1, type=0x88a8";

impl FromStr for VlanChange {
    type Err = AlterError;

    fn from_str(text: &str) -> Result<VlanChange, AlterError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "push" => push(rest),
            "pop" if rest.is_empty() => Ok(VlanChange::Pop),
            "map" => {
                let ends = rest.split_once('=');
                let (from, to) = ends.ok_or_else(|| AlterError::not(rest, "OLD=NEW"))?;
                let (from, to) = (vlan(from)?, vlan(to)?);
                Ok(VlanChange::Map { from, to })
            }
            "pcp" => Ok(VlanChange::Priority(up_to(rest, 7)? as u8)),
            _ => Err(AlterError::not(text, WHAT)),
        }
    }
}

fn push(text: &str) -> Result<VlanChange, AlterError> {
    let mut parts = text.split(',');
    let mut control = vlan(parts.next().unwrap_or(""))?;
    let mut tag_type = 0x8100;
    for part in parts {
        match part.split_once('=') {
            Some(("pcp", value)) => control = control & 0x1fff | up_to(value, 7)? << 13,
            Some(("dei", value)) => control = control & 0xefff | up_to(value, 1)? << 12,
            Some(("type", value)) => {
                let what = "one of 0x8100, 0x88a8, 0x9100";
                let known = number(value).filter(|tag| VLAN_TYPES.contains(tag));
                tag_type = known.ok_or_else(|| AlterError::not(value, what))?;
            }
            _ => return Err(AlterError::not(part, PUSH)),
        }
    }
    Ok(VlanChange::Push { tag_type, control })
}

fn vlan(text: &str) -> Result<u16, AlterError> {
    let vlan = number(text).filter(|vlan| *vlan <= VLAN_MAX);
    vlan.ok_or_else(|| AlterError::not(text, "a VLAN, 0 to 4095"))
}

fn up_to(text: &str, max: u16) -> Result<u16, AlterError> {
    let value = number(text).filter(|value| *value <= max);
    value.ok_or_else(|| AlterError::not(text, if max == 1 { "0 or 1" } else { "0 to 7" }))
}

impl VlanChange {
    /// Returns the maximum growth in bytes per frame.
    pub(super) fn growth(&self) -> usize {
        TAG_LEN * usize::from(matches!(self, VlanChange::Push { .. }))
    }

    /// Applies the change. A frame truncated within the Ethernet header stays unchanged.
    pub(super) fn make(&self, frame: &mut Workspace) {
        if frame.len() < TAG_AT + 2 {
            return;
        }
        let header_len = mac_header_len(frame) as usize;
        match *self {
            VlanChange::Push { tag_type, control } => {
                frame.insert(TAG_AT, TAG_LEN);
                put_word(frame, TAG_AT, tag_type);
                put_word(frame, TAG_AT + 2, control);
            }
            VlanChange::Pop if header_len > TAG_AT + 2 && frame.len() >= TAG_AT + TAG_LEN => {
                frame.remove(TAG_AT, TAG_LEN);
            }
            VlanChange::Pop => {}
            VlanChange::Map { from, to } => each_tag(frame, header_len, |control| match control {
                control if control & VLAN_MAX == from => control & !VLAN_MAX | to,
                other => other,
            }),
            VlanChange::Priority(priority) => each_tag(frame, header_len, |control| {
                control & 0x1fff | u16::from(priority) << 13
            }),
        }
    }
}

fn each_tag(frame: &mut [u8], header_len: usize, change: impl Fn(u16) -> u16) {
    for at in (TAG_AT + 2..header_len.saturating_sub(2)).step_by(TAG_LEN) {
        let Some(field) = array_mut(frame, at) else {
            return;
        };
        *field = change(u16::from_be_bytes(*field)).to_be_bytes();
    }
}
