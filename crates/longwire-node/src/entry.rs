//! One attachment of a node.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use longwire_attach::Target;
use longwire_control::node::{AttachmentState, AttachmentView};
use longwire_io::attach::LoadedSelection;

use crate::LinkFailure;
use crate::link::AttachedLink;
use crate::request::AttachmentRequest;
use crate::store::Facts;

/// Time between attempts to attach to a target that does not exist, and after a long wait
/// for a container or pod: to look for one takes milliseconds.
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A wait is long if it takes this many times the interval between attempts.
const PATIENCE: u32 = 20;

/// An attachment.
pub(crate) struct Entry {
    pub name: String,
    /// Held while the attachment is made, changed or removed.
    turn: Mutex<()>,
    /// Held for moments.
    state: Mutex<EntryState>,
}

/// The state of an attachment.
pub(crate) struct EntryState {
    pub request: AttachmentRequest,
    pub facts: Facts,
    /// Its links, while the target exists.
    pub link: Option<AttachedLink>,
    /// Why there are none.
    pub reason: Option<String>,
    /// Whether it is that another link or a port has an interface.
    pub taken: bool,
    pub returns: u64,
    pub removed: bool,
    /// Whether a thread is going to end or attach its links.
    pub queued: bool,
    next_try: Instant,
    /// Since when it has waited for its target.
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

    /// Waits for the turn to make, change or remove it.
    pub fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn if it is free.
    pub fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            // A panic has ended the last turn, and what it did to the state is complete.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the state. It is not to be held while anything is waited for.
    pub fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the attachment as clients see it.
    pub fn view(&self) -> AttachmentView {
        let state = self.state();
        let link = state.link.as_ref();
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
            spec: state.request.spec.clone(),
            warnings: state.request.warnings.clone(),
        }
    }
}

impl EntryState {
    /// Notes why there is no link, and that another attempt is made later.
    pub fn wait_for(&mut self, reason: String, taken: bool) {
        (self.reason, self.taken) = (Some(reason), taken);
        self.postpone();
    }

    /// Makes the next attempt one interval from now.
    pub fn postpone(&mut self) {
        let now = Instant::now();
        let waited = now.duration_since(*self.waits_since.get_or_insert(now));
        let is_slow = matches!(self.request.target, Target::Container(_) | Target::Pod(_));
        let most = if is_slow { RETRY_MAX } else { RETRY };
        self.next_try = now + (waited / PATIENCE).clamp(RETRY, most);
    }

    /// Notes that its links are attached.
    pub fn begin(&mut self, link: AttachedLink) {
        self.facts = link.facts.clone();
        self.link = Some(link);
        (self.reason, self.taken) = (None, false);
        self.waits_since = None;
    }

    /// Takes another part of the traffic from now on.
    ///
    /// # Errors
    /// If the kernel refuses it at one of the interfaces.
    pub fn select(&mut self, loaded: Vec<LoadedSelection>) -> Result<(), LinkFailure> {
        let link = self.link.as_mut();
        link.map_or(Ok(()), |link| link.select(loaded))
    }

    /// Whether it is time for an attempt.
    pub fn is_due(&self) -> bool {
        self.link.is_none() && !self.removed && !self.queued && Instant::now() >= self.next_try
    }
}
