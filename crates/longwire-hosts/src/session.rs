//! Sessions: Noise handshakes, replay protection, and datagram encryption.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use snow::{Builder, HandshakeState, StatelessTransportState};

use crate::cipher::Primitives;
use crate::key::Key;
use crate::peer::Rejection;
use crate::wire::{HEADER_LEN, Introduction, KIND_DATA, KIND_INITIATE, KIND_RESPOND, TAG_LEN};

/// A pre-shared key with ephemeral keys per session (Noise, sections 7.5 and 9).
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";

/// Domain separation from other protocols with the same key.
const PROLOGUE: &[u8] = b"longwire hosts 1";

/// Length of a handshake's name: the first bytes of its initial message, which are random. The
/// response repeats the name, so that the initiator finds the handshake without trial decryption.
const NAME_LEN: usize = 4;

pub type HandshakeName = [u8; NAME_LEN];

/// A handshake that awaits its response.
pub struct Handshake {
    state: HandshakeState,
    name: HandshakeName,
}

/// The initial message of a handshake, from a host that has the key. Reading it takes no X25519
/// operation; responding takes two.
pub struct FirstMessage {
    state: HandshakeState,
    name: HandshakeName,
    /// The other host's introduction.
    pub theirs: Introduction,
}

/// Keys that two hosts share, and datagram numbers.
pub struct Session {
    keys: StatelessTransportState,
    /// Identifies the session by the start of the handshake hash.
    tag: [u8; 3],
    next: u64,
    window: ReplayWindow,
}

fn builder(key: &Key) -> Option<Builder<'_>> {
    let builder = Builder::with_resolver(PATTERN.parse().ok()?, Box::new(Primitives));
    builder.psk(0, key.bytes()).ok()?.prologue(PROLOGUE).ok()
}

impl Handshake {
    /// Starts a handshake. Returns it with the datagram to send.
    pub fn begin(key: &Key, own: &Introduction) -> Option<(Handshake, Vec<u8>)> {
        let mut state = builder(key)?.build_initiator().ok()?;
        let datagram = message(&mut state, &[KIND_INITIATE], own)?;
        let handshake = Handshake {
            state,
            name: name(&datagram)?,
        };
        Some((handshake, datagram))
    }

    /// Processes a response. Returns the other host's introduction; `None` if the response is
    /// invalid, in which case the handshake stays outstanding.
    pub fn accept(&mut self, datagram: &[u8]) -> Option<Introduction> {
        if name(datagram)? != self.name {
            return None;
        }
        introduction(&mut self.state, datagram.get(1 + NAME_LEN..)?)
    }
}

impl FirstMessage {
    /// Reads an initial message; `None` if the sender lacks the key.
    pub fn read(key: &Key, datagram: &[u8]) -> Option<FirstMessage> {
        let mut state = builder(key)?.build_responder().ok()?;
        let theirs = introduction(&mut state, datagram.get(1..)?)?;
        Some(FirstMessage {
            state,
            name: name(datagram)?,
            theirs,
        })
    }

    /// Returns the session and the response.
    pub fn answer(mut self, own: &Introduction) -> Option<(Session, Vec<u8>)> {
        let [a, b, c, d] = self.name;
        let answer = message(&mut self.state, &[KIND_RESPOND, a, b, c, d], own)?;
        Some((Session::new(self.state)?, answer))
    }
}

/// Returns the name in a handshake datagram.
pub fn name(datagram: &[u8]) -> Option<HandshakeName> {
    datagram.get(1..)?.first_chunk().copied()
}

fn message(state: &mut HandshakeState, header: &[u8], own: &Introduction) -> Option<Vec<u8>> {
    let mut datagram = header.to_vec();
    datagram.resize(256, 0);
    let place = &mut datagram[header.len()..];
    let len = state.write_message(&own.bytes(), place).ok()?;
    datagram.truncate(header.len() + len);
    Some(datagram)
}

