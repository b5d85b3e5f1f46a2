//! Reception: the kernel's chunks arrive through the receive rings and return through the fill
//! rings.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use longwire_engine::Nanos;
use nix::errno::Errno;

use super::super::offload::finish_if_partial;
use super::super::socket::{AliveChecks, failure, get_option, pending_error};
use super::super::{PortError, PortLosses, ReceiveResult, Received, RxFrame, RxPort};
use super::AttachedProgram;
use super::program::STAMP_LEN;
use super::socket::{Queue, Umem};

/// Maximum number of frames before chunks return to the kernel.
const SETTLE_EVERY: usize = 64;
/// Maximum age of a valid stamp, and its maximum lead over the current time, in nanoseconds. Beyond
/// these limits, the bytes before the frame are not a stamp: another program wrote them.
const OLDEST: u64 = 10_000_000_000;
const NEWEST: u64 = 1_000_000;

impl Queue {
    /// Returns an address's chunk to the kernel.
    #[inline]
    fn give_back(&mut self, umem: &Umem, address: u64) {
        if self.fill.free_slots() == 0 {
            self.fill.look();
        }
        // The ring has twice as many slots as there are chunks, because the kernel delivers frames
        // shortly before it publishes that it has consumed their chunks.
        let put = self.fill.put(umem.chunk_of(address));
        debug_assert!(put, "more chunks returned than exist");
    }

    /// Publishes consumed and returned chunks to the kernel.
    fn settle(&mut self) {
        self.receive.release();
        self.fill.submit();
        if self.fill.needs_wakeup() {
            // SAFETY: a call without a buffer, which only wakes the driver.
            unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    std::ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                )
            };
        }
    }
}

/// The receiving half of `xdp:IF`.
pub struct XdpRx {
    queues: Vec<Queue>,
    umem: Arc<Umem>,
    /// Descriptor that is readable when any queue's socket is; `None` with a single queue.
    any: Option<OwnedFd>,
    attachment: Arc<AttachedProgram>,
    frame_max: usize,
    last: Nanos,
    unusable: u64,
    checks: AliveChecks,
}

impl XdpRx {
    pub(super) fn new(
        queues: Vec<Queue>,
        umem: Arc<Umem>,
        attachment: Arc<AttachedProgram>,
        frame_max: usize,
    ) -> io::Result<XdpRx> {
        let any = match queues.len() {
            1 => None,
            _ => Some(watch(&queues)?),
        };
        Ok(XdpRx {
            queues,
            umem,
            any,
            attachment,
            frame_max,
            last: Nanos::ZERO,
            unusable: 0,
            checks: AliveChecks::default(),
        })
    }

    /// Returns the bytes of the stamp before the frame.
    #[inline]
    fn stamp(&mut self, desc: &libc::xdp_desc) -> Option<&mut [u8]> {
        let at = desc.addr.checked_sub(STAMP_LEN as u64)?;
        // SAFETY: a frame in the receive ring is in a chunk that belongs to this process, and
        // pieces of the chunk are used one at a time.
        unsafe { self.umem.piece(at, STAMP_LEN) }
    }

    /// Returns a frame's arrival; `now` if the device left no space for a stamp.
    #[inline]
    fn arrival(&mut self, desc: &libc::xdp_desc, now: Nanos) -> Nanos {
        let stamp = self
            .stamp(desc)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let stamp = crate::clock::from_kernel(stamp).as_nanos();
        let clock = now.as_nanos().max(self.checks.last);
        if stamp > clock.saturating_add(NEWEST) || stamp < clock.saturating_sub(OLDEST) {
            return now;
        }
        Nanos::from_nanos(stamp)
    }

