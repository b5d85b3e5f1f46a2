//! Gap frames over a device whose wire runs by itself: frames that are
//! late in the ring are sent late, and the ring has a limited size.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use longwire_engine::{BitRate, Nanos};
use longwire_io::port::gap::{GapTx, RawLine, Tally, wire_bytes};
use longwire_io::port::mem::{Symbol, WireReceiver, spacing_error};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_units::random::Stream;

const RATE: u64 = 10_000_000_000;

/// Frames that a driver's ring holds.
const RING: usize = 96;

/// Frames waiting for a flush.
const BATCH: usize = 32;

/// A network card in virtual time.
struct Card {
    /// Time of the machine, in nanoseconds since the start of the card's wire.
    now: Rc<Cell<u64>>,
    waiting: VecDeque<(Vec<u8>, bool)>,
    ring: VecDeque<Vec<u8>>,
    wire: WireReceiver,
    unsent: usize,
}

impl Card {
    fn new(now: &Rc<Cell<u64>>) -> Card {
        Card {
            now: Rc::clone(now),
            waiting: VecDeque::new(),
            ring: VecDeque::new(),
            wire: WireReceiver::default(),
            unsent: 0,
        }
    }

    /// Lets the wire carry the ring's content until now; without content it is idle.
    fn run(&mut self) {
        let now = self.now.get() * 10 / 8;
        while self.wire.byte_times() < now {
            let Some(frame) = self.ring.pop_front() else {
                self.wire.symbol(Symbol::Idle);
                continue;
            };
            let preamble = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
            for byte in preamble.iter().chain(&frame) {
                self.wire.symbol(Symbol::Byte(*byte));
            }
            (0..12).for_each(|_| self.wire.symbol(Symbol::Idle));
        }
    }
}

impl RawLine for Card {
    fn free_slots(&self) -> usize {
        BATCH - self.waiting.len()
    }

    fn put(&mut self, frame: &[u8], check: [u8; 4], counts: bool) {
        let whole = frame.iter().chain(&check).copied().collect();
        self.waiting.push_back((whole, counts));
        self.unsent += usize::from(counts);
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.run();
        let mut left = 0;
        while self.ring.len() < RING
            && let Some((frame, counts)) = self.waiting.pop_front()
        {
            self.ring.push_back(frame);
            left += usize::from(counts);
        }
        self.unsent -= left;
        Ok(left)
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn frame_max(&self) -> usize {
        1514
    }

    fn runs_by_itself(&self) -> bool {
        true
    }
}

/// Drives a port like the egress stage: every 1 to 5 us, pushes due frames, keeps the
/// wire busy and flushes. One turn takes as long as `pause`. In the end all pushed frames
/// have left.
fn drive(releases: &[Nanos], pause: Option<(u64, u64)>) -> (Card, Tally) {
    let clock = Rc::new(Cell::new(0));
    let rate = BitRate::from_bits_per_sec(RATE).unwrap();
    let mut tx = GapTx::new(Card::new(&clock), "card".to_owned(), rate);
    let mut stream = Stream::of_seed(3);
    let (mut next, mut left) = (0, 0);
    let last = releases.last().unwrap().as_nanos() + 1_000_000;
    while clock.get() < last {
        assert!(tx.needs_idle_fill());
        tx.sync_clock(Nanos::from_nanos(clock.get()));
        while let Some(release) = releases.get(next)
            && release.as_nanos() <= clock.get()
        {
            let bytes = [next as u8; 400];
            let outgoing = TxFrame::whole(&bytes[..60 + next * 37 % 340], *release);
            if tx.push(outgoing) == PushResult::Full {
                break;
            }
            next += 1;
        }
        tx.fill(Nanos::from_nanos(clock.get()));
        left += tx.flush().unwrap();
        let turn = match pause {
            Some((at, long)) if (at..at + 5_000).contains(&clock.get()) => long,
            _ => 1_000 + stream.up_to(4_000),
        };
        clock.set(clock.get() + turn);
    }
    assert_eq!(
        (next, left, tx.unsent()),
        (releases.len(), releases.len(), 0)
    );
    let tally = tx.tally();
    (tx.into_line(), tally)
}

/// Releases, 1 to 20 us apart.
fn releases(count: usize) -> Vec<Nanos> {
    let mut stream = Stream::of_seed(4);
    let mut at = 50_000;
    let mut release = || {
        at += 1_000 + stream.up_to(19_000);
        Nanos::from_nanos(at)
    };
    (0..count).map(|_| release()).collect()
}

#[test]
fn a_card_that_is_kept_busy_is_exact() {
    let releases = releases(800);
    let (card, tally) = drive(&releases, None);
    let counts = card.wire.counts();
    assert_eq!(counts.good, 800);
    assert_eq!((counts.idle, counts.malformed, tally.ran_dry), (0, 0, 0));
    let rate = BitRate::from_bits_per_sec(RATE).unwrap();
    let error = spacing_error(card.wire.frames(), &releases, rate);
    assert!(error < 1.0, "{error} byte times");
    assert_eq!((tally.late, tally.waited, tally.moved), (0, 0, 0));
    // Few frames, with the maximum distance.
    let wire = card.wire.byte_times();
    assert!(tally.fillers < 2 * 800 + wire / wire_bytes(1514));
}

#[test]
fn a_pause_that_is_too_long_is_counted_and_overcome() {
    let releases = releases(800);
    // The ring's content bridges 90 us.
    let (card, tally) = drive(&releases, Some((2_000_000, 90_000)));
    assert_eq!(
        (card.wire.counts().idle, tally.ran_dry, tally.late),
        (0, 0, 0)
    );
    // 400 us exceed the ring's content.
    let (card, tally) = drive(&releases, Some((2_000_000, 400_000)));
    assert_eq!(card.wire.counts().good, 800);
    assert!(card.wire.counts().idle > 100_000);
    assert!(tally.ran_dry >= 1);
    assert!((10..60).contains(&tally.late), "{} frames late", tally.late);
    // From then on everything is as before.
    let rate = BitRate::from_bits_per_sec(RATE).unwrap();
    let after = 400;
    assert!(releases[after].as_nanos() > 3_000_000);
    let error = spacing_error(&card.wire.frames()[after..], &releases[after..], rate);
    assert!(error < 1.0, "{error} byte times");
}
