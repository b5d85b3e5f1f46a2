//! Carries frames between a network's hosts: authenticated, encrypted sessions over UDP, with clock
//! offset estimation.
//!
//! ```text
//!  deciding stage ═▶ outbound line ─┐                        ┌─▶ inbound line ═▶ deciding stage
//!                                   ├─▶ Peer ─▶ UDP ─▶ Peer ─┤
//!  (release on this host's clock)   │  session, batches,     │  (release on that host's clock)
//!                                   │  fragments, offsets    │
//! ```
//!
//! [`Peer`] is the protocol: it takes times and datagrams, returns datagrams, and does no I/O.
//! [`Transport`] runs it on a socket in a thread. [`docs/decisions/0046-hosts.md`] describes the
//! protocol.
//!
//! [`docs/decisions/0046-hosts.md`]: ../../../docs/decisions/0046-hosts.md

mod cipher;
mod clock;
mod event;
mod fragments;
mod key;
mod offset;
mod peer;
mod resend;
mod session;
mod socket;
mod transport;
mod wire;

use blake2::{Blake2s256, Digest};
pub use longwire_runtime::report::{HostsReport, PeerReport};

pub use clock::{ClockShift, Stamp};
pub use event::{PeerEvent, waiting};
pub use key::{Key, KeyError};
pub use offset::OffsetEstimator;
pub use peer::{Identity, Peer, Rejection};
pub use transport::{HostEvent, HostsReader, PeerSetup, Transport, TransportError, TransportSetup};

/// BLAKE2s-256 digest of a network, by which hosts verify that they run the same network.
#[derive(Clone, Debug, Default)]
pub struct NetworkDigest(Blake2s256);

impl NetworkDigest {
    /// Adds bytes of the network's description.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
