//! Fragmentation of frames longer than a datagram.

use std::collections::BTreeMap;

use crate::wire::FragmentHead;

/// Maximum number of incomplete frames that wait for resent fragments; if there are more, the
/// oldest is dropped.
const PARTIAL_MAX: usize = 1024;

/// Reassembles frames from fragments.
#[derive(Debug, Default)]
pub struct PartialFrames {
    frames: BTreeMap<u32, PartialFrame>,
    joined: Vec<u8>,
}

#[derive(Debug)]
struct PartialFrame {
    fragments: Vec<Option<Vec<u8>>>,
    missing: usize,
}

impl PartialFrames {
    /// Processes a fragment, and returns the frame once it is complete.
    pub fn take(&mut self, head: FragmentHead, bytes: &[u8]) -> Option<&[u8]> {
        let count = usize::from(head.count);
        if usize::from(head.index) >= count {
            return None;
        }
        let frame = self.frames.entry(head.frame);
        let frame = frame.or_insert_with(|| PartialFrame {
            fragments: vec![None; count],
            missing: count,
        });
        let fragment = frame.fragments.get_mut(usize::from(head.index))?;
        if fragment.is_none() {
            *fragment = Some(bytes.to_vec());
            frame.missing -= 1;
        }
        if frame.missing == 0 {
            let frame = self.frames.remove(&head.frame)?;
            self.joined.clear();
            for fragment in frame.fragments.iter().flatten() {
                self.joined.extend_from_slice(fragment);
            }
            return Some(&self.joined);
        }
        if self.frames.len() > PARTIAL_MAX {
            self.frames.pop_first();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_joined_in_any_order() {
        let mut partial = PartialFrames::default();
        let head = |frame, index| FragmentHead {
            frame,
            index,
            count: 3,
        };
        assert_eq!(partial.take(head(1, 2), b"ef"), None);
        assert_eq!(partial.take(head(2, 0), b"gh"), None);
        assert_eq!(partial.take(head(1, 2), b"ef"), None);
        assert_eq!(partial.take(head(1, 3), b"xx"), None);
        assert_eq!(partial.take(head(1, 0), b"ab"), None);
        assert_eq!(partial.take(head(1, 1), b"cd"), Some(&b"abcdef"[..]));
        for frame in 3..2_000 {
            assert_eq!(partial.take(head(frame, 0), b"lost"), None);
        }
        assert!(partial.frames.len() <= PARTIAL_MAX);
    }
}
