//! Access control: tokens, and protection against requests forged by web pages.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};
use longwire_capture::open;
use longwire_runtime::FileAccess;
use subtle::{Choice, ConstantTimeEq};

use crate::error::ControlError;
use crate::limits::Slot;
use crate::reply::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// May read.
    Read,
    /// May read and change.
    Change,
}

/// The client of a request, with its rights.
#[derive(Clone)]
pub struct Caller {
    pub rights: Rights,
    /// Transport of the client's connection.
    pub peer: Peer,
    /// Slot of the client's connection.
    pub slot: Arc<Slot>,
}

/// Files that changes may name.
#[derive(Clone, Debug)]
pub struct Files {
    /// For changes over a Unix socket.
    pub unix: FileAccess,
    /// For changes over TCP.
    pub tcp: FileAccess,
}

impl Files {
    /// Returns the files that a peer's changes may name.
    pub fn of(&self, peer: Peer) -> &FileAccess {
        match peer {
            Peer::Unix => &self.unix,
            Peer::Tcp(_) => &self.tcp,
        }
    }
}

/// Transport of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A Unix socket, to which only its owner and root can connect.
    Unix,
    /// TCP, with the local address.
    Tcp(SocketAddr),
}

/// Accepted tokens. Not `Debug`, because they are secret.
#[derive(Clone, Default)]
pub struct Tokens {
    /// Tokens that allow changes.
    full: Vec<Vec<u8>>,
    /// Tokens that allow reading.
    read: Vec<Vec<u8>>,
}

/// Authentication scheme (RFC 6750, section 2.1).
const BEARER: &[u8] = b"bearer ";

impl Tokens {
    /// Creates a set with at most one token of each kind.
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

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.read.is_empty()
    }

    /// Returns the rights of a request. Unix sockets need no token, but a token in the request is
    /// checked.
    ///
    /// # Errors
    /// 401 for a missing or wrong token.
    pub fn rights(&self, peer: Peer, headers: &HeaderMap) -> Result<Rights, Refusal> {
        let mut said = headers.get_all(AUTHORIZATION).iter();
        let (first, second) = (said.next(), said.next());
        if peer == Peer::Unix && (self.is_empty() || first.is_none()) {
            return Ok(Rights::Change);
        }
        let Some(first) = first else {
            let error = "no token; send Authorization: Bearer TOKEN with the token in the file of \
                         --control-token-file";
            return Err(Refusal::unknown(error));
        };
        let token = bearer(first).filter(|_| second.is_none()).ok_or_else(|| {
            Refusal::unknown("send exactly one Authorization header: Bearer TOKEN")
        })?;
        // Compare with all tokens, each in constant time.
        let is = |known: &[Vec<u8>]| {
            let equal = known.iter().map(|known| known.ct_eq(token));
            bool::from(equal.fold(Choice::from(0), |any, equal| any | equal))
        };
        match (is(&self.full), is(&self.read)) {
            (true, _) => Ok(Rights::Change),
            (false, true) => Ok(Rights::Read),
            (false, false) => Err(Refusal::unknown("wrong token")),
        }
    }
}

fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(BEARER.len())?;
    scheme
        .eq_ignore_ascii_case(BEARER)
        .then(|| token.trim_ascii())
}

/// Refuses requests by other sites' pages: `Host` reveals DNS rebinding, and `Origin` the
/// requesting page.
///
/// # Errors
/// 400 without exactly one valid `Host`; 403 for a foreign host or origin.
pub fn check_origin(peer: Peer, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let Peer::Tcp(local) = peer else {
        return Ok(());
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.as_bytes(),
        _ => return Err(Refusal::bad("send exactly one Host header")),
    };
    let authority = Authority::try_from(host).map_err(|_| Refusal::bad("invalid header Host"))?;
    for named in [Some(&authority), uri.authority()].into_iter().flatten() {
        if !is_ours(named, local.ip().to_canonical()) {
            let error = format!("'{named}' is not the address of this server; use {local}");
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
    }
    let same = format!("http://{authority}");
    let foreign = |origin: &HeaderValue| !origin.as_bytes().eq_ignore_ascii_case(same.as_bytes());
    if headers.get_all(ORIGIN).iter().any(foreign) {
        let error = "requests from other origins are not permitted";
        Err(Refusal::new(StatusCode::FORBIDDEN, error))
    } else {
        Ok(())
    }
}

/// Returns whether a host is the local address. Ignores the port, which may differ because of a
/// tunnel. A page can forge names, but not addresses.
fn is_ours(named: &Authority, local: IpAddr) -> bool {
    if named.as_str().contains('@') {
        return false;
    }
    let host = named.host();
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match literal.unwrap_or(host).parse::<IpAddr>() {
        // The two ends of a tunnel may have different loopback addresses.
        Ok(address) if local.is_loopback() => address.to_canonical().is_loopback(),
        Ok(address) => address.to_canonical() == local,
        Err(_) => host.eq_ignore_ascii_case("localhost") && local.is_loopback(),
    }
}

/// Permitted lengths of a token, in bytes.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// Reads the token from the first line of a file.
///
/// # Errors
/// If the file is unreadable, readable by other users, or contains no token.
pub fn read_token(path: &Path) -> Result<Vec<u8>, ControlError> {
    let refuse = |why: String| Err(ControlError::Usage(format!("{}: {why}", path.display())));
    let failed = ControlError::file(path, "cannot read the token");
    let file = open::to_read(path).map_err(&failed)?;
    let mode = file.metadata().map_err(&failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return refuse(format!(
            "mode {mode:o} lets other users read the token; run `chmod 600`, and create a new \
             token if this machine has other users"
        ));
    }
    let mut line = Vec::new();
    let most = *TOKEN_LENGTHS.end() as u64 + 2;
    let read = BufReader::new(file.take(most)).read_until(b'\n', &mut line);
    read.map_err(failed)?;
    let token = line.trim_ascii_end().to_vec();
    if !TOKEN_LENGTHS.contains(&token.len()) {
        return refuse(format!(
            "the first line has {} characters, but a token has {} to {}; create one with `openssl \
             rand -hex 32`",
            token.len(),
            TOKEN_LENGTHS.start(),
            TOKEN_LENGTHS.end()
        ));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return refuse(
            "the first line has characters that are invalid in an HTTP header; create a token with \
             `openssl rand -hex 32`"
                .to_owned(),
        );
    }
    Ok(token)
}
