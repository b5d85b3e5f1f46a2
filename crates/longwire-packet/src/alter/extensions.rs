//! Rewrites addresses in IPv4 options and IPv6 extension headers: source routes and home addresses.

use super::options::Role;
use super::rewriting::Rewriting;
use super::unaltered::Unaltered;
use crate::checksum::Change;
use crate::header::{
    DESTINATION_OPTIONS, EXTENSIONS_MAX, Extension, IpHeader, IpVersion, Options4, ROUTING,
    Transport, home_address,
};

/// Rewrites the addresses in IPv4 options or IPv6 extension headers. `changes` contains the changes
/// already made to the source and destination address. Returns the change to the pseudo-header.
pub(super) fn rewrite(
    rewriting: &mut Rewriting<'_>,
    frame: &mut [u8],
    ip: &IpHeader,
    transport: Option<&Transport>,
    changes: [Change; 2],
) -> Change {
    let mut addresses = Inside {
        rewriting,
        version: ip.version,
        checked: [
            transport.map(|transport| transport.checked_source),
            transport.and_then(|transport| transport.checked_destination),
        ],
        changes,
    };
    match ip.version {
        IpVersion::V4 => addresses.options(frame, ip),
        IpVersion::V6 => addresses.extensions(frame, ip),
    }
    let [mut change, destination] = addresses.changes;
    change.add(destination);
    change
}

/// Rewrites addresses in options and extension headers.
struct Inside<'a, 'b> {
    rewriting: &'a mut Rewriting<'b>,
    version: IpVersion,
    /// Offsets of the addresses used as source and destination in the pseudo-header.
    checked: [Option<usize>; 2],
    /// Changes to those addresses.
    changes: [Change; 2],
}

impl Inside<'_, '_> {
    fn address(&mut self, frame: &mut [u8], at: usize, role: Role) {
        let change = self.rewriting.address(frame, at, self.version, role);
        for (checked, counted) in self.checked.iter().zip(&mut self.changes) {
            if *checked == Some(at) {
                *counted = change;
            }
        }
    }

    /// Rewrites source routes, recorded routes, and timestamps with addresses (RFC 791, section
    /// 3.1).
    fn options(&mut self, frame: &mut [u8], ip: &IpHeader) {
        const RECORDED: u8 = 7;
        const TIMESTAMPS: u8 = 68;
        let (start, end) = (ip.at + 20, ip.end(frame).min(frame.len()));
        let mut next = 0;
        loop {
            let options = frame.get(start..end).unwrap_or(&[]);
            let Some((at, option)) = Options4(options, next).next() else {
                return;
            };
            next = at + option.len();
            // The pointer is 1-based; entries beyond it are unused.
            let filled = usize::from(option.get(2).copied().unwrap_or(0)).saturating_sub(1);
            let (first, step, last) = match *option {
                [131 | 137, ..] => (3, 4, option.len()),
                [RECORDED, ..] => (3, 4, option.len().min(filled)),
                [TIMESTAMPS, _, _, flags, ..] => match flags & 15 {
                    1 => (4, 8, option.len().min(filled)),
                    3 => (4, 8, option.len()),
                    _ => continue,
                },
                _ => continue,
            };
            for at in (at + first..=(at + last).saturating_sub(4)).step_by(step) {
                self.address(frame, start + at, Role::Destination);
            }
        }
    }

    /// Rewrites routing headers and Mobile IPv6 home addresses.
    fn extensions(&mut self, frame: &mut [u8], ip: &IpHeader) {
        let (mut kind, mut at) = (ip.protocol, ip.end(frame));
        for _ in 0..=EXTENSIONS_MAX {
            let Some(extension) = Extension::read(frame, kind, at) else {
                return;
            };
            match kind {
                ROUTING => self.route(frame, &extension),
                DESTINATION_OPTIONS => {
                    if let Some(at) = home_address(frame, extension.at) {
                        self.address(frame, at, Role::Source);
                    }
                }
                _ => {}
            }
            (kind, at) = (extension.next, at + extension.len);
            if extension.is_later_fragment(frame) {
                return;
            }
        }
    }

    fn route(&mut self, frame: &mut [u8], routing: &Extension) {
        let Some((first, end)) = routing.segments(frame) else {
            return self.rewriting.leave(Unaltered::Unknown);
        };
        for at in (first..end).step_by(16) {
            self.address(frame, at, Role::Destination);
        }
    }
}
