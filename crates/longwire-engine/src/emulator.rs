//! Links and their release queue together: the engine as one object, for
//! virtual time and for tests. The live pipeline runs the same parts on
//! separate cores.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

pub use crate::held::{HeldBytes, HeldItems, ItemBytes};
use crate::link::{Link, LinkId};
use crate::release::ReleaseQueue;
use crate::verdict::{Delivery, DropReason, Verdict};

/// Several links and their frames that wait for release. `T` is the caller's handle of
/// a frame; a duplicate is a clone of it.
#[derive(Debug)]
pub struct Emulator<T> {
    links: Vec<ManagedLink<T>>,
    waiting: ReleaseQueue<(T, Delivery)>,
    /// Times at which managed links have to decide, as far as they are known.
    due: BTreeSet<(Nanos, LinkId)>,
    /// Verdicts that [`Emulator::offer`] did not return and the caller has not yet
    /// taken.
    decided: VecDeque<DeferredVerdict<T>>,
    /// Latest time passed to [`Emulator::advance`].
    latest: Nanos,
}

/// A decision made after the frame was offered: by a managed queue, or for a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredVerdict<T> {
    /// The frame's link.
    pub link: LinkId,
    /// The frame.
    pub item: T,
    /// The decision; never [`Verdict::Queued`].
    pub verdict: Verdict,
    /// A further delivery of a frame that is already delivered.
    pub copy: bool,
}

/// A managed link with the frames that its queue holds.
#[derive(Debug)]
struct ManagedLink<T> {
    link: Link,
    held: HeldItems<T>,
    due: Option<Nanos>,
}

impl<T: Clone> Emulator<T> {
    /// Creates an emulator of these links, numbered from 0.
    pub fn new(links: Vec<Link>) -> Emulator<T> {
        let managed = |link| ManagedLink {
            link,
            held: HeldItems::new(),
            due: None,
        };
        Emulator {
            links: links.into_iter().map(managed).collect(),
            waiting: ReleaseQueue::new(),
            due: BTreeSet::new(),
            decided: VecDeque::new(),
            latest: Nanos::ZERO,
        }
    }

    /// Makes, in event time, every decision of managed queues up to and including
    /// `now`. Call it with a frame's arrival before offering the frame.
    /// [`Emulator::next_decided`] returns the decisions. `bytes` finds a frame's bytes.
    pub fn advance(&mut self, now: Nanos, bytes: &impl ItemBytes<T>) {
        let now = now.max(self.latest);
        self.latest = now;
        while let Some((at, link)) = self.due.first().copied() {
            if at > now {
                break;
            }
            self.due.pop_first();
            self.advance_link(link, now, bytes);
        }
    }

    fn advance_link(&mut self, id: LinkId, now: Nanos, bytes: &impl ItemBytes<T>) {
        let managed = &mut self.links[id.0 as usize];
        managed.due = None;
        // The deliveries of one frame follow each other directly.
        let mut copy = false;
        loop {
            let frames = HeldBytes {
                held: &managed.held,
                of: bytes,
            };
            let Some((number, verdict)) = managed.link.poll(now, &frames) else {
                break;
            };
            let more = matches!(verdict, Verdict::Deliver(Delivery { more: true, .. }));
            let item = if more {
                managed.held.get(number).cloned()
            } else {
                managed.held.take(number)
            };
            let Some(item) = item else { continue };
            if let Verdict::Deliver(delivery) = verdict {
                let waiting = (item.clone(), delivery);
                self.waiting.push(id, delivery.release, waiting);
            }
            self.decided.push_back(DeferredVerdict {
                link: id,
                item,
                verdict,
                copy,
            });
            copy = more;
        }
        self.note_due(id);
    }

    /// Notes when the link must be called again.
    fn note_due(&mut self, id: LinkId) {
        let managed = &mut self.links[id.0 as usize];
        let due = managed.link.next_at();
        if due != managed.due {
            if let Some(before) = managed.due {
                self.due.remove(&(before, id));
            }
            managed.due = due;
            self.due.extend(due.map(|at| (at, id)));
        }
    }

    /// Offers a frame to a link. A frame that is delivered at once waits here, with its
    /// duplicates, until [`Emulator::poll`] returns it; a queued frame waits until its
    /// queue has decided.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn offer(&mut self, id: LinkId, frame: FrameMeta, bytes: &[u8], item: T) -> Verdict {
        let managed = &mut self.links[id.0 as usize];
        let verdict = managed.link.offer(frame, bytes);
        match verdict {
            Verdict::Deliver(delivery) => {
                let mut more = delivery.more;
                self.waiting
                    .push(id, delivery.release, (item.clone(), delivery));
                while more && let Some(copy) = managed.link.next_copy() {
                    more = copy.more;
                    let release = copy.release;
                    self.waiting.push(id, release, (item.clone(), copy));
                    self.decided.push_back(DeferredVerdict {
                        link: id,
                        item: item.clone(),
                        verdict: Verdict::Deliver(copy),
                        copy: true,
                    });
                }
            }
            Verdict::Queued => {
                managed.held.push(item);
                self.note_due(id);
            }
            Verdict::Drop(_) => {}
        }
        verdict
    }

    /// Returns the next decision that [`Emulator::offer`] did not return. Decisions are
    /// kept until taken: take them after every [`Emulator::advance`] and
    /// [`Emulator::offer`].
    pub fn next_decided(&mut self) -> Option<DeferredVerdict<T>> {
        self.decided.pop_front()
    }

    /// Returns the next frame due at or before `now`. Managed queues must have been
    /// advanced up to `now`. Calling late changes only the time of the call.
    pub fn poll(&mut self, now: Nanos) -> Option<(LinkId, T, Delivery)> {
        let (link, _, (item, delivery)) = self.waiting.pop_due(now)?;
        Some((link, item, delivery))
    }

    /// Returns when to call [`Emulator::advance`] and [`Emulator::poll`] next.
    pub fn next_at(&self) -> Option<Nanos> {
        let due = self.due.first().map(|(at, _)| *at);
        due.into_iter().chain(self.waiting.next_at()).min()
    }

    /// Returns the number of frames that wait for release, duplicates included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of frames in managed queues.
    pub fn queued(&self) -> usize {
        let held = |managed: &ManagedLink<T>| managed.held.len();
        self.links.iter().map(held).sum()
    }

    /// Returns one of the links.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        Some(&self.links.get(link.0 as usize)?.link)
    }

    /// Returns one of the links, to edit its frames.
    pub fn link_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        Some(&mut self.links.get_mut(link.0 as usize)?.link)
    }
}

impl<T> DeferredVerdict<T> {
    /// Returns the reason, if the frame was dropped.
    pub fn dropped(&self) -> Option<DropReason> {
        match self.verdict {
            Verdict::Drop(reason) => Some(reason),
            Verdict::Deliver(_) | Verdict::Queued => None,
        }
    }
}
