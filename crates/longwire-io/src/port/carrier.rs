//! The carrier of the interface at the other end of a port.
//!
//! A TAP device takes its carrier from its reader. An end of a veth pair has one while
//! the other end is up, so the end here is taken down; its sockets stay open and
//! continue when it is up again.
//!
//! Both take the kernel's lock of network settings, and a device that goes down waits
//! for all cores. A separate thread does that, so that frames of other ports do not
//! wait for it. Until the interface has its carrier back, the port is full; without a
//! carrier it loses frames.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, JoinHandle};

use super::socket::{ask_interface, says_gone};
use super::{PushResult, TxFrame};
use crate::rights::{self, Capability};

/// Whether the interface should have a carrier.
const REQUESTED: u8 = 1;
/// It has one.
const PRESENT: u8 = 2;

/// Gives the interface its carrier, or takes it.
pub(super) type SwitchCarrier = Box<dyn Fn(bool) -> io::Result<()> + Send>;

/// Controls the carrier of an interface.
#[derive(Debug)]
pub(crate) struct Carrier {
    shared: Arc<CarrierState>,
    thread: Option<JoinHandle<()>>,
    /// Wire frames that were pushed while there was no carrier.
    lost: u64,
}

/// State that the halves of a port and the thread share.
#[derive(Debug)]
pub(crate) struct CarrierState {
    /// [`REQUESTED`] and [`PRESENT`].
    flags: AtomicU8,
    /// The carrier was taken at least once.
    fell: AtomicBool,
    ended: AtomicBool,
}

impl Carrier {
    /// Starts the thread that switches. The first switch is made here, so that an error
    /// is known at the start.
    pub(super) fn start(switch: SwitchCarrier) -> io::Result<Carrier> {
        switch(true)?;
        let shared = Arc::new(CarrierState {
            flags: AtomicU8::new(REQUESTED | PRESENT),
            fell: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        let thread = thread::Builder::new().name("longwire-carrier".into());
        let thread = thread.spawn(move || {
            // Failing to drop rights does not affect the run.
            let _ = rights::give_up(&[Capability::NetAdmin]);
            state.follow(&switch);
        })?;
        Ok(Carrier {
            shared,
            thread: Some(thread),
            lost: 0,
        })
    }

    /// Gives the interface its carrier, or takes it, soon.
    pub(super) fn set(&self, up: bool) {
        let flags = &self.shared.flags;
        if up {
            flags.fetch_or(REQUESTED, Ordering::SeqCst);
        } else {
            flags.fetch_and(!REQUESTED, Ordering::SeqCst);
        }
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Returns the result of a push while the interface cannot receive; `None` if it can.
    #[inline]
    pub(super) fn stops(&mut self, frame: &TxFrame<'_>) -> Option<PushResult> {
        match self.shared.flags.load(Ordering::Acquire) {
            flags if flags == REQUESTED | PRESENT => None,
            REQUESTED => Some(PushResult::Full),
            _ => {
                let segments = frame.offload.segments;
                let frames = segments.map_or(1, |one| one.wire_frames(frame.bytes.len()).len());
                self.lost += frames as u64;
                Some(PushResult::Taken)
            }
        }
    }

    /// Returns the state, for the receiving half.
    pub(super) fn state(&self) -> Arc<CarrierState> {
        Arc::clone(&self.shared)
    }

    /// Returns the number of wire frames that were lost for want of a carrier.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed. The thread holds the device until it ends.
            let _ = thread.join();
        }
    }
}

impl CarrierState {
    /// Switches as requested, until the port is closed.
    fn follow(&self, switch: &SwitchCarrier) {
        while !self.ended.load(Ordering::SeqCst) {
            match self.flags.load(Ordering::SeqCst) {
                // Unless it is requested again before: then no frame may be on its way.
                PRESENT => {
                    self.fell.store(true, Ordering::SeqCst);
                    let taken =
                        self.flags
                            .compare_exchange(PRESENT, 0, Ordering::SeqCst, Ordering::SeqCst);
                    if taken.is_ok() {
                        // It fails for a device that is gone, which the port reports.
                        let _ = switch(false);
                    }
                }
                REQUESTED => {
                    let _ = switch(true);
                    self.flags.fetch_or(PRESENT, Ordering::SeqCst);
                }
                _ => thread::park(),
            }
        }
    }

    /// Returns the error of a socket, unless it only says that the interface was taken
    /// down here; and that of an interface which was removed meanwhile, which the kernel
    /// does not report to its sockets then.
    pub(super) fn judge(
        &self,
        error: Option<io::Error>,
        socket: BorrowedFd<'_>,
        interface: &str,
    ) -> Option<io::Error> {
        let is_down = self.flags.load(Ordering::SeqCst) & PRESENT == 0;
        let concerns = error.as_ref().map_or(is_down, says_gone);
        if concerns && self.fell.load(Ordering::SeqCst) {
            ask_interface(socket, interface, libc::SIOCGIFFLAGS).err()
        } else {
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;
    use longwire_engine::Nanos;

    fn frame() -> TxFrame<'static> {
        TxFrame::whole(&[0; 60], Nanos::ZERO)
    }

    #[test]
    fn a_port_is_full_until_its_carrier_is_back() {
        let (done, made) = channel();
        // Each switch waits for its turn.
        let (turn, turns) = sync_channel(0);
        let turns = Mutex::new(turns);
        let first = AtomicBool::new(true);
        let switch = move |up| {
            if !first.swap(false, Ordering::SeqCst) {
                turns.lock().expect("sound").recv().expect("a turn");
                done.send(up).expect("a test");
            }
            Ok(())
        };
        let mut carrier = Carrier::start(Box::new(switch)).expect("a thread");
        let push = |carrier: &mut Carrier| carrier.stops(&frame());
        assert_eq!(push(&mut carrier), None);
        carrier.set(false);
        assert_eq!(push(&mut carrier), Some(PushResult::Taken));
        turn.send(()).expect("a thread");
        assert_eq!(made.recv(), Ok(false));
        assert_eq!(push(&mut carrier), Some(PushResult::Taken));
        assert_eq!(carrier.lost(), 2);
        carrier.set(true);
        // It cannot be back before its turn.
        assert_eq!(push(&mut carrier), Some(PushResult::Full));
        turn.send(()).expect("a thread");
        assert_eq!(made.recv(), Ok(true));
        while push(&mut carrier).is_some() {
            thread::yield_now();
        }
        assert_eq!(carrier.lost(), 2);
    }
}
