//! An attachment of a node.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use longwire_attach::Target;
use longwire_client::node::{AttachmentState, AttachmentView};
use longwire_control::responses::problem_body;
use longwire_io::attach::LoadedSelection;

use crate::LinkFailure;
use crate::attached::AttachedLink;
use crate::request::AttachmentRequest;
use crate::store::Facts;

/// Interval between attempts to attach. For containers and pods, whose lookup takes milliseconds,
/// it grows to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Divisor of the elapsed waiting time that gives the interval.
const WAIT_DIVISOR: u32 = 20;

/// An attachment.
pub(crate) struct Entry {
    pub name: String,
    /// Serializes creation, changes and removal.
    turn: Mutex<()>,
    /// Never held during I/O.
    state: Mutex<EntryState>,
}

/// State of an attachment.
pub(crate) struct EntryState {
    pub request: AttachmentRequest,
    pub facts: Facts,
    /// Links, while the target exists.
    pub link: Option<AttachedLink>,
    /// Reason why there are no links.
    pub reason: Option<String>,
    /// Whether an interface belongs to another link or port.
    pub taken: bool,
    pub returns: u64,
    pub removed: bool,
    /// Whether a thread has been assigned to end or attach the links.
    pub queued: bool,
    next_try: Instant,
    /// Start of the wait for the target.
    waits_since: Option<Instant>,
}

impl Entry {
    pub fn new(name: String, request: AttachmentRequest, facts: Facts) -> Entry {
        Entry {
            name,
            turn: Mutex::new(()),
            state: Mutex::new(EntryState {
                request,
                facts,
                link: None,
                reason: None,
                taken: false,
                returns: 0,
                removed: false,
                queued: false,
                next_try: Instant::now(),
                waits_since: None,
            }),
        }
    }

    /// Waits until no other thread creates, changes or removes the attachment.
    pub fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`Entry::take_turn`], but returns `None` instead of waiting.
    pub fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            // A panic leaves the state consistent.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Locks the state. The lock must not be held during I/O.
    pub fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn view(&self) -> AttachmentView {
        let state = self.state();
        let (link, request) = (state.link.as_ref(), &state.request);
        AttachmentView {
            name: self.name.clone(),
            state: match link {
                Some(_) => AttachmentState::Attached,
                None => AttachmentState::Waiting,
            },
            reason: state.reason.clone(),
            taken: state.taken,
            place: link.map(|link| link.description.clone()),
            interfaces: link.map_or_else(Vec::new, |link| link.interfaces.clone()),
            since_unix: link.map(|link| link.since_unix),
            returns: state.returns,
            spec: request.spec.clone(),
            warnings: request.warnings.iter().cloned().map(problem_body).collect(),
        }
    }
}

impl EntryState {
    /// Records the reason why there is no link, and schedules another attempt.
    pub fn wait_for(&mut self, reason: String, taken: bool) {
        (self.reason, self.taken) = (Some(reason), taken);
        self.postpone();
    }

    /// Schedules the next attempt after one interval.
    pub fn postpone(&mut self) {
        let now = Instant::now();
        let waited = now.duration_since(*self.waits_since.get_or_insert(now));
        let is_slow = matches!(
            self.request.place.target,
            Target::Container(_) | Target::Pod(_)
        );
        let most = if is_slow { RETRY_MAX } else { RETRY };
        self.next_try = now + (waited / WAIT_DIVISOR).clamp(RETRY, most);
    }

    /// Stores attached links.
    pub fn begin(&mut self, link: AttachedLink) {
        self.facts = link.facts.clone();
        self.link = Some(link);
        (self.reason, self.taken) = (None, false);
        self.waits_since = None;
    }

    /// Changes the traffic selection.
    ///
    /// # Errors
    /// If the kernel refuses it at an interface.
    pub fn select(&mut self, loaded: Vec<LoadedSelection>) -> Result<(), LinkFailure> {
        let link = self.link.as_mut();
        Ok(link.map_or(Ok(()), |link| link.attached.select(loaded))?)
    }

    /// Returns whether an attempt is due.
    pub fn is_due(&self) -> bool {
        self.link.is_none() && !self.removed && !self.queued && Instant::now() >= self.next_try
    }
}