fn introduction(state: &mut HandshakeState, message: &[u8]) -> Option<Introduction> {
    let mut payload = [0; 256];
    let len = state.read_message(message, &mut payload).ok()?;
    Introduction::read(payload.get(..len)?)
}

impl Session {
    fn new(state: HandshakeState) -> Option<Session> {
        let tag = state.get_handshake_hash().first_chunk().copied()?;
        Some(Session {
            keys: state.into_stateless_transport_mode().ok()?,
            tag,
            next: 0,
            window: ReplayWindow::default(),
        })
    }

    /// Returns whether a datagram carries this session's tag.
    pub fn is_named_by(&self, datagram: &[u8]) -> bool {
        datagram.get(1..4) == Some(&self.tag)
    }

    /// Encrypts records into a datagram.
    pub fn seal(&mut self, records: &[u8], datagram: &mut Vec<u8>) -> Option<()> {
        let number = self.next;
        self.next += 1;
        datagram.clear();
        datagram.push(KIND_DATA);
        datagram.extend_from_slice(&self.tag);
        datagram.extend_from_slice(&number.to_le_bytes());
        datagram.resize(HEADER_LEN + records.len() + TAG_LEN, 0);
        let sealed = &mut datagram[HEADER_LEN..];
        self.keys.write_message(number, records, sealed).ok()?;
        Some(())
    }

    /// Decrypts a datagram into `records`.
    ///
    /// # Errors
    /// The datagram belongs to another session, is replayed, or fails authentication.
    pub fn open(&mut self, datagram: &[u8], records: &mut Vec<u8>) -> Result<(), Rejection> {
        let header = datagram.first_chunk::<HEADER_LEN>();
        let [_, _, _, _, number @ ..] = header.ok_or(Rejection::Foreign)?;
        if !self.is_named_by(datagram) {
            return Err(Rejection::Foreign);
        }
        let number = u64::from_le_bytes(*number);
        if !self.window.is_new(number) {
            return Err(Rejection::Replayed);
        }
        let sealed = &datagram[HEADER_LEN..];
        records.resize(sealed.len(), 0);
        let len = self.keys.read_message(number, sealed, records);
        let len = len.map_err(|_| Rejection::Foreign)?;
        records.truncate(len);
        self.window.note(number);
        Ok(())
    }
}

/// Maximum number of outstanding handshakes. At one per 250 ms, it covers round trips up to 2 s.
const WAITING_MAX: usize = 8;

/// Maximum number of remembered instances of another host.
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
        self.names.push_back(handshake.name);
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
        let Some(at) = self.waiting.iter().position(|it| it.name == name) else {
            // A duplicate, or a response to a handshake that another one superseded.
            return Err(if self.names.contains(&name) {
                Rejection::Replayed
            } else {
                Rejection::Foreign
            });
        };
        let theirs = self.waiting[at].accept(datagram);
        let theirs = theirs.ok_or(Rejection::Foreign)?;
        let completed = self.waiting.remove(at);
        let session = completed.and_then(|completed| Session::new(completed.state));
        self.waiting.clear();
        Ok((session.ok_or(Rejection::Foreign)?, theirs))
    }
}

/// Answered initial messages, by sending instance.
///
/// A replayed message must be cheap to reject, so a message is answered only if it is newer than
/// all answered messages of its instance. Times of different instances are not comparable, because
/// the clock may be wrong after a restart. Therefore, a replaced instance is never answered again,
/// and an unknown instance is always answered. Without the session's keys, an attacker who replays
/// messages gains nothing ([`crate::peer::Peer`] keeps its session).
#[derive(Default)]
pub struct AnsweredHandshakes {
    /// Instances and the time of their latest message.
    latest: VecDeque<(u64, Nanos)>,
}

