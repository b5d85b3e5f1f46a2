//! Who may ask: tokens, and requests that a web page made someone's browser
//! send.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};
use longwire_runtime::{Directory, FileAccess};
use subtle::{Choice, ConstantTimeEq};

use super::places::Seat;
use super::refusal::Refusal;

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and change.
    Change,
}

/// A client and its rights.
#[derive(Clone)]
pub struct Caller {
    /// Its rights.
    pub rights: Rights,
    /// From where.
    pub peer: Peer,
    /// The place of their connection.
    pub seat: Arc<Seat>,
}

/// Why changes over TCP name no files without a directory for them.
const NONE_OVER_TCP: &str = "changes over TCP cannot name files; start the run with \
                             --control-files DIR to allow those in DIR";

/// The files that changes may name.
#[derive(Clone, Debug)]
pub struct Files {
    /// Those of changes from a Unix socket.
    pub unix: FileAccess,
    /// Those of changes over TCP.
    pub tcp: FileAccess,
}

impl Files {
    /// Those beneath a directory. Without one, those of `unix` for who may open the
    /// socket, and none over TCP.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn beneath(directory: Option<&Path>, unix: FileAccess) -> io::Result<Files> {
        let Some(directory) = directory else {
            return Ok(Files {
                unix,
                tcp: FileAccess::Nothing(NONE_OVER_TCP),
            });
        };
        let access = FileAccess::Beneath(Arc::new(Directory::open(directory)?));
        Ok(Files {
            unix: access.clone(),
            tcp: access,
        })
    }

    /// Those of changes from there.
    pub fn of(&self, peer: Peer) -> &FileAccess {
        match peer {
            Peer::Unix => &self.unix,
            Peer::Tcp(_) => &self.tcp,
        }
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// From a Unix socket, which only its owner and root may open.
    Unix,
    /// From TCP, to this address of the machine.
    Tcp(SocketAddr),
}

/// Tokens. They are never shown, so this has no `Debug`.
#[derive(Clone, Default)]
pub struct Tokens {
    /// With which everything may be changed.
    full: Vec<Vec<u8>>,
    /// With which everything may be read.
    read: Vec<Vec<u8>>,
}

/// The one scheme there is (RFC 6750, section 2.1).
const BEARER: &[u8] = b"bearer ";

impl Tokens {
    /// Returns these tokens.
    pub fn of(full: Option<Vec<u8>>, read: Option<Vec<u8>>) -> Tokens {
        Tokens {
            full: full.into_iter().collect(),
            read: read.into_iter().collect(),
        }
    }

    /// Adds a token of each kind.
    pub fn add(&mut self, full: Vec<u8>, read: Vec<u8>) {
        self.full.push(full);
        self.read.push(read);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.read.is_empty()
    }

    /// Returns the rights of a request. On a Unix socket no token is needed; a token
    /// in the request counts all the same.
    ///
    /// # Errors
    /// If a token is lacking or wrong.
    pub fn rights(&self, peer: Peer, headers: &HeaderMap) -> Result<Rights, Refusal> {
        let mut said = headers.get_all(AUTHORIZATION).iter();
        let (first, second) = (said.next(), said.next());
        if peer == Peer::Unix && (self.is_empty() || first.is_none()) {
            return Ok(Rights::Change);
        }
        let Some(first) = first else {
            let error = "say the token: Authorization: Bearer TOKEN (it is in the file that \
                         --control-token-file named)";
            return Err(Refusal::unknown(error));
        };
        let token = bearer(first).filter(|_| second.is_none());
        let token = token.ok_or_else(|| {
            Refusal::unknown("there must be one header Authorization: Bearer TOKEN")
        })?;
        // All are compared, whichever it is, and each in a time that does
        // not depend on how much of it was right.
        let is = |known: &[Vec<u8>]| {
            let equal = known.iter().map(|known| known.ct_eq(token));
            bool::from(equal.fold(Choice::from(0), |any, equal| any | equal))
        };
        match (is(&self.full), is(&self.read)) {
            (true, _) => Ok(Rights::Change),
            (false, true) => Ok(Rights::Read),
            (false, false) => Err(Refusal::unknown("this is not the token")),
        }
    }
}

fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme
        .eq_ignore_ascii_case(BEARER)
        .then(|| token.trim_ascii())
}

/// Refuses what did not come from somebody who knows this address: a page
/// whose name was made to lead here (DNS rebinding) says its own name as
/// `Host`, and any page of another origin says so as `Origin`.
///
/// # Errors
/// 400 without one plain `Host`, 403 with a foreign one.
pub fn check_origin(peer: Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let Peer::Tcp(local) = peer else {
        return Ok(());
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.as_bytes(),
        _ => return Err(Refusal::bad("there must be one header Host")),
    };
    let authority =
        Authority::try_from(host).map_err(|_| Refusal::bad("the header Host is no host"))?;
    for named in [Some(&authority), uri.authority()].into_iter().flatten() {
        if !is_ours(named, local.ip().to_canonical()) {
            let error = format!(
                "'{named}' is not the address that this listens at; ask for {local} itself"
            );
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
    }
    let same = format!("http://{authority}");
    let foreign = |origin: &HeaderValue| !origin.as_bytes().eq_ignore_ascii_case(same.as_bytes());
    if headers.get_all(ORIGIN).iter().any(foreign) {
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "web pages of other origins may not ask this",
        ))
    } else {
        Ok(())
    }
}

/// Whether a host is the address that was connected to. Ports may differ, for
/// there are tunnels; addresses cannot be had by a page, names can.
fn is_ours(named: &Authority, local: IpAddr) -> bool {
    if named.as_str().contains('@') {
        return false;
    }
    let host = named.host();
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match literal.unwrap_or(host).parse::<IpAddr>() {
        // A tunnel ends at the loopback address, and its other end has
        // another one of them.
        Ok(address) if local.is_loopback() => address.to_canonical().is_loopback(),
        Ok(address) => address.to_canonical() == local,
        Err(_) => host.eq_ignore_ascii_case("localhost") && local.is_loopback(),
    }
}
