//! Router hop: the link starts at a router, which decrements the TTL and sends ICMP errors about
//! packets that it does not forward.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use longwire_packet::icmp::{self, Refusal, RouterAddresses};
use longwire_units::parse_count;

use super::rewrite::IpRewrite;
use crate::models::prelude::*;

/// A router at a link's ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    v4: Option<Ipv4Addr>,
    v6: Option<Ipv6Addr>,
    /// Maximum errors/s; 0 disables errors.
    limit: u32,
    burst: u32,
}

/// IPv4 dummy address for a router without an address (RFC 7600, section 4.8).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Link-local default address: the sender's interface is on the router's link.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8);

impl Router {
    /// Sets unspecified addresses to these defaults.
    #[must_use]
    pub fn at(self, v4: Ipv4Addr, v6: Ipv6Addr) -> Router {
        Router {
            v4: self.v4.or(Some(v4)),
            v6: self.v6.or(Some(v6)),
            ..self
        }
    }

    fn addresses(&self) -> RouterAddresses {
        RouterAddresses {
            v4: self.v4.unwrap_or(DUMMY),
            v6: self.v6.unwrap_or(LINK_LOCAL),
        }
    }
}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Router {
            v4,
            v6,
            limit,
            burst,
        } = self;
        let v4 = v4.map_or(AUTO.to_string(), |v4| v4.to_string());
        let v6 = v6.map_or(AUTO.to_string(), |v6| v6.to_string());
        write!(
            f,
            "hop:address={v4},address6={v6},limit={limit},burst={burst}"
        )
    }
}

/// A router in use by a link, with its pending error.
#[derive(Debug)]
pub(crate) struct RouterHop {
    router: Router,
    /// Error allowance, in billionths of an error.
    tokens: u64,
    filled_at: Nanos,
    error: Vec<u8>,
}

/// Keyword for a default address.
const AUTO: &str = "auto";

const TOKEN: u64 = 1_000_000_000;

impl RouterHop {
    /// Creates a router that has sent no errors yet.
    pub fn new(router: Router, now: Nanos) -> RouterHop {
        RouterHop {
            router,
            tokens: u64::from(router.burst) * TOKEN,
            filled_at: now,
            error: Vec::new(),
        }
    }

    /// Decrements a forwarded packet's TTL.
    pub fn forward(&self, bytes: &mut [u8]) {
        IpRewrite::HOP.apply(bytes);
    }

    /// Discards the last error.
    pub fn begin(&mut self) {
        self.error.clear();
    }

    /// Writes the ICMP error about a packet that is not forwarded. A token bucket limits errors;
    /// errors suppressed for other reasons take no tokens (RFC 4443, section 2.4 f).
    pub fn refuse(&mut self, now: Nanos, refusal: Refusal, bytes: &[u8]) {
        let Router { limit, burst, .. } = self.router;
        let addresses = self.router.addresses();
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

    /// Returns the error about the last refused packet, if one was generated.
    pub fn error(&self) -> Option<&[u8]> {
        Some(&*self.error).filter(|error| !error.is_empty())
    }
}

/// Parses an address that is valid as a source.
fn address<A: FromStr>(
    arguments: &Arguments<'_>,
    key: &'static str,
    is_host: impl Fn(&A) -> bool,
) -> Result<Option<A>, SpecError> {
    let text = arguments.word(key).unwrap_or(AUTO);
    if text == AUTO {
        return Ok(None);
    }
    let address = text.parse().ok().filter(is_host).map(Some);
    let example = arguments.example(key);
    address.ok_or_else(|| {
        let message =
            format!("{key}: '{text}' is not a unicast address; write one such as {example}");
        arguments.invalid(message)
    })
}

/// Router models.
pub static KIND: Kind<Router> = Kind {
    name: "router",
    example: "hop",
    entries: &[Entry::new(
"hop",
"router at the entry: decrements the time to live, and sends ICMP time exceeded, fragmentation \
 needed (for packets with DF) and packet too big to the ingress port (RFC 792, 1191, 4443)",
&[
        Param::with_default("address", Unit::Text("10.0.0.1"), AUTO).help(
            "IPv4 source address of ICMP errors; auto: in `exec` an unused address of the network, \
             else the dummy address 192.0.0.8 (RFC 7600)",
        ),
        Param::with_default("address6", Unit::Text("fd00::1"), AUTO).help(
            "IPv6 source address of ICMP errors; auto: in `exec` an unused address of the network, \
             else fe80::8",
        ),
        Param::with_default("limit", Unit::Count, "1000")
            .within("0", "1000000", "0 to 1000000 errors/s")
            .help("maximum ICMP errors per second (token bucket); 0: send none"),
        Param::with_default("burst", Unit::Count, "50")
            .within("1", "1000000", "1 to 1000000 errors")
            .help("maximum burst of ICMP errors"),
    ],
|arguments| {
    let is_host = |v4: &Ipv4Addr| !matches!(v4.octets()[0], 0 | 127 | 224..);
    let is_host6 = |v6: &Ipv6Addr| !(v6.is_multicast() || v6.is_unspecified() || v6.is_loopback());
    Ok(Router {
        v4: address(arguments, "address", is_host)?,
        v6: address(arguments, "address6", is_host6)?,
        limit: arguments.read("limit", parse_count)? as u32,
        burst: arguments.read("burst", parse_count)? as u32,
    })
},
)],
};
