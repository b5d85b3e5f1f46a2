//! Frames exchanged with other hosts that run parts of the same network.
//!
//! After its last link has decided, a frame for another host's port leaves the deciding
//! stage with its release. A transport carries it to that host, where it joins the release
//! queue ([0046](../../../../docs/decisions/0046-hosts.md)).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use longwire_engine::{Bytes, Nanos};
use longwire_io::delay_line::{
    ArenaError, DelayLineConfig, DelayLineReader, DelayLineWriter, Note, delay_line,
};
use longwire_io::{Bell, Offload};
use longwire_packet::bridge::PortIndex;

use super::frames::{Exit, Frame, Frames};

/// Bytes appended to a frame on its line: the port and the late flag.
const SUFFIX_LEN: usize = 3;

/// A frame between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFrame<'a> {
    /// The output port.
    pub port: PortIndex,
    /// The line of the release queue: 0 without a link, else the last link's number plus 1.
    pub line: u32,
    /// Release on this host's clock.
    pub release: Nanos,
    /// Whether the frame reached this host after its release.
    pub is_late: bool,
    /// The frame's bytes.
    pub bytes: &'a [u8],
}

/// The writing end of a line between stage and transport.
#[derive(Debug)]
pub struct RemoteWriter {
    line: DelayLineWriter,
    with_suffix: Vec<u8>,
    has_new: bool,
    dropped: Arc<AtomicU64>,
}

/// The reading end of a line between stage and transport.
#[derive(Debug)]
pub struct RemoteReader {
    line: DelayLineReader,
    dropped: Arc<AtomicU64>,
}

/// Creates a line between stage and transport, for one host and direction.
///
/// # Errors
/// As for [`delay_line`].
pub fn remote_line(budget: Bytes) -> Result<(RemoteWriter, RemoteReader), ArenaError> {
    let (line, reader) = delay_line(&DelayLineConfig {
        budget,
        huge_pages: false,
    })?;
    let dropped = Arc::new(AtomicU64::new(0));
    let writer = RemoteWriter {
        line,
        with_suffix: Vec::new(),
        has_new: false,
        dropped: Arc::clone(&dropped),
    };
    let reader = RemoteReader {
        line: reader,
        dropped,
    };
    Ok((writer, reader))
}

impl RemoteWriter {
    /// Writes a frame. If memory is exhausted, counts the frame as dropped and returns
    /// `false`.
    pub fn push(&mut self, frame: &RemoteFrame<'_>) -> bool {
        let bytes = &mut self.with_suffix;
        bytes.clear();
        bytes.extend_from_slice(frame.bytes);
        bytes.extend_from_slice(&frame.port.0.to_le_bytes());
        bytes.push(frame.is_late.into());
        let note = Note {
            release: frame.release,
            tag: frame.line,
            offload: Offload::NONE,
            part: None,
            wire_len: 0,
        };
        let pushed = self.line.push(bytes, note).is_ok();
        self.has_new |= pushed;
        if !pushed {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        pushed
    }

    /// Returns the number of frames dropped for lack of memory.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Publishes the pushed frames and returns whether there were any.
    pub fn publish(&mut self) -> bool {
        self.line.publish();
        std::mem::take(&mut self.has_new)
    }
}

impl RemoteReader {
    /// Returns the number of frames dropped for lack of memory.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the next frame.
    pub fn front(&mut self) -> Option<RemoteFrame<'_>> {
        let descriptor = self.line.front()?;
        let bytes = self.line.front_bytes();
        let (bytes, suffix) = bytes.split_at_checked(bytes.len().checked_sub(SUFFIX_LEN)?)?;
        let [low, high, late] = suffix.first_chunk::<SUFFIX_LEN>()?;
        Some(RemoteFrame {
            port: PortIndex(u16::from_le_bytes([*low, *high])),
            line: descriptor.tag(),
            release: descriptor.release(),
            is_late: *late != 0,
            bytes,
        })
    }

    /// Returns whether the line is empty.
    pub fn is_empty(&mut self) -> bool {
        self.line.front().is_none()
    }

