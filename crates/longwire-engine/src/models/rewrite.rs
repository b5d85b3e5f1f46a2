//! Rewriting: header changes in every frame, as by a router or policer.

use dyn_clone::DynClone;

use longwire_packet::edit::{self, IpEdit};
use longwire_packet::header::{Ecn, IpHeader, stays_on_link};
use longwire_units::parse_count;

use crate::loader::Hook;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::models::prelude::*;

/// A model that edits frame bytes but not their length.
pub trait RewriteModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Returns the TTL decrement. Packets whose TTL does not exceed the sum over all models are
    /// dropped before the queue.
    fn hops(&self) -> u8 {
        0
    }

    /// Edits a delivered frame. Called in departure order for the frames that survive medium loss;
    /// `at` is the departure.
    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream);
}

dyn_clone::clone_trait_object!(RewriteModel);

const ECN_WORDS: [(&str, Option<Ecn>); 5] = [
    ("keep", None),
    ("not-ect", Some(Ecn::NotCapable)),
    ("ect0", Some(Ecn::Capable0)),
    ("ect1", Some(Ecn::Capable1)),
    ("ce", Some(Ecn::Marked)),
];

/// Rewrites IP headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpRewrite {
    ttl: u8,
    dscp: Option<u8>,
    ecn: Option<Ecn>,
}

fn build_ip(arguments: &Arguments<'_>) -> Result<Described<dyn RewriteModel>, SpecError> {
    let ttl = arguments.read("ttl", parse_count)? as u8;
    let dscp = match arguments.word("dscp") {
        None | Some("keep") => None,
        Some(_) => match arguments.read("dscp", parse_count)? {
            code @ 0..=63 => Some(code as u8),
            _ => return Err(arguments.invalid("dscp is outside 0..63; write keep for no change")),
        },
    };
    let ecn = ECN_WORDS[arguments.choice("ecn")?].1;
    Ok(arguments.described(Box::new(IpRewrite { ttl, dscp, ecn })))
}

impl RewriteModel for IpRewrite {
    fn hops(&self) -> u8 {
        self.ttl
    }

    fn rewrite(&mut self, _at: Nanos, bytes: &mut [u8], _stream: &mut Stream) {
        self.apply(bytes);
    }
}

impl IpRewrite {
    /// Rewriting done by a router hop.
    pub(super) const HOP: IpRewrite = IpRewrite {
        ttl: 1,
        dscp: None,
        ecn: None,
    };

    pub(super) fn apply(&self, bytes: &mut [u8]) {
        let Some(ip) = IpHeader::parse(bytes) else {
            return;
        };
        let edit = IpEdit {
            dscp: self.dscp.unwrap_or(ip.dscp),
            ecn: self.ecn.unwrap_or(ip.ecn),
            ttl: if stays_on_link(bytes, &ip) {
                ip.ttl
            } else {
                ip.ttl.saturating_sub(self.ttl)
            },
        };
        edit::set_ip(bytes, &ip, edit);
    }
}

/// Whether a packet's TTL expires within this many hops. Packets that routers do not forward keep
/// their TTL.
pub(crate) fn expires(bytes: &[u8], hops: u32) -> bool {
    hops > 0
        && IpHeader::parse(bytes)
            .is_some_and(|ip| u32::from(ip.ttl) <= hops && !stays_on_link(bytes, &ip))
}

const PLUGIN: Entry<Described<dyn RewriteModel>> = Entry::new(
    NAME,
    "rewriting by a C plugin's rewrite hook, which cannot change the length",
    &[FILE, OWN],
    |arguments| Ok(arguments.described(Box::new(PluginHook::load(arguments, Hook::Rewrite)?))),
);

impl RewriteModel for PluginHook {
    fn start(&mut self, epoch: Nanos) {
        PluginHook::start(self, epoch);
    }

    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        if let Some(state) = self.state() {
            state.rewrite(at, bytes, stream);
        }
    }
}

/// Rewriting models, applied in order.
pub static KIND: Kind<Described<dyn RewriteModel>> = Kind {
    name: "rewrite",
    example: "ip:ttl=1",
    entries: &[
        Entry::new(
"ip",
"changes fields of IPv4 and IPv6 headers, and updates the IPv4 header checksum; other frames are \
 unchanged",
&[
        Param::with_default("ttl", Unit::Count, "0")
            .within("0", "255", "0..255")
            .help(
                "amount subtracted from the time to live or hop limit, 0 to 255; packets that \
                 would reach 0 are dropped. Neighbour discovery and link-local multicast are \
                 unchanged",
            ),
        Param::with_default("dscp", Unit::Text("46"), "keep")
            .help("DSCP, 0 to 63 (RFC 2474), or keep"),
        Param::with_default(
            "ecn",
            Unit::Choice(&["keep", "not-ect", "ect0", "ect1", "ce"]),
            "keep",
        )
        .help("ECN field (RFC 3168); not-ect bleaches it"),
    ],
build_ip,
),
        PLUGIN,
    ],
};
