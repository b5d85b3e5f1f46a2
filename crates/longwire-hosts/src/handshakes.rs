//! Handshakes that were begun and answered, so that each message counts once.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use crate::peer::Rejection;
use crate::session::{Handshake, HandshakeName, Session, name};
use crate::wire::Introduction;

/// Handshakes that wait for an answer at most: at one every 250 ms, round trips of up to 2 s
/// find theirs.
const WAITING_MAX: usize = 8;

/// Instances of another host that are remembered.
const INSTANCES_MAX: usize = 64;

/// Handshakes that this host began.
#[derive(Default)]
pub struct BegunHandshakes {
    /// Those without an answer, the oldest first.
    waiting: VecDeque<Handshake>,
    /// The names of the latest, answered or not.
    names: VecDeque<HandshakeName>,
}

impl BegunHandshakes {
    /// Adds one.
    pub fn push(&mut self, handshake: Handshake) {
        self.names.push_back(handshake.name());
        self.waiting.push_back(handshake);
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
        if self.names.len() > 2 * WAITING_MAX {
            self.names.pop_front();
        }
    }

    /// Takes an answer. Returns the session and the other host's introduction; then all
    /// other handshakes are over.
    ///
    /// # Errors
    /// If it is no answer, or that of a handshake which is over.
    pub fn accept(&mut self, datagram: &[u8]) -> Result<(Session, Introduction), Rejection> {
        let name = name(datagram).ok_or(Rejection::Foreign)?;
        let Some(at) = self.waiting.iter().position(|it| it.name() == name) else {
            // An answer that comes twice, or after that of another handshake.
            return Err(if self.names.contains(&name) {
                Rejection::Replayed
            } else {
                Rejection::Foreign
            });
        };
        let theirs = self.waiting[at].accept(datagram);
        let theirs = theirs.ok_or(Rejection::Foreign)?;
        let handshake = self.waiting.remove(at);
        let session = handshake.and_then(Handshake::into_session);
        self.waiting.clear();
        Ok((session.ok_or(Rejection::Foreign)?, theirs))
    }
}

/// First messages that were answered, by the instance that sent them.
///
/// A recorded message must not cost more than its first sight: it is not answered unless it
/// was written after all that were answered. Times of two instances cannot be compared, for
/// a wall clock may be wrong after a restart; so an instance that another one has replaced
/// is never answered again, and an unknown one is: without the keys of the session that it
/// gets, a recorder cannot use it ([`crate::peer::Peer`] keeps its own session).
#[derive(Default)]
pub struct AnsweredHandshakes {
    /// Instances with the time of their latest message.
    latest: VecDeque<(u64, Nanos)>,
}

impl AnsweredHandshakes {
    /// Notes a message; false for one that is not to be answered.
    pub fn accept(&mut self, theirs: &Introduction) -> bool {
        let known = self.latest.iter_mut();
        if let Some((_, latest)) = known.into_iter().find(|it| it.0 == theirs.instance) {
            let is_new = theirs.begun > *latest;
            *latest = theirs.begun.max(*latest);
            return is_new;
        }
        self.latest.push_back((theirs.instance, theirs.begun));
        if self.latest.len() > INSTANCES_MAX {
            self.latest.pop_front();
        }
        true
    }

    /// Notes that an instance was replaced by another one.
    pub fn retire(&mut self, instance: u64) {
        self.latest.retain(|it| it.0 != instance);
        self.latest.push_back((instance, Nanos::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(instance: u64, begun: u64) -> Introduction {
        Introduction {
            index: 0,
            digest: [1; 32],
            instance,
            begun: Nanos::from_nanos(begun),
        }
    }

    #[test]
    fn each_message_is_answered_once_and_a_replaced_instance_is_not() {
        let mut answered = AnsweredHandshakes::default();
        assert!(answered.accept(&message(7, 50)));
        assert!(!answered.accept(&message(7, 50)));
        assert!(!answered.accept(&message(7, 49)));
        assert!(answered.accept(&message(7, 51)));
        // The clock of a host that was started again may have begun at zero.
        assert!(answered.accept(&message(9, 3)));
        answered.retire(7);
        assert!(!answered.accept(&message(7, u64::MAX)));
        assert!(answered.accept(&message(9, 4)));
        for instance in 100..300 {
            assert!(answered.accept(&message(instance, 1)));
        }
        assert!(answered.latest.len() <= INSTANCES_MAX);
    }
}
