//! Frames queued for a packet socket and sent by one system call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use longwire_engine::Nanos;
use nix::errno::Errno;

use super::super::vnet;
use super::SUPER_MAX;
use super::launch::Control;
use crate::port::Offload;

/// Messages of up to `SLOTS` frames, in a ring of slots.
pub(super) struct MessageRing<const SLOTS: usize> {
    stride: usize,
    slots: Box<[u8]>,
    // Each message points to its part, which points to its slot.
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    head: usize,
    count: usize,
}

// SAFETY: the pointers between the boxes stay valid when the value moves, because the boxes'
// contents do not move; nothing is tied to a thread.
unsafe impl<const SLOTS: usize> Send for MessageRing<SLOTS> {}

/// Creates a message without an address, because the sockets are bound.
pub(in crate::port) fn message(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which
    // zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message
}

impl<const SLOTS: usize> MessageRing<SLOTS> {
    /// Creates slots of at least `len` bytes. Only touched pages take memory.
    pub(super) fn new(len: usize) -> MessageRing<SLOTS> {
        // An odd number of cache lines spreads the slots over the cache's sets.
        let stride = (len.div_ceil(64) | 1) * 64;
        let mut slots = vec![0u8; SLOTS * stride].into_boxed_slice();
        let mut parts: Box<[libc::iovec]> = slots
            .chunks_exact_mut(stride)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: 0,
            })
            .collect();
        let messages = parts.iter_mut().map(|part| libc::mmsghdr {
            msg_hdr: message(std::slice::from_mut(part)),
            msg_len: 0,
        });
        MessageRing {
            stride,
            messages: messages.collect(),
            slots,
            parts,
            head: 0,
            count: 0,
        }
    }

    /// Returns the number of frames.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of free slots.
    #[inline]
    pub(super) fn free_slots(&self) -> usize {
        SLOTS - self.count
    }

    /// Copies a message in two pieces into a free slot and returns the slot.
    #[inline]
    pub(super) fn put(&mut self, [front, back]: [&[u8]; 2]) -> usize {
        let slot = (self.head + self.count) % SLOTS;
        let bytes = &mut self.slots[slot * self.stride..][..self.stride];
        let end = front.len() + back.len();
        bytes[..front.len()].copy_from_slice(front);
        bytes[front.len()..end].copy_from_slice(back);
        self.parts[slot].iov_len = end;
        self.count += 1;
        slot
    }

    /// Returns the slots of the first `messages` messages.
    pub(super) fn first_slots(&self, messages: usize) -> impl Iterator<Item = usize> {
        let head = self.head;
        (0..messages).map(move |n| (head + n) % SLOTS)
    }

    /// Returns the first message. The ring must not be empty.
    pub(super) fn first(&self) -> &[u8] {
        &self.slots[self.head * self.stride..][..self.parts[self.head].iov_len]
    }

    /// Offers at most the first `max` messages to the kernel and returns the number accepted.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let run = self.count.min(SLOTS - self.head).min(max);
        let messages = &mut self.messages[self.head..][..run];
        // SAFETY: the messages point to parts and slots that live as long as `self`; the kernel
        // reads the slots and writes the messages' lengths only during the call.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                run as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        Ok(Errno::result(sent)? as usize)
    }

    /// Frees the first slots.
    pub(super) fn advance(&mut self, messages: usize) {
        self.head = (self.head + messages) % SLOTS;
        self.count -= messages;
        if self.count == 0 {
            // Restart at the first slot, so that the next batch reuses cached slots.
            self.head = 0;
        }
    }
}

/// Maximum number of frames queued for a flush. More would not reduce the cost per frame, and fewer
/// would not improve caching.
pub(super) const SLOTS: usize = 64;

/// Frames to send, each with a virtio-net header.
pub(super) struct Batch {
    pub(super) ring: MessageRing<SLOTS>,
    /// Control message per frame, to which the frame's message points.
    controls: Box<[Control]>,
    /// Releases of the frames that request a stamp.
    stamped: Box<[Option<Nanos>]>,
    /// Number of wire frames in each frame.
    wire_frames: [u32; SLOTS],
}

// SAFETY: as for the ring, the boxes' contents do not move.
unsafe impl Send for Batch {}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch {
            ring: MessageRing::new(vnet::LEN + SUPER_MAX),
            controls: vec![Control::new(None, None); SLOTS].into_boxed_slice(),
            stamped: vec![None; SLOTS].into_boxed_slice(),
            wire_frames: [0; SLOTS],
        }
    }

    /// Copies a frame into a free slot. `stamped` is its release if `control` requests a stamp.
    #[inline]
    pub(super) fn put(
        &mut self,
        bytes: &[u8],
        offload: Offload,
        control: Control,
        stamped: Option<Nanos>,
    ) {
        let slot = self.ring.put([&vnet::encode(offload), bytes]);
        self.controls[slot] = control;
        self.controls[slot].go_with(&mut self.ring.messages[slot].msg_hdr);
        self.stamped[slot] = stamped;
        self.wire_frames[slot] = offload
            .segments
            .map_or(1, |segments| segments.wire_frames(bytes.len()).len() as u32);
    }

    /// Returns the releases of the first `frames` frames that request a stamp.
    pub(super) fn stamped(&self, frames: usize) -> impl Iterator<Item = Nanos> {
        let first = self.ring.first_slots(frames);
        first.filter_map(|slot| self.stamped[slot])
    }

    /// Returns the number of wire frames in the first `frames` frames.
    pub(super) fn wire_frames(&self, frames: usize) -> u64 {
        let first = self.ring.first_slots(frames);
        first.map(|slot| u64::from(self.wire_frames[slot])).sum()
    }

    /// Returns whether the first frame is a super-packet, according to its virtio-net header.
    pub(super) fn first_has_segments(&self) -> bool {
        self.ring.first()[1] != 0
    }

    /// Returns the first frame. The batch must not be empty.
    pub(super) fn first(&self) -> &[u8] {
        &self.ring.first()[vnet::LEN..]
    }
}
