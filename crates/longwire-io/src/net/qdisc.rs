//! A device's queueing disciplines, as shown by `tc qdisc show`.

use super::netlink_message::{attribute, number_at, text_of};
use super::{NetError, list};

/// Bytes of `struct tcmsg`: family and padding, device, handle, parent, info.
const INFO_LEN: usize = 20;
const INDEX: usize = 4;
const HANDLE: usize = 8;
const PARENT: usize = 12;
/// `TC_H_ROOT`: the parent of a device's root discipline.
const ROOT: u32 = u32::MAX;
/// `TC_H_MAJ_MASK`: the discipline's part of a class handle.
const MAJOR: u32 = 0xffff_0000;
/// `TCA_KIND`, `TCA_OPTIONS`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;

/// A device's queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// The kernel's name, such as `fq`.
    pub kind: String,
    /// The discipline's handle.
    pub handle: u32,
    /// Handle of the parent class; `u32::MAX` for the root discipline.
    pub parent: u32,
    /// Kind-specific attributes.
    pub options: Vec<u8>,
}

impl Qdisc {
    /// Returns whether this is the root discipline.
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Returns whether this discipline is attached to a class of `other`.
    pub fn is_below(&self, other: &Qdisc) -> bool {
        self.parent & MAJOR == other.handle & MAJOR && !self.is_root()
    }

    fn read(payload: &[u8], device: u32) -> Option<Qdisc> {
        if number_at(payload, INDEX)? != device {
            return None;
        }
        let body = payload.get(INFO_LEN..)?;
        Some(Qdisc {
            kind: text_of(attribute(body, KIND)?),
            handle: number_at(payload, HANDLE)?,
            parent: number_at(payload, PARENT)?,
            options: attribute(body, OPTIONS).unwrap_or(&[]).to_vec(),
        })
    }
}

/// Returns the queueing disciplines of a device by index; possibly none.
///
/// # Errors
/// The kernel refuses the request.
pub fn qdiscs(device: u32) -> Result<Vec<Qdisc>, NetError> {
    list(
        libc::RTM_GETQDISC,
        INFO_LEN,
        "the queueing disciplines",
        |payload| Qdisc::read(payload, device),
    )
}
