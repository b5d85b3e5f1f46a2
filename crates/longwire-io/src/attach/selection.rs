//! The frames that an attachment takes.

use std::net::IpAddr;

use longwire_packet::filter::Filter;
use longwire_packet::filter::tree::{Carrier, Net, Node, Side, Test};
use longwire_packet::header::IpVersion;

use super::AttachError;
use super::filter::select;
use crate::bpf::assembler::Assembler;
use crate::net::address::Prefix;

/// The most prefixes of one attachment: the kernel's programs have a largest length.
pub const PREFIXES_MAX: usize = 512;

/// The frames to take: all, or a part. The kernel selects them; others never reach the
/// process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Prefixes of the other hosts' addresses; none for those of all hosts. Frames of other
    /// protocols than IP, such as ARP, are not selected by any.
    pub to: Vec<Prefix>,
    /// The frames among those, as the interface's namespace sends them; `None` for all. Of
    /// those that it receives, the ones are taken that match with source and destination
    /// exchanged ([`Filter::mirrored`]).
    pub filter: Option<Filter>,
}

impl Selection {
    /// Whether every frame is taken.
    pub fn takes_all(&self) -> bool {
        self.to.is_empty() && self.filter.is_none()
    }

    /// Checks that the kernel can evaluate it, as far as that is known without the kernel.
    ///
    /// # Errors
    /// If there are too many prefixes, or the filter is too complex.
    pub fn check(&self) -> Result<(), AttachError> {
        if self.to.len() > PREFIXES_MAX {
            return Err(AttachError::TooManyPrefixes);
        }
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

    /// Returns the test of frames that are sent, or received. `None` if all are taken.
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