    /// Removes the next frame.
    pub fn advance(&mut self) {
        self.line.advance();
    }

    /// Returns memory to the writer.
    pub fn settle(&mut self) {
        self.line.settle();
    }
}

/// The network's other hosts.
#[derive(Debug)]
pub struct RemoteParts {
    /// By port: the index of its host among the other hosts. `None` for a port of this
    /// host.
    pub exits: Vec<Option<usize>>,
    /// Frames to each other host.
    pub outbound: Vec<RemoteWriter>,
    /// Frames from each other host.
    pub inbound: Vec<RemoteReader>,
    /// Wakes the transport.
    pub bell: Arc<Bell>,
    /// The deciding thread's bell, for the transport. Set at the start.
    pub deciding: Arc<OnceLock<Arc<Bell>>>,
}

impl RemoteParts {
    /// Returns whether a port belongs to another host.
    pub(super) fn has(&self, port: usize) -> bool {
        matches!(self.exits.get(port), Some(Some(_)))
    }

    /// Sends a decided frame to the remote hosts of its output ports. Returns the frame if it
    /// has local output ports.
    pub(super) fn send(
        &mut self,
        frames: &mut Frames,
        line: u32,
        release: Nanos,
        frame: Frame,
    ) -> Option<Frame> {
        match frame.exit() {
            Exit::One(port) => {
                if !self.has(port.0.into()) {
                    return Some(frame);
                }
                self.push(port, line, release, frames.bytes(&frame));
                frames.free(frame);
                None
            }
            Exit::AllBut(arrival) => {
                for port in (0..self.exits.len() as u16).map(PortIndex) {
                    if port != arrival && self.has(port.0.into()) {
                        self.push(port, line, release, frames.bytes(&frame));
                    }
                }
                Some(frame)
            }
        }
    }

    fn push(&mut self, port: PortIndex, line: u32, release: Nanos, bytes: &[u8]) {
        let Some(Some(host)) = self.exits.get(usize::from(port.0)) else {
            return;
        };
        let frame = RemoteFrame {
            port,
            line,
            release,
            is_late: false,
            bytes,
        };
        // The line counts frames dropped for lack of memory, and the transport reports
        // them.
        let _ = self.outbound[*host].push(&frame);
    }

    /// Publishes the frames to the transport.
    pub(super) fn publish(&mut self) {
        let mut has_new = false;
        for line in &mut self.outbound {
            has_new |= line.publish();
        }
        if has_new {
            self.bell.ring_if_asleep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_a_full_line_drops_are_counted_at_both_ends() {
        let (mut writer, reader) = remote_line(Bytes(1 << 20)).expect("a line");
        let bytes = vec![7; 1_500];
        let frame = RemoteFrame {
            port: PortIndex(1),
            line: 1,
            release: Nanos::ZERO,
            is_late: false,
            bytes: &bytes,
        };
        let refused = (0..2_000).filter(|_| !writer.push(&frame)).count() as u64;
        assert!(refused > 0 && refused < 2_000, "{refused}");
        assert_eq!((writer.dropped(), reader.dropped()), (refused, refused));
    }

    #[test]
    fn frames_cross_a_line_unchanged() {
        let (mut writer, mut reader) = remote_line(Bytes(1 << 20)).expect("a line");
        let sent: Vec<Vec<u8>> = (0..50).map(|n| vec![n as u8; n * 30]).collect();
        let frame = |number: usize| RemoteFrame {
            port: PortIndex(1_000 + number as u16),
            line: u32::MAX - number as u32,
            release: Nanos::from_nanos(u64::MAX / 2 + number as u64),
            is_late: number.is_multiple_of(3),
            bytes: &sent[number],
        };
        for number in 0..sent.len() {
            assert!(writer.push(&frame(number)));
        }
        assert!(reader.is_empty());
        assert!(writer.publish());
        assert!(!writer.publish());
        for number in 0..sent.len() {
            assert_eq!(reader.front(), Some(frame(number)));
            reader.advance();
        }
        assert!(reader.is_empty());
    }
}
