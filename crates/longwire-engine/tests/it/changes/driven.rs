//! Drives a changeable link through arrivals and changes.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use longwire_engine::{
    Delivery, DropReason, FrameMeta, Lane, Link, LinkChange, LinkId, LinkState, Nanos, NoLoader,
    Verdict,
};

use crate::common::fates::Fates;
use crate::common::{config, spec};

/// Link events in time order; ties keep the list order.
#[derive(Debug)]
pub enum Event {
    /// A frame with these bytes.
    Frame(Vec<u8>),
    Change(Box<LinkChange>),
}

/// Returns the changeable link specified by `line`.
pub fn link(line: &str) -> Link {
    Link::new_changeable(config(line), 7, LinkId(3))
}

pub fn frame(len: usize) -> Event {
    Event::Frame(vec![0; len])
}

pub fn state(state: LinkState) -> Event {
    Event::Change(Box::new(LinkChange {
        state: Some(state),
        ..LinkChange::default()
    }))
}

/// Returns a change to the parts in `line`.
pub fn set(line: &str) -> Event {
    let change = spec(line).build_change(&NoLoader);
    Event::Change(Box::new(change.expect("no plugins")))
}

/// Verdicts by event index of the frame.
pub type Verdicts = BTreeMap<usize, Vec<Verdict>>;

struct Run {
    lane: Lane<usize>,
    /// Frames by event index.
    fates: Fates,
    /// Number of decisions checked for order.
    checked: usize,
    /// Latest release and departure.
    latest: (Nanos, Nanos),
}

impl Run {
    fn poll(&mut self, until: impl RangeBounds<Nanos> + Clone) {
        self.lane.poll(until, &mut self.fates);
        while let Some((_, verdict)) = self.fates.decided.get(self.checked).copied() {
            self.checked += 1;
            self.check_order(&verdict);
        }
    }

    /// Checks that neither departures nor in-order releases ever decrease, even across changes.
    /// Frames that are never sent are ignored.
    fn check_order(&mut self, verdict: &Verdict) {
        let Verdict::Deliver(delivery) = verdict else {
            return;
        };
        if delivery.departure < Nanos::MAX {
            assert!(delivery.departure >= self.latest.1, "{delivery:?}");
            self.latest.1 = delivery.departure;
        }
        if self.lane.link().in_order() && delivery.release < Nanos::MAX {
            assert!(delivery.release >= self.latest.0, "{delivery:?}");
            self.latest.0 = delivery.release;
        }
    }
}

/// Runs the events. With `often`, polls at every link event; otherwise, only as required by the
/// contract.
pub fn run(link: Link, events: Vec<(u64, Event)>, often: bool) -> (Verdicts, Lane<usize>) {
    let (verdicts, offered, lane) = run_all(link, events, often);
    let notified = verdicts.len() as u64;
    assert_eq!(notified, offered, "a frame was not decided about");
    (verdicts, lane)
}

/// Like [`run`], for links on which frames may stay forever; also returns the number of offered
/// frames.
pub fn run_all(link: Link, events: Vec<(u64, Event)>, often: bool) -> (Verdicts, u64, Lane<usize>) {
    let mut run = Run {
        lane: Lane::new(link),
        fates: Fates::default(),
        checked: 0,
        latest: (Nanos::ZERO, Nanos::ZERO),
    };
    let mut offered = 0;
    for (at, event) in events {
        let at = Nanos::from_nanos(at);
        while often && let Some(next) = run.lane.next_at().filter(|next| *next < at) {
            run.poll(..=next);
        }
        match event {
            Event::Frame(bytes) => {
                run.poll(..=at);
                offered += 1;
                let meta = FrameMeta::new(at, bytes.len() as u32);
                let index = run.fates.add(&bytes);
                run.lane.offer(meta, index, &mut run.fates);
            }
            Event::Change(change) => {
                run.poll(..at);
                run.fates.add(&[]);
                drop(run.lane.change(at, *change, &mut run.fates));
            }
        }
    }
    run.poll(..);
    (run.fates.verdicts(), offered, run.lane)
}

/// Returns each frame's departure in nanoseconds or its drop reason, in arrival order.
pub fn outcomes(verdicts: &Verdicts) -> Vec<Result<u64, DropReason>> {
    let only = |verdicts: &Vec<Verdict>| match verdicts[..] {
        [Verdict::Deliver(Delivery { departure, .. })] => Ok(departure.as_nanos()),
        [Verdict::Drop(reason)] => Err(reason),
        ref other => panic!("{other:?}"),
    };
    verdicts.values().map(only).collect()
}
