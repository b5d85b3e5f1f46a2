//! Frames that are longer than a datagram: cut into pieces, and joined.

use std::collections::BTreeMap;

use crate::wire::PieceHead;

/// Frames of which some pieces are here: others come while lost ones are sent again. When there are more, the oldest is given up.
const PARTIAL_MAX: usize = 1024;

/// Frames whose pieces have not all come.
#[derive(Debug, Default)]
pub struct PartialFrames {
    frames: BTreeMap<u32, PartialFrame>,
    joined: Vec<u8>,
}

#[derive(Debug)]
struct PartialFrame {
    pieces: Vec<Option<Vec<u8>>>,
    missing: usize,
}

impl PartialFrames {
    /// Takes a piece; returns the whole frame if it was the last one of it.
    pub fn take(&mut self, head: PieceHead, bytes: &[u8]) -> Option<&[u8]> {
        let count = usize::from(head.count);
        if usize::from(head.index) >= count {
            return None;
        }
        let frame = self.frames.entry(head.frame);
        let frame = frame.or_insert_with(|| PartialFrame {
            pieces: vec![None; count],
            missing: count,
        });
        let piece = frame.pieces.get_mut(usize::from(head.index))?;
        if piece.is_none() {
            *piece = Some(bytes.to_vec());
            frame.missing -= 1;
        }
        if frame.missing == 0 {
            let frame = self.frames.remove(&head.frame)?;
            self.joined.clear();
            for piece in frame.pieces.iter().flatten() {
                self.joined.extend_from_slice(piece);
            }
            return Some(&self.joined);
        }
        if self.frames.len() > PARTIAL_MAX {
            self.frames.pop_first();
        }
        None
    }

    /// Gives up all frames.
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_in_any_order() {
        let mut partial = PartialFrames::default();
        let head = |frame, index| PieceHead {
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
