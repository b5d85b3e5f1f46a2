//! Frames waiting for a packet socket, each with a virtio-net header, sent by one system
//! call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use longwire_engine::Nanos;

use super::super::socket::checked;
use super::super::vnet;
use super::SUPER_MAX;
use super::control::Control;
use crate::port::Offload;

/// Maximum frames that wait for a flush. More would not make a system call cheaper, and
/// fewer would still fit the cache.
pub(super) const SLOTS: usize = 64;
/// Bytes of a slot, which holds a super-packet; only touched pages are backed by
/// memory. An odd number of cache lines, so that slots do not all map to the same few
/// sets of the cache.
const STRIDE: usize = 64 * 1037;
const _: () = assert!(vnet::LEN + SUPER_MAX <= STRIDE);

/// Frames to be sent, in a ring of slots.
pub(super) struct Batch {
    slots: Box<[u8]>,
    // Each message points to its part, and that to its slot.
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    /// Control message of each frame; its message points to it.
    controls: Box<[Control]>,
    /// Releases of the frames to be stamped.
    stamped: Box<[Option<Nanos>]>,
    /// Wire frames in each.
    wire_frames: [u32; SLOTS],
    head: usize,
    count: usize,
}

// SAFETY: the pointers among the boxes stay right wherever the value is
// moved, for the boxes' contents do not move; nothing is tied to a thread.
unsafe impl Send for Batch {}

/// A message without an address: the sockets are bound.
pub(in crate::port) fn message(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which
    // zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message
}

impl Batch {
    pub(super) fn new() -> Batch {
        let mut slots = vec![0u8; SLOTS * STRIDE].into_boxed_slice();
        let mut parts: Box<[libc::iovec]> = slots
            .chunks_exact_mut(STRIDE)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: 0,
            })
            .collect();
        let messages = parts
            .iter_mut()
            .map(|part| libc::mmsghdr {
                msg_hdr: message(std::slice::from_mut(part)),
                msg_len: 0,
            })
            .collect();
        Batch {
            slots,
            parts,
            messages,
            controls: vec![Control::new(None, None); SLOTS].into_boxed_slice(),
            stamped: vec![None; SLOTS].into_boxed_slice(),
            wire_frames: [0; SLOTS],
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

    /// Copies a frame into a free slot; `stamped` is its release if `control` requests a
    /// stamp.
    #[inline]
    pub(super) fn put(
        &mut self,
        bytes: &[u8],
        offload: Offload,
        control: Control,
        stamped: Option<Nanos>,
    ) {
        let index = (self.head + self.count) % SLOTS;
        let slot = &mut self.slots[index * STRIDE..][..STRIDE];
        let end = vnet::LEN + bytes.len();
        slot[..vnet::LEN].copy_from_slice(&vnet::encode(offload));
        slot[vnet::LEN..end].copy_from_slice(bytes);
        self.parts[index].iov_len = end;
        self.controls[index] = control;
        self.controls[index].go_with(&mut self.messages[index].msg_hdr);
        self.stamped[index] = stamped;
        self.wire_frames[index] = offload
            .segments
            .map_or(1, |segments| segments.wire_frames(bytes.len()).len() as u32);
        self.count += 1;
    }

    /// Returns the releases of the first `frames` frames that request a stamp.
    pub(super) fn stamped(&self, frames: usize) -> impl Iterator<Item = Nanos> {
        let first = (0..frames).map(|n| (self.head + n) % SLOTS);
        first.filter_map(|index| self.stamped[index])
    }

    /// Returns the number of wire frames in the first frames.
    pub(super) fn wire_frames(&self, frames: usize) -> u64 {
        let first = (0..frames).map(|n| (self.head + n) % SLOTS);
        first.map(|index| u64::from(self.wire_frames[index])).sum()
    }

    /// Whether the first frame is a super-packet, by its virtio-net header.
    pub(super) fn first_has_segments(&self) -> bool {
        self.slots[self.head * STRIDE + 1] != 0
    }

    /// Returns the first frame, of which there is one.
    pub(super) fn first(&self) -> &[u8] {
        &self.slots[self.head * STRIDE..][vnet::LEN..self.parts[self.head].iov_len]
    }

    /// Offers at most the first `max` frames to the kernel; returns the number accepted.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let run = self.count.min(SLOTS - self.head).min(max);
        let messages = &mut self.messages[self.head..][..run];
        // SAFETY: the messages point to parts and slots that live as long as
        // `self`; the kernel reads the slots and writes the messages' lengths
        // during the call only.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                run as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        Ok(checked(sent)? as usize)
    }

    /// Frees the first slots.
    pub(super) fn advance(&mut self, frames: usize) {
        self.head = (self.head + frames) % SLOTS;
        self.count -= frames;
        if self.count == 0 {
            // Reuses the same slots, which are in cache, in one run.
            self.head = 0;
        }
    }
}