impl AnsweredHandshakes {
    /// Records a message. Returns `false` if it must not be answered.
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

/// Size of the window below the highest number.
const SIZE: u64 = 1024;

const WORDS: usize = (SIZE / 64) as usize;

/// Sliding window over datagram numbers (RFC 6479). Each number is accepted once, and none below
/// the window.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// Highest number plus one; 0 before the first.
    next: u64,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Returns whether a number would be accepted.
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        let is_inside = self.next - number <= SIZE;
        is_inside && self.seen[word(number)] & bit(number) == 0
    }

    /// Records the number of an authenticated datagram.
    pub fn note(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= SIZE {
                self.seen = [0; WORDS];
            } else {
                for skipped in self.next..number {
                    self.seen[word(skipped)] &= !bit(skipped);
                }
            }
            self.next = number + 1;
        }
        self.seen[word(number)] |= bit(number);
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longwire_testbed::support::Draws;

    use super::*;

    fn introduction(index: u16, instance: u64, begun: u64) -> Introduction {
        Introduction {
            index,
            digest: [7; 32],
            instance,
            begun: Nanos::from_nanos(begun),
        }
    }

    fn sessions() -> (Session, Session) {
        let key = Key::new([5; 32]);
        let [own, other] = [0, 1].map(|index| introduction(index, 3, 5));
        let (mut handshake, first) = Handshake::begin(&key, &own).expect("a handshake");
        let read = FirstMessage::read(&key, &first).expect("a first message");
        assert_eq!(read.theirs, own);
        let (there, second) = read.answer(&other).expect("an answer");
        for at in 1..second.len() {
            let mut changed = second.clone();
            changed[at] ^= 1;
            assert_eq!(handshake.accept(&changed), None, "byte {at}");
        }
        assert_eq!(handshake.accept(&second), Some(other));
        (Session::new(handshake.state).expect("a session"), there)
    }

    #[test]
    fn sealed_records_are_opened_once_and_only_unchanged() {
        let (mut here, mut there) = sessions();
        let (mut datagram, mut records) = (Vec::new(), Vec::new());
        here.seal(b"a frame", &mut datagram).expect("sealed");
        assert_eq!(datagram.len(), HEADER_LEN + 7 + TAG_LEN);
        assert!(!datagram.windows(5).any(|bytes| bytes == b"frame"));
        for at in 4..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(there.open(&changed, &mut records), Err(Rejection::Foreign));
        }
        assert_eq!(there.open(&datagram, &mut records), Ok(()));
        assert_eq!(records, b"a frame");
        assert_eq!(
            there.open(&datagram, &mut records),
            Err(Rejection::Replayed)
        );
        assert_eq!(here.open(&datagram, &mut records), Err(Rejection::Foreign));
        let (mut other, _) = sessions();
        assert_eq!(other.open(&datagram, &mut records), Err(Rejection::Foreign));
    }

    #[test]
    fn another_key_makes_no_session() {
        let (_, first) = Handshake::begin(&Key::new([5; 32]), &introduction(0, 3, 5)).expect("one");
        assert!(FirstMessage::read(&Key::new([6; 32]), &first).is_none());
        assert!(FirstMessage::read(&Key::new([5; 32]), &[]).is_none());
        assert!(FirstMessage::read(&Key::new([5; 32]), &first).is_some());
    }

    #[test]
    fn each_message_is_answered_once_and_a_replaced_instance_is_not() {
        let message = |instance, begun| introduction(0, instance, begun);
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

    /// Compares with a set of accepted numbers around the end of the window.
    #[test]
    fn each_number_is_accepted_once() {
        let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
        let (mut draws, mut highest, mut accepted) = (Draws(7), 0u64, 0);
        for _ in 0..200_000 {
            let ahead = if draws.below(64) == 0 { 3_000 } else { 3 };
            let number = (highest + draws.below(ahead)).saturating_sub(draws.below(1_300));
            let expected = !seen.contains(&number) && (highest < SIZE || number > highest - SIZE);
            assert_eq!(window.is_new(number), expected, "{number} of {highest}");
            if expected {
                window.note(number);
                seen.insert(number);
                highest = highest.max(number);
                accepted += 1;
            }
        }
        assert!(accepted > 50_000 && accepted < 190_000, "{accepted}");
    }
}
