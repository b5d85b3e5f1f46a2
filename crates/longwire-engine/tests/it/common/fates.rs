//! Lane host for tests.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;

use longwire_engine::{
    Delivery, DropReason, FrameAccess, LaneHost, LinkId, Nanos, ReleaseQueue, Verdict,
};

/// Frames by index, and their decisions.
#[derive(Debug, Default)]
pub struct Fates {
    /// Bytes of each frame, as edited.
    pub frames: Vec<Vec<u8>>,
    /// Decisions in reporting order.
    pub decided: Vec<(usize, Verdict)>,
    /// Deliveries awaiting release, queued for `link`.
    pub waiting: ReleaseQueue<(usize, Delivery)>,
    /// The link of the lane.
    pub link: LinkId,
    /// ICMP errors generated.
    pub errors: Vec<Vec<u8>>,
}

impl Fates {
    /// Adds a frame and returns its index.
    pub fn add(&mut self, bytes: &[u8]) -> usize {
        self.frames.push(bytes.to_vec());
        self.frames.len() - 1
    }

    /// Returns the verdicts by frame.
    pub fn verdicts(&self) -> BTreeMap<usize, Vec<Verdict>> {
        let mut verdicts = BTreeMap::new();
        for (index, verdict) in &self.decided {
            let of_frame: &mut Vec<Verdict> = verdicts.entry(*index).or_default();
            of_frame.push(*verdict);
        }
        verdicts
    }

    /// Removes the next delivery released by `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, usize, Delivery)> {
        let (link, _, (index, delivery)) = self.waiting.pop_due(now)?;
        Some((link, index, delivery))
    }
}

impl FrameAccess<usize> for Fates {
    fn bytes<'a>(&'a self, index: &'a usize) -> &'a [u8] {
        &self.frames[*index]
    }

    fn edit(&mut self, index: &mut usize, edit: &mut dyn FnMut(&mut [u8])) {
        edit(&mut self.frames[*index]);
    }

    fn copy(&mut self, index: &mut usize) -> usize {
        *index
    }
}

impl LaneHost<usize> for Fates {
    fn icmp_error(&mut self, _index: &usize, _at: Nanos, error: &[u8]) {
        self.errors.push(error.to_vec());
    }

    fn delivered(&mut self, index: usize, delivery: &Delivery, is_duplicate: bool) {
        // The deliveries of one frame are consecutive.
        let before = self.decided.last().filter(|last| last.0 == index);
        assert_eq!(is_duplicate, before.is_some(), "frame {index}");
        self.decided.push((index, Verdict::Deliver(*delivery)));
        self.waiting
            .push(self.link, delivery.release, (index, *delivery));
    }

    fn dropped(&mut self, index: usize, reason: DropReason) {
        self.decided.push((index, Verdict::Drop(reason)));
    }
}
