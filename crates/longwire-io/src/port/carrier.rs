//! The carrier of the interface at a port's other end.
//!
//! The process that reads a TAP device sets its carrier. One end of a veth pair has a carrier while
//! the other end is up, so the port takes its own end down; the sockets stay open and resume later.
//!
//! Both operations take the kernel's network settings lock, and taking a device down waits for all
//! cores. A separate thread performs them, so that frames of other ports do not wait. The port
//! reports full until the interface's carrier is back. Frames sent without a carrier are lost.

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
/// Whether the interface has a carrier.
const PRESENT: u8 = 2;

/// A function that switches the interface's carrier on or off.
pub(super) type SwitchCarrier = Box<dyn FnMut(bool) -> io::Result<()> + Send>;

/// Controls an interface's carrier.
#[derive(Debug)]
pub(crate) struct Carrier {
    shared: Arc<CarrierState>,
    thread: Option<JoinHandle<()>>,
    /// Wire frames pushed without a carrier.
    lost: u64,
}

/// State shared by the port's halves and the thread.
#[derive(Debug)]
pub(crate) struct CarrierState {
    /// [`REQUESTED`] and [`PRESENT`].
    flags: AtomicU8,
    /// Whether the carrier was ever switched off.
    fell: AtomicBool,
    ended: AtomicBool,
}

impl Carrier {
    /// Starts the switching thread. The first switch is synchronous, so that its errors are
    /// returned.
    pub(super) fn start(mut switch: SwitchCarrier) -> io::Result<Carrier> {
        switch(true)?;
        let shared = Arc::new(CarrierState {
            flags: AtomicU8::new(REQUESTED | PRESENT),
            fell: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        let thread = thread::Builder::new().name("longwire-carrier".into());
        let thread = thread.spawn(move || {
            // A failure to drop rights does not affect the run.
            let _ = rights::give_up(&[Capability::NetAdmin]);
            state.follow(&mut switch);
        })?;
        Ok(Carrier {
            shared,
            thread: Some(thread),
            lost: 0,
        })
    }

    /// Requests a carrier state.
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

    /// Returns the result of a push while the interface cannot receive; `None` while it can.
    #[inline]
    pub(super) fn stops(&mut self, frame: &TxFrame<'_>) -> Option<PushResult> {
        match self.shared.flags.load(Ordering::Acquire) {
            flags if flags == REQUESTED | PRESENT => None,
            REQUESTED => Some(PushResult::Full),
            _ => {
                self.lost += frame.wire_frames();
                Some(PushResult::Taken)
            }
        }
    }

    /// Returns the shared state, for the receiving half.
    pub(super) fn state(&self) -> Arc<CarrierState> {
        Arc::clone(&self.shared)
    }

    /// Returns the number of wire frames lost without a carrier.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Wait, because the thread keeps the device open until it ends. A panic has already
            // been printed.
            let _ = thread.join();
        }
    }
}

impl CarrierState {
    /// Carries out requests until the port is closed.
    fn follow(&self, switch: &mut SwitchCarrier) {
        while !self.ended.load(Ordering::SeqCst) {
            match self.flags.load(Ordering::SeqCst) {
                // Clear `PRESENT` unless the carrier has been requested again.
                PRESENT => {
                    self.fell.store(true, Ordering::SeqCst);
                    let taken =
                        self.flags
                            .compare_exchange(PRESENT, 0, Ordering::SeqCst, Ordering::SeqCst);
                    if taken.is_ok() {
                        // Fails for a removed device, which the port reports.
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

    /// Returns a socket's error, unless this type caused it by taking the interface down. Also
    /// returns an error if the interface was removed while it was down, which the kernel does not
    /// report to its sockets.
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
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{channel, sync_channel};

    use longwire_engine::Nanos;

    fn frame() -> TxFrame<'static> {
        TxFrame::whole(&[0; 60], Nanos::ZERO)
    }

    #[test]
    fn a_port_is_full_until_its_carrier_is_back() {
        let (done, made) = channel();
        // Each switch waits for permission.
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
        // The carrier cannot return before permission.
        assert_eq!(push(&mut carrier), Some(PushResult::Full));
        turn.send(()).expect("a thread");
        assert_eq!(made.recv(), Ok(true));
        while push(&mut carrier).is_some() {
            thread::yield_now();
        }
        assert_eq!(carrier.lost(), 2);
    }
}
