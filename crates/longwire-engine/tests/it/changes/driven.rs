//! Driving one changeable link through arrivals and changes.

use std::collections::BTreeMap;

use longwire_engine::{
    Delivery, DropReason, FrameBytes, FrameMeta, Link, LinkChange, LinkId, Nanos, NoLoader, Verdict,
};

use crate::common::{config, spec};

/// Events of the link, in order of time; at one time, as listed.
#[derive(Debug)]
pub enum Event {
    /// A frame with these bytes.
    Frame(Vec<u8>),
    Change(Box<LinkChange>),
}

/// Returns a changeable link that the line describes.
pub fn link(line: &str) -> Link {
    Link::new_changeable(config(line), 7, LinkId(3))
}

/// Returns a change to the parts that the line gives.
pub fn set(line: &str) -> Event {
    let change = spec(line).build_change(&NoLoader);
    Event::Change(Box::new(change.expect("no plugins")))
}

/// Verdicts by the index of the frame's event.
pub type Verdicts = BTreeMap<usize, Vec<Verdict>>;

/// Finds bytes by the number of a queued frame.
#[derive(Default)]
struct Queued(Vec<(usize, Vec<u8>)>);

impl FrameBytes for Queued {
    fn bytes(&self, number: u64) -> &[u8] {
        &self.0[number as usize].1
    }
}

struct Run {
    link: Link,
    queued: Queued,
    verdicts: Verdicts,
    /// The latest release and departure so far.
    latest: (Nanos, Nanos),
}

impl Run {
    fn poll(&mut self, now: Nanos) {
        while let Some((number, verdict)) = self.link.poll(now, &self.queued) {
            self.decided(number, verdict);
        }
    }

    /// Polls before a change at `now`: dequeues at `now` follow the change.
    fn poll_before(&mut self, now: Nanos) {
        while let Some((number, verdict)) = self.link.poll_before(now, &self.queued) {
            self.decided(number, verdict);
        }
    }

    fn decided(&mut self, number: u64, verdict: Verdict) {
        let (event, mut bytes) = self.queued.0[number as usize].clone();
        let notified = self.verdicts.entry(event).or_default();
        if let Verdict::Deliver(delivery) = verdict
            && notified.is_empty()
        {
            self.link.edit(&delivery, &mut bytes);
        }
        notified.push(verdict);
        self.check_order(&verdict);
    }

    /// In order, releases never decrease across changes; departures never decrease at
    /// all. Frames that are never sent are not counted.
    fn check_order(&mut self, verdict: &Verdict) {
        let Verdict::Deliver(delivery) = verdict else {
            return;
        };
        if delivery.departure < Nanos::MAX {
            assert!(delivery.departure >= self.latest.1, "{delivery:?}");
            self.latest.1 = delivery.departure;
        }
        if self.link.in_order() && delivery.release < Nanos::MAX {
            assert!(delivery.release >= self.latest.0, "{delivery:?}");
            self.latest.0 = delivery.release;
        }
    }
}

/// Runs the events; `often` polls at every instant with a decision, otherwise only as
/// the contract requires.
pub fn run(link: Link, events: Vec<(u64, Event)>, often: bool) -> (Verdicts, Link) {
    let (verdicts, offered, link) = run_all(link, events, often);
    let notified = verdicts.len() as u64;
    assert_eq!(notified, offered, "a frame was not decided about");
    (verdicts, link)
}

/// The same for links that may keep frames for ever; returns the number of offered
/// frames too.
pub fn run_all(link: Link, events: Vec<(u64, Event)>, often: bool) -> (Verdicts, u64, Link) {
    let mut run = Run {
        link,
        queued: Queued::default(),
        verdicts: Verdicts::new(),
        latest: (Nanos::ZERO, Nanos::ZERO),
    };
    let mut offered = 0;
    for (index, (at, event)) in events.into_iter().enumerate() {
        let at = Nanos::from_nanos(at);
        while often && let Some(next) = run.link.next_at().filter(|next| *next < at) {
            run.poll(next);
        }
        match event {
            Event::Frame(bytes) => {
                run.poll(at);
                offered += 1;
                let meta = FrameMeta::new(at, bytes.len() as u32);
                match run.link.offer(meta, &bytes) {
                    Verdict::Queued => run.queued.0.push((index, bytes)),
                    verdict => {
                        let notified = run.verdicts.entry(index).or_default();
                        notified.push(verdict);
                        while let Some(copy) = run.link.next_copy() {
                            notified.push(Verdict::Deliver(copy));
                        }
                    }
                }
            }
            Event::Change(change) => {
                run.poll_before(at);
                drop(run.link.change(at, *change, &run.queued));
            }
        }
    }
    run.poll(Nanos::MAX);
    (run.verdicts, offered, run.link)
}

/// Departures and drops, in the order of arrival.
pub fn outcomes(verdicts: &Verdicts) -> Vec<Result<u64, DropReason>> {
    let only = |verdicts: &Vec<Verdict>| match verdicts[..] {
        [Verdict::Deliver(Delivery { departure, .. })] => Ok(departure.as_nanos()),
        [Verdict::Drop(reason)] => Err(reason),
        ref other => panic!("{other:?}"),
    };
    verdicts.values().map(only).collect()
}
