//! The selection of an attachment's frames.

use std::net::IpAddr;

use longwire_packet::filter::Filter;
use longwire_packet::filter::tree::{Carrier, Net, Node, Side, Test};
use longwire_packet::header::IpVersion;

use super::AttachError;
use super::filter::select;
use crate::bpf::assembler::Assembler;
use crate::net::address::Prefix;

/// Maximum number of prefixes per attachment, due to the kernel's program length limit.
pub const PREFIXES_MAX: usize = 512;

/// The frames to take. The kernel selects them; other frames never reach the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Prefixes of remote addresses; empty for all. Frames without IP, such as ARP, never
    /// match a prefix.
    pub to: Vec<Prefix>,
    /// A filter on frames sent by the interface's namespace; `None` for all. Received
    /// frames must match with source and destination swapped ([`Filter::mirrored`]).
    pub filter: Option<Filter>,
}

impl Selection {
    /// Whether every frame is taken.
    pub fn takes_all(&self) -> bool {
        self.to.is_empty() && self.filter.is_none()
    }

    /// Checks that the kernel can evaluate it, as far as known without asking the kernel.
    ///
    /// # Errors
    /// There are too many prefixes, or the filter is too complex.
    pub fn check(&self) -> Result<(), AttachError> {
        self.check_size()?;
        let is_possible = [true, false].iter().all(|sending| {
            let mut program = Assembler::default();
            let [taken, passing] = [(); 2].map(|()| program.label());
            let node = self.node(*sending);
            node.is_none_or(|node| select(&mut program, &node, taken, passing).is_some())
        });
        if is_possible {
            Ok(())
        } else {
            Err(AttachError::FilterTooComplex)
        }
    }

    pub(super) fn check_size(&self) -> Result<(), AttachError> {
        if self.to.len() > PREFIXES_MAX {
            return Err(AttachError::TooManyPrefixes);
        }
        Ok(())
    }

    /// Returns the test of sent or received frames; `None` if all are taken.
    pub(super) fn node(&self, sending: bool) -> Option<Node> {
        let side = if sending {
            Side::Destination
        } else {
            Side::Source
        };
        let prefixes = self.to.iter().map(|prefix| {
            Node::Test(Test::Net {
                side,
                net: net(prefix),
                of: Carrier::Ip,
            })
        });
        let to = (!self.to.is_empty()).then(|| Node::Any(prefixes.collect()));
        let filter = self.filter.as_ref().map(|filter| {
            if sending {
                filter.root().clone()
            } else {
                filter.mirrored().root().clone()
            }
        });
        match (to, filter) {
            (Some(to), Some(filter)) => Some(Node::All(vec![to, filter])),
            (to, filter) => to.or(filter),
        }
    }
}

fn net(prefix: &Prefix) -> Net {
    let mut address = [0; 16];
    let version = match prefix.address {
        IpAddr::V4(of) => {
            address[..4].copy_from_slice(&of.octets());
            IpVersion::V4
        }
        IpAddr::V6(of) => {
            address = of.octets();
            IpVersion::V6
        }
    };
    Net {
        version,
        address,
        prefix: prefix.length,
    }
}
