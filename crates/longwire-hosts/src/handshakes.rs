//! Handshake state, so that each message counts once.

use std::collections::VecDeque;

use longwire_engine::Nanos;

use crate::peer::Rejection;
use crate::session::{Handshake, HandshakeName, Session, name};
use crate::wire::Introduction;

/// Maximum outstanding handshakes: at one per 250 ms, it covers round trips up to 2 s.
const WAITING_MAX: usize = 8;

/// Maximum instances of another host remembered.
const INSTANCES_MAX: usize = 64;

/// Handshakes initiated by this host.
#[derive(Default)]
pub struct BegunHandshakes {
    /// Outstanding handshakes, oldest first.
    waiting: VecDeque<Handshake>,
    /// Names of recent handshakes, answered or not.
    names: VecDeque<HandshakeName>,
}

impl BegunHandshakes {
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

    /// Processes a response. Returns the session and the other host's introduction, and
    /// discards all other handshakes.
    ///
    /// # Errors
    /// The response matches no outstanding handshake.
    pub fn accept(&mut self, datagram: &[u8]) -> Result<(Session, Introduction), Rejection> {
        let name = name(datagram).ok_or(Rejection::Foreign)?;
        let Some(at) = self.waiting.iter().position(|it| it.name() == name) else {
            // A duplicate, or a response to a handshake that lost against another.
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

/// Initial messages that were answered, by sending instance.
///
/// A replayed message must be cheap: a message is answered only if it is newer than all
/// those answered for its instance. Times of different instances are not comparable, since
/// the clock may be wrong after a restart. So a replaced instance is never answered again,
/// and an unknown one is answered; without the session's keys, a replayer gains nothing
/// ([`crate::peer::Peer`] keeps its session).
#[derive(Default)]
pub struct AnsweredHandshakes {
    /// Instances with the time of their latest message.
    latest: VecDeque<(u64, Nanos)>,
}

impl AnsweredHandshakes {
    /// Records a message; returns `false` if it must not be answered.
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

    /// Records that an instance was replaced.
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
        // A restarted host's clock may start at zero.
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
