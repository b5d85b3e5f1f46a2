//! Links and their release queue together: the engine as one object, for
//! virtual time and for tests. The live pipeline runs the same parts on
//! separate cores.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

pub use crate::held::ItemBytes;
use crate::held::{HeldBytes, HeldItems};
use crate::link::{Link, LinkId};
use crate::release::ReleaseQueue;
use crate::verdict::{Delivery, DropReason, Verdict};

/// Several links and what waits for release from them. `T` is the caller's
/// handle of a frame; a duplicate is a clone of it.
#[derive(Debug)]
pub struct Emulator<T> {
    links: Vec<Managed<T>>,
    waiting: ReleaseQueue<(T, Delivery)>,
    /// When managed links have something to decide, as far as was looked.
    due: BTreeSet<(Nanos, LinkId)>,
    /// Verdicts that [`Emulator::offer`] did not return and nobody has taken.
    decided: VecDeque<Decided<T>>,
    /// The latest time of a call of [`Emulator::advance`].
    latest: Nanos,
}

/// What was decided about a frame after it was offered: by a managed queue,
/// or for its duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided<T> {
    /// The frame's link.
    pub link: LinkId,
    /// The frame.
    pub item: T,
    /// The decision; never [`Verdict::Queued`].
    pub verdict: Verdict,
    /// It is a further delivery of a frame that is delivered already.
    pub copy: bool,
}

/// A link with the frames that its queue holds.
#[derive(Debug)]
struct Managed<T> {
    link: Link,
    held: HeldItems<T>,
    due: Option<Nanos>,
}

impl<T: Clone> Emulator<T> {
    /// An emulator of these links, numbered from 0.
    pub fn new(links: Vec<Link>) -> Emulator<T> {
        let managed = |link| Managed {
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

    /// Decides, in event time, all that managed queues decide up to `now` and
    /// at it. To be called with a frame's arrival before it is offered.
    /// [`Emulator::next_decided`] tells what came of it. `bytes` finds a
    /// frame's bytes.
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
        // A frame's deliveries come one behind the other.
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
            let item = match more {
                true => managed.held.get(number).cloned(),
                false => managed.held.take(number),
            };
            let Some(item) = item else {
                continue;
            };
            if let Verdict::Deliver(delivery) = verdict {
                let waiting = (item.clone(), delivery);
                self.waiting.push(id, delivery.release, waiting);
            }
            self.decided.push_back(Decided {
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

    /// Offers a frame to a link. What is delivered at once waits here until
    /// [`Emulator::poll`] yields it, with its duplicates; what is queued
    /// until its queue has decided.
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
                    self.decided.push_back(Decided {
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

    /// The next of the decisions that [`Emulator::offer`] did not return and
    /// nobody has taken. They are kept until they are: take them after every
    /// [`Emulator::advance`] and [`Emulator::offer`].
    pub fn next_decided(&mut self) -> Option<Decided<T>> {
        self.decided.pop_front()
    }

    /// The next frame due at `now` or before. Managed queues must have been
    /// advanced up to `now`. Calling late changes nothing but the time of the
    /// call.
    pub fn poll(&mut self, now: Nanos) -> Option<(LinkId, T, Delivery)> {
        let (link, _, (item, delivery)) = self.waiting.pop_due(now)?;
        Some((link, item, delivery))
    }

    /// When to call [`Emulator::advance`] and [`Emulator::poll`] next.
    pub fn next_at(&self) -> Option<Nanos> {
        let due = self.due.first().map(|(at, _)| *at);
        due.into_iter().chain(self.waiting.next_at()).min()
    }

    /// How many frames wait for their release, duplicates included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many frames wait in managed queues.
    pub fn queued(&self) -> usize {
        let held = |managed: &Managed<T>| managed.held.len();
        self.links.iter().map(held).sum()
    }

    /// One of the links.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        Some(&self.links.get(link.0 as usize)?.link)
    }

    /// One of the links, to edit its frames.
    pub fn link_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        Some(&mut self.links.get_mut(link.0 as usize)?.link)
    }
}

impl<T> Decided<T> {
    /// The reason, if the frame was dropped.
    pub fn dropped(&self) -> Option<DropReason> {
        match self.verdict {
            Verdict::Drop(reason) => Some(reason),
            Verdict::Deliver(_) | Verdict::Queued => None,
        }
    }
}
