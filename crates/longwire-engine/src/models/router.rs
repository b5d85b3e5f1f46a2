//! Router hop: the link begins at a router, which decrements the time to live and sends ICMP
//! errors about packets that it does not forward.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use longwire_packet::icmp::{self, Refusal, RouterAddresses};
use longwire_units::{Nanos, parse_count};

use super::rewrite::IpRewrite;
use crate::models::{Entry, Kind, PartModel};
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// A router at the entry of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    addresses: RouterAddresses,
    /// Errors per second; 0 for none at all.
    limit: u32,
    burst: u32,
}

impl Router {
    /// The IPv4 dummy address: that of a node without one (RFC 7600, section 4.8).
    pub const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

    /// A link-local address: the sender's interface is on the router's link.
    pub const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8);

    /// The same router, with these addresses in place of the defaults.
    #[must_use]
    pub fn at(mut self, v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Router {
        let RouterAddresses { v4: own, v6: own6 } = &mut self.addresses;
        *own = v4.filter(|_| *own == Router::DUMMY).unwrap_or(*own);
        *own6 = v6.filter(|_| *own6 == Router::LINK_LOCAL).unwrap_or(*own6);
        self
    }
}

impl PartModel for Router {}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RouterAddresses { v4, v6 } = self.addresses;
        let Router { limit, burst, .. } = self;
        write!(
            f,
            "hop:address={v4},address6={v6},limit={limit},burst={burst}"
        )
    }
}

/// A router in a link, with the error that it sends next.
#[derive(Debug)]
pub(crate) struct RouterHop {
    router: Router,
    /// Billionths of errors that may be sent now.
    tokens: u64,
    filled_at: Nanos,
    error: Vec<u8>,
}

const TOKEN: u64 = 1_000_000_000;

impl RouterHop {
    /// Returns a router that has sent no error.
    pub fn new(router: Router, now: Nanos) -> RouterHop {
        RouterHop {
            router,
            tokens: u64::from(router.burst) * TOKEN,
            filled_at: now,
            error: Vec::new(),
        }
    }

    /// Decrements the time to live of a packet that it forwards.
    pub fn forward(&self, bytes: &mut [u8]) {
        IpRewrite::HOP.apply(bytes);
    }

    /// Forgets the last error.
    pub fn begin(&mut self) {
        self.error.clear();
    }

    /// Notes a packet that it does not forward. The limit is a token bucket, which an error
    /// that is not allowed for other reasons leaves as it is (RFC 4443, section 2.4 f).
    pub fn refuse(&mut self, now: Nanos, refusal: Refusal, bytes: &[u8]) {
        let Router {
            addresses,
            limit,
            burst,
        } = self.router;
        let full = u64::from(burst) * TOKEN;
        let passed = now.saturating_sub(self.filled_at).as_nanos();
        let gained = passed.saturating_mul(limit.into());
        self.tokens = self.tokens.saturating_add(gained).min(full);
        self.filled_at = self.filled_at.max(now);
        if limit > 0
            && self.tokens >= TOKEN
            && icmp::write_error(bytes, refusal, &addresses, &mut self.error)
        {
            self.tokens -= TOKEN;
        }
    }

    /// Returns the error about the packet that was refused last, if there is one.
    pub fn error(&self) -> Option<&[u8]> {
        Some(&*self.error).filter(|error| !error.is_empty())
    }
}

static HOP_INFO: ModelInfo = ModelInfo {
    name: "hop",
    summary: "a router at the entry: it decrements the time to live by one, and sends ICMP time \
              exceeded, fragmentation needed (of packets with DF) and packet too big back to the \
              port where the packet came in (RFC 792, 1191, 4443)",
    params: &[
        Param::with_default("address", Unit::Text("10.0.0.1"), "192.0.0.8").help(
            "the IPv4 address of its errors; the default is the dummy address of RFC 7600, and \
             in `exec` an unused address of the network",
        ),
        Param::with_default("address6", Unit::Text("fd00::1"), "fe80::8").help(
            "the IPv6 address of its errors; the default is link-local, and in `exec` an unused \
             address of the network",
        ),
        Param::with_default("limit", Unit::Count, "1000")
            .within("0", "1000000", "0 to 1000000 errors/s")
            .help("maximum errors per second, a token bucket; 0: a router that sends none"),
        Param::with_default("burst", Unit::Count, "50")
            .within("1", "1000000", "1 to 1000000 errors")
            .help("maximum errors at once"),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Router, SpecError> {
    let word = |key| arguments.word(key).unwrap_or_default();
    let refuse = |key, example| {
        let text = word(key);
        arguments.invalid(format!("{key}: '{text}' is no address, as in {example}"))
    };
    let v4: Ipv4Addr = word("address")
        .parse()
        .map_err(|_| refuse("address", "10.0.0.1"))?;
    let v6: Ipv6Addr = word("address6")
        .parse()
        .map_err(|_| refuse("address6", "fd00::1"))?;
    // A host takes no packet from such an address.
    if v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified() || v4.is_loopback() {
        return Err(arguments.invalid(format!("address: {v4} is not the address of a router")));
    }
    if v6.is_multicast() || v6.is_unspecified() || v6.is_loopback() {
        return Err(arguments.invalid(format!("address6: {v6} is not the address of a router")));
    }
    Ok(Router {
        addresses: RouterAddresses { v4, v6 },
        limit: arguments.read("limit", parse_count)? as u32,
        burst: arguments.read("burst", parse_count)? as u32,
    })
}

/// Routers.
pub static KIND: Kind<Router> = Kind {
    name: "router",
    example: "hop",
    entries: &[Entry {
        info: &HOP_INFO,
        build,
    }],
};