    /// Returns the queue whose next frame arrived first, together with that frame.
    #[inline]
    fn earliest(&mut self, now: Nanos) -> Option<(usize, libc::xdp_desc, Nanos)> {
        let mut best: Option<(usize, libc::xdp_desc, Nanos)> = None;
        for index in 0..self.queues.len() {
            let Some(desc) = self.queues[index].receive.peek() else {
                continue;
            };
            let arrival = self.arrival(&desc, now);
            if best.is_none_or(|(_, _, earliest)| arrival < earliest) {
                best = Some((index, desc, arrival));
            }
        }
        best
    }

    /// Delivers a frame. Returns `false` if its descriptor is invalid.
    #[inline]
    fn hand_in(
        &mut self,
        desc: &libc::xdp_desc,
        arrival: Nanos,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> bool {
        // SAFETY: a frame in the receive ring is in a chunk that belongs to this process, and
        // pieces of the chunk are used one at a time.
        let Some(bytes) = (unsafe { self.umem.piece(desc.addr, desc.len as usize) }) else {
            self.unusable += 1;
            return false;
        };
        // A virtual device passes on its sender's unfinished work without reporting it.
        finish_if_partial(bytes);
        self.last = self.last.max(arrival);
        take(RxFrame::whole(bytes, self.last));
        // Clear the stamp, because the next frame in this chunk may arrive without one.
        if let Some(stamp) = self.stamp(desc) {
            stamp.fill(0);
        }
        true
    }

    /// Checks that the interface still exists, if a check is due. Called when the rings are empty.
    #[inline]
    fn check_alive(&mut self, now: Nanos) -> Result<(), PortError> {
        if !self.checks.are_due(now) {
            return Ok(());
        }
        for queue in &self.queues {
            match pending_error(queue.socket.as_fd()) {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => {
                    return Err(failure(&self.attachment.port, "receiving", error));
                }
            }
        }
        Ok(())
    }
}

impl RxPort for XdpRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        let mut frames = 0;
        let mut unsettled = 0;
        while frames < max {
            let Some((index, desc, arrival)) = self.earliest(now) else {
                break;
            };
            // For the caller, a frame stamped after its clock reading has not arrived yet. The
            // first frame is delivered anyway, so that every call makes progress.
            if arrival > now && frames > 0 {
                break;
            }
            frames += usize::from(self.hand_in(&desc, arrival.min(now), take));
            let queue = &mut self.queues[index];
            queue.receive.advance();
            queue.give_back(&self.umem, desc.addr);
            unsettled += 1;
            if unsettled == SETTLE_EVERY {
                self.queues.iter_mut().for_each(Queue::settle);
                unsettled = 0;
            }
        }
        if unsettled > 0 {
            self.queues.iter_mut().for_each(Queue::settle);
        } else if frames == 0 {
            self.check_alive(now)?;
        }
        Ok(ReceiveResult { frames, end: false })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        let only = self.queues.first().map(|queue| queue.socket.as_fd());
        self.any.as_ref().map(AsFd::as_fd).or(only)
    }

    fn losses(&mut self) -> PortLosses {
        let mut losses = PortLosses {
            unusable: self.unusable,
            ..PortLosses::default()
        };
        for queue in &self.queues {
            let socket = queue.socket.as_fd();
            let counted = get_option(socket, libc::SOL_XDP, libc::XDP_STATISTICS);
            if let Ok(libc::xdp_statistics {
                rx_ring_full,
                rx_dropped,
                ..
            }) = counted
            {
                // If the device copies frames, a frame that finds no free chunk and a frame that is
                // too long for one both count as dropped.
                losses.ring_full += rx_ring_full + rx_dropped;
            }
        }
        losses
    }

    fn frame_max(&self) -> usize {
        self.frame_max
    }
}

/// Creates a descriptor that is readable when any of the queues is.
fn watch(queues: &[Queue]) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let created = Errno::result(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    let any = unsafe { OwnedFd::from_raw_fd(created) };
    for queue in queues {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: `event` is valid during the call.
        Errno::result(unsafe {
            libc::epoll_ctl(
                any.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                queue.socket.as_raw_fd(),
                &raw mut event,
            )
        })?;
    }
    Ok(any)
}
