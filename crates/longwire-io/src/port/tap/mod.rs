//! The port `tap:NAME`: a network interface whose other end is the emulator. Frames sent to the
//! interface arrive at the port; frames sent to the port arrive at the kernel.
//!
//! Each frame takes one read or write, with a virtio-net header for offloads, so that super-packets
//! of 64 KiB pass whole.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use longwire_engine::Nanos;

use super::carrier::{Carrier, SwitchCarrier};
use super::options::OpenOptions;
use super::{
    OpenPort, PortError, PortLosses, PushResult, ReceiveResult, Received, RxFrame, RxPort, TxFrame,
    TxPort, vnet,
};
use device::{Device, Drops, failed};
use vnet::Decoded;

mod device;

/// Maximum frame length in bytes: a super-packet of 64 KiB with its headers, and a reserve.
const FRAME_MAX: usize = 68 * 1024;
/// Minimum frame length: an Ethernet header. The kernel refuses shorter frames.
const FRAME_MIN: usize = 14;
/// Number of pushes before a flush. Each frame leaves immediately, so this only sets how often the
/// caller reads the clock.
const ROOM: usize = 64;

/// Opens the TAP device `name` in the calling thread's network namespace. A missing device is
/// created, and removed when both halves are dropped.
///
/// # Errors
/// TAP devices are not permitted, or the name belongs to another kind of device.
pub fn open(name: &str, options: &OpenOptions) -> Result<OpenPort<TapRx, TapTx>, PortError> {
    let mut notes = Vec::new();
    let device = Arc::new(Device::open(name, options, &mut notes)?);
    let opened = device.drops();
    Ok(OpenPort {
        rx: TapRx {
            device: Arc::clone(&device),
            buffer: vec![0; vnet::LEN + FRAME_MAX].into_boxed_slice(),
            opened,
            last: Nanos::ZERO,
            own: PortLosses::default(),
        },
        tx: TapTx {
            device,
            opened,
            offloads: options.offloads,
            sent: 0,
            failed_writes: 0,
            lost_while_down: 0,
            gone: None,
            carrier: None,
        },
        notes,
    })
}

/// The receiving half.
pub struct TapRx {
    device: Arc<Device>,
    buffer: Box<[u8]>,
    /// The device's losses when it was opened.
    opened: Drops,
    last: Nanos,
    /// Losses in this half.
    own: PortLosses,
}

impl TapRx {
    /// Reads a frame into the buffer; `None` if none is waiting.
    fn read(&mut self) -> Result<Option<usize>, PortError> {
        loop {
            let error = match self.device.file().read(&mut self.buffer) {
                Ok(len) => return Ok(Some(len)),
                Err(error) => error,
            };
            match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted => {}
                _ => return Err(stopped(&self.device, "reading", error)),
            }
        }
    }
}

impl RxPort for TapRx {
    fn receive(&mut self, now: Nanos, max: usize, take: &mut impl FnMut(RxFrame<'_>)) -> Received {
        let mut frames = 0;
        // The device does not report arrival times.
        self.last = self.last.max(now);
        while frames < max {
            let len = match self.read() {
                Ok(Some(len)) => len,
                Ok(None) => break,
                // The next call returns the error again.
                Err(_) if frames > 0 => break,
                Err(error) => return Err(error),
            };
            // A frame that fills the buffer was silently truncated.
            if len == self.buffer.len() {
                self.own.too_long += 1;
                continue;
            }
            let (header, bytes) = self.buffer[..len].split_at_mut(vnet::LEN.min(len));
            // The kernel passes tunnelled super-packets only on request.
            let Some(Decoded::Plain(offload)) = vnet::decode(header, bytes) else {
                self.own.unusable += 1;
                continue;
            };
            frames += 1;
            take(RxFrame::with_offload(bytes, self.last, offload));
        }
        Ok(ReceiveResult { frames, end: false })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.file().as_fd())
    }

    fn losses(&mut self) -> PortLosses {
        let lost = self.device.drops().to_reader;
        PortLosses {
            ring_full: lost.saturating_sub(self.opened.to_reader),
            ..self.own
        }
    }

    fn frame_max(&self) -> usize {
        FRAME_MAX
    }
}

/// The sending half.
pub struct TapTx {
    device: Arc<Device>,
    opened: Drops,
    offloads: bool,
    /// Frames sent since the last flush.
    sent: usize,
    /// Failed writes that the device also counted as drops.
    failed_writes: u64,
    /// Wire frames lost because the device was down.
    lost_while_down: u64,
    /// The error that ended sending.
    gone: Option<io::Error>,
    pub(super) carrier: Option<Carrier>,
}

impl TapTx {
    /// Returns the switch for the device's carrier.
    pub(super) fn carrier_switch(&self) -> io::Result<SwitchCarrier> {
        let device = Arc::clone(&self.device);
        Ok(Box::new(move |up| device.set_carrier(up)))
    }
}

impl TxPort for TapTx {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if !(FRAME_MIN..=FRAME_MAX).contains(&frame.bytes.len()) || self.gone.is_some() {
            return PushResult::Refused;
        }
        if let Some(carrier) = &mut self.carrier
            && let Some(stopped) = carrier.stops(&frame)
        {
            return stopped;
        }
        let header = vnet::encode(frame.offload);
        let parts = [IoSlice::new(&header), IoSlice::new(frame.bytes)];
        loop {
            let error = match self.device.file().write_vectored(&parts) {
                Ok(_) => {
                    self.sent += 1;
                    return PushResult::Taken;
                }
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => return PushResult::Full,
                Some(libc::ENOBUFS | libc::ENOMEM) => {
                    self.failed_writes += 1;
                    return PushResult::Full;
                }
                // The device is down.
                Some(libc::EIO) => {
                    self.failed_writes += 1;
                    self.lost_while_down += frame.wire_frames();
                    self.sent += 1;
                    return PushResult::Taken;
                }
                Some(libc::EBADFD | libc::ENODEV | libc::ENXIO) => {
                    self.gone = Some(error);
                    return PushResult::Refused;
                }
                // The kernel does not accept the frame.
                _ => return PushResult::Refused,
            }
        }
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        match self.gone.take() {
            Some(error) => Err(stopped(&self.device, "writing", error)),
            None => Ok(std::mem::take(&mut self.sent)),
        }
    }

    fn free_slots(&self) -> usize {
        ROOM
    }

    fn unsent(&self) -> usize {
        0
    }

    fn takes_offload(&self) -> bool {
        self.offloads
    }

    fn losses(&mut self) -> PortLosses {
        let lost = self.device.drops().from_writer;
        PortLosses {
            send_failed: lost.saturating_sub(self.opened.from_writer + self.failed_writes),
            no_carrier: self.lost_while_down + self.carrier.as_ref().map_or(0, Carrier::lost),
            ..PortLosses::default()
        }
    }

    fn set_carrier(&mut self, up: bool) {
        if let Some(carrier) = &self.carrier {
            carrier.set(up);
        }
    }
}

/// Returns the error that ended reading or writing. A removed device has a separate error.
fn stopped(device: &Device, action: &'static str, source: io::Error) -> PortError {
    match source.raw_os_error() {
        // EFAULT: a reader that was open when the device was removed.
        Some(libc::EBADFD | libc::ENODEV | libc::ENXIO | libc::EFAULT) => PortError::Gone {
            port: format!("tap:{}", device.name()),
            source,
        },
        _ => failed(device.name(), action, source),
    }
}
