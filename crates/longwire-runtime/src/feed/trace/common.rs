//! Several trace feeds in one time base.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longwire_engine::Nanos;
use longwire_engine::replay::RoundEnd;
use longwire_io::PortError;

use super::TraceFeed;

/// Puts feeds that are sent together into one time base: their times count from
/// the earliest frame of all. If they are sent several times, each round begins
/// for all of them together, after the longest; otherwise traces of different
/// lengths would drift apart with every round.
///
/// Waits for the first frame of each feed. To be called before any of them is
/// fed.
///
/// # Errors
/// A trace cannot be read as far as its first frame.
pub fn in_one_time_base(feeds: &mut [TraceFeed]) -> Result<(), PortError> {
    let mut first: Option<Nanos> = None;
    for feed in &mut *feeds {
        let stamp = feed.first_stamp()?;
        first = match (first, stamp) {
            (Some(first), Some(stamp)) => Some(first.min(stamp)),
            (first, stamp) => first.or(stamp),
        };
    }
    if let Some(first) = first {
        feeds.iter_mut().for_each(|feed| feed.count_from(first));
    }
    let rounds = Arc::new(Mutex::new(Rounds::default()));
    for feed in feeds {
        feed.begin_rounds_with(Member::new(&rounds));
    }
    Ok(())
}

/// The rounds of all feeds.
#[derive(Debug, Default)]
struct Rounds {
    /// Feeds that have not sent their last round.
    members: usize,
    /// Those of them that have ended this round and wait for the next.
    waiting: usize,
    /// The latest end of this round so far.
    end: RoundEnd,
    /// Rounds begun, after the first one.
    begun: u64,
    /// The start of the last of them.
    began: Nanos,
}

impl Rounds {
    /// Begins the next round, if every feed has ended this one.
    fn begin_if_all_wait(&mut self) {
        if self.members > 0 && self.waiting == self.members {
            self.began = self.end.next();
            self.begun += 1;
            (self.waiting, self.end) = (0, RoundEnd::default());
        }
    }
}

/// The membership of a feed in common rounds. Dropping it leaves them.
#[derive(Debug)]
pub(super) struct Member {
    rounds: Arc<Mutex<Rounds>>,
    /// Rounds that this feed has begun, after the first one.
    begun: u64,
    /// It has ended its round.
    waits: bool,
}

impl Member {
    fn new(rounds: &Arc<Mutex<Rounds>>) -> Member {
        let member = Member {
            rounds: Arc::clone(rounds),
            begun: 0,
            waits: false,
        };
        member.lock().members += 1;
        member
    }

    fn lock(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends this feed's round. Returns the start of the next round as soon as
    /// all other feeds have ended theirs; to be called again until then.
    pub(super) fn end_round(&mut self, end: RoundEnd) -> Option<Nanos> {
        let first_time = !self.waits;
        let mut rounds = self.lock();
        if first_time {
            rounds.end = rounds.end.max(end);
            rounds.waiting += 1;
            rounds.begin_if_all_wait();
        }
        // The next round cannot begin before this feed has ended this one.
        let begins = (rounds.begun > self.begun).then_some(rounds.began);
        drop(rounds);
        self.waits = begins.is_none();
        self.begun += u64::from(begins.is_some());
        begins
    }

    /// Whether this feed must go on waiting for others.
    pub(super) fn must_wait(&self) -> bool {
        self.waits && self.lock().begun == self.begun
    }

    /// Whether this feed has waited for others and can continue.
    pub(super) fn may_go_on(&self) -> bool {
        self.waits && self.lock().begun > self.begun
    }

    /// Ends this feed for good, so that others do not wait for it; its current
    /// round still lasts until `end` at least.
    pub(super) fn leave(self, end: RoundEnd) {
        let mut rounds = self.lock();
        rounds.end = rounds.end.max(end);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let began_meanwhile = self.may_go_on();
        let waited = self.waits && !began_meanwhile;
        let mut rounds = self.lock();
        rounds.members -= 1;
        rounds.waiting -= usize::from(waited);
        rounds.begin_if_all_wait();
    }
}
