//! A packet socket's receive ring (TPACKET_V2), shared with the kernel.
//!
//! Version 3 would pack frames more tightly, but hands them over block by block, late by up to the
//! block's timeout of at least a millisecond (decision 0006).

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::socket::set_option;
use super::super::vnet;
use crate::mapping::Mapping;

/// Size of the contiguous pieces in which the kernel allocates the ring.
const BLOCK: usize = 64 * 1024;
/// Bytes of a slot before the frame: the slot header, a `sockaddr_ll`, padding, and the virtio-net
/// header, with the frame's network header aligned. These take 76 bytes; the remaining bytes are
/// for longer link headers.
const SLOT_OVERHEAD: usize = 96;
/// Slot alignment: slots begin on cache lines.
const SLOT_ALIGN: usize = 64;
/// Maximum length of a frame in a slot. Longer frames use the socket's queue, so that slots stay
/// small.
const SLOT_FRAME_MAX: usize = 9 * 1024 + 64;

/// Division of the ring's memory into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Slot size in bytes.
    slot: usize,
    slots_in_block: usize,
    blocks: usize,
}

impl Layout {
    /// Creates a layout for frames of `frame_max` bytes, in at most `bytes` of memory.
    pub(super) fn new(frame_max: usize, bytes: usize) -> Layout {
        let frame = frame_max.clamp(256, SLOT_FRAME_MAX);
        let slot = (frame + SLOT_OVERHEAD).next_multiple_of(SLOT_ALIGN);
        Layout {
            slot,
            slots_in_block: BLOCK / slot,
            blocks: (bytes / BLOCK).clamp(1, 16 * 1024),
        }
    }

    pub(super) fn slots(self) -> usize {
        self.slots_in_block * self.blocks
    }

    pub(super) fn bytes(self) -> usize {
        self.blocks * BLOCK
    }

    fn offset(self, slot: usize) -> usize {
        slot / self.slots_in_block * BLOCK + slot % self.slots_in_block * self.slot
    }

    fn request(self) -> libc::tpacket_req {
        // All values are far below 2^32: 16 Ki blocks of 64 KiB are 1 GiB.
        libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: self.blocks as u32,
            tp_frame_size: self.slot as u32,
            tp_frame_nr: self.slots() as u32,
        }
    }
}

/// The mapped ring. Slots are read in order; each slot's status word says whether it belongs to the
/// kernel or to this process.
pub(super) struct ReceiveRing {
    memory: Mapping,
    layout: Layout,
    next: usize,
}

/// The kernel's description of the frame in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotHeader {
    pub(super) status: u32,
    /// Frame length in bytes.
    pub(super) len: usize,
    /// Captured length in bytes (`tp_snaplen`, limited to the slot).
    pub(super) held: usize,
    /// The kernel's receive stamp: CLOCK_REALTIME in nanoseconds.
    pub(super) wall: u64,
    vlan_tci: u16,
    vlan_tpid: u16,
    frame_at: usize,
}

impl SlotHeader {
    /// Returns the VLAN tag that the kernel removed from the frame, in its original
    /// form.
    pub(super) fn vlan_tag(&self) -> Option<[u8; 4]> {
        if self.status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let tpid = if self.status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
            self.vlan_tpid
        } else {
            0x8100
        };
        let [a, b] = tpid.to_be_bytes();
        let [c, d] = self.vlan_tci.to_be_bytes();
        Some([a, b, c, d])
    }
}

impl ReceiveRing {
    /// Makes the kernel allocate a packet socket's ring, and maps it.
    pub(super) fn new(socket: BorrowedFd<'_>, layout: Layout) -> io::Result<ReceiveRing> {
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_RX_RING,
            &layout.request(),
        )?;
        Ok(ReceiveRing {
            memory: Mapping::shared(socket, 0, layout.bytes(), 0)?,
            layout,
            next: 0,
        })
    }

    /// Returns the start of slot `self.next`.
    fn slot(&self) -> NonNull<u8> {
        // SAFETY: `next` is below the number of slots, so the offset is within the mapping.
        unsafe { self.memory.start().add(self.layout.offset(self.next)) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: every slot begins with its status word, which is aligned (slots begin on cache
        // lines), lives as long as the mapping, and is only accessed atomically while the kernel
        // may write it.
        unsafe { AtomicU32::from_ptr(self.slot().as_ptr().cast()) }
    }

    /// Returns the next slot's header if the slot belongs to this process.
    #[inline]
    pub(super) fn peek(&self) -> Option<SlotHeader> {
        // Acquire: the frame was written before the status.
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot belongs to this process and begins with this header.
        let header = unsafe { self.slot().cast::<libc::tpacket2_hdr>().read() };
        let frame_at = usize::from(header.tp_mac).min(self.layout.slot);
        let room = self.layout.slot - frame_at;
        Some(SlotHeader {
            status,
            len: header.tp_len as usize,
            held: (header.tp_snaplen as usize).min(room),
            wall: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            vlan_tci: header.tp_vlan_tci,
            vlan_tpid: header.tp_vlan_tpid,
            frame_at,
        })
    }

    /// Returns the peeked slot's virtio-net header and frame as one piece, including the bytes
    /// between them.
    #[inline]
    pub(super) fn contents(&mut self, header: &SlotHeader) -> &mut [u8] {
        let start = header.frame_at.saturating_sub(vnet::LEN);
        // SAFETY: the slot belongs to this process until it is released, which needs `self`; `peek`
        // limited `frame_at + held` to the slot.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.slot().add(start).as_ptr(),
                header.frame_at - start + header.held,
            )
        }
    }

    /// Returns the slot to the kernel and advances to the next.
    #[inline]
    pub(super) fn release(&mut self) {
        // Release: all reads happen before the kernel writes again.
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next += 1;
        if self.next == self.layout.slots() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_stays_inside_its_memory_and_4_mib_hold_thousands_of_frames() {
        for frame_max in [0, 64, 1518, 9018, 65_553] {
            for bytes in [0, 1 << 16, 4 << 20] {
                let layout = Layout::new(frame_max, bytes);
                assert!(layout.slots() > 0);
                assert!(layout.bytes() <= bytes.max(BLOCK));
                let last = layout.offset(layout.slots() - 1);
                assert!(last + layout.slot <= layout.bytes());
                assert_eq!(last % SLOT_ALIGN, 0);
            }
        }
        let layout = Layout::new(1518, 4 << 20);
        assert!(layout.slots() >= 2_400, "{}", layout.slots());
    }
}
