//! Sending. Wire-size frames leave through AF_XDP, which takes a quarter to a third less CPU time
//! than a packet socket. Super-packets, and all frames without AF_XDP, leave through packet sockets
//! with virtio-net headers.
//!
//! Both paths call the driver's transmit function before the system call returns, so draining one
//! path before using the other keeps the order. A stamped frame takes its usual path, because both
//! paths can stamp (decision 0015).
//!
//! If a device stamps frames or a discipline holds them, all frames leave through a packet socket,
//! the only path that supports this.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use longwire_engine::Nanos;

use super::super::carrier::Carrier;
use super::super::closing::SlowSocket;
use super::super::sampling::Sampler;
use super::super::settings::Settings;
use super::super::socket::{ask_interface, failure};
use super::super::xdp::Sender;
use super::super::{
    Offload, PortError, PortLosses, PushResult, SendStamp, StampedBy, TxFrame, TxPort, vnet,
};
use super::SUPER_MAX;
use super::batch::{Batch, SLOTS, message};
use super::launch::{Control, SocketTimestamps};
use crate::net::ethtool;
use crate::net::interface::PeerMtu;

/// Maximum length of copied frames in bytes. Longer frames are sent in place, because a separate
/// system call is cheaper than the copy.
const COPY_MAX: usize = 24 * 1024;
/// Bytes of an Ethernet header, and of a VLAN tag.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// A function that returns the losses behind an interface.
pub(crate) type OnwardLosses = Box<dyn Fn() -> PortLosses + Send>;

/// A sending half's sockets.
pub(super) struct Sockets {
    /// Directly to the driver, or to the discipline that holds frames until their time, if there is
    /// one.
    pub(super) direct: SlowSocket,
    /// Through the kernel's queueing layer, which segments super-packets for devices that cannot.
    pub(super) queued: SlowSocket,
    /// AF_XDP, if available.
    pub(super) fast: Option<Sender>,
    pub(super) timestamps: Box<SocketTimestamps>,
}

/// The sending half of `packet:IF`.
pub struct PacketTx {
    sockets: Sockets,
    port: String,
    interface: String,
    /// MTU of the device, or of its veth peer if smaller: the peer drops longer frames as if it
    /// were full.
    mtu: usize,
    peer: Option<PeerMtu>,
    /// Whether the device has dropped the first frame of the batch and no frame has left since.
    stuck: bool,
    /// Queued frames, which leave before those in `sockets.fast`.
    batch: Batch,
    sampler: Sampler,
    /// Frames sent since the last flush.
    sent: usize,
    losses: PortLosses,
    /// Losses behind the interface.
    onward: Option<OnwardLosses>,
    pub(in crate::port) carrier: Option<Carrier>,
    /// Restores the interface's settings when both halves are closed.
    _settings: Arc<Settings>,
}

impl PacketTx {
    pub(super) fn new(
        sockets: Sockets,
        port: &str,
        interface: &super::Interface,
        settings: Arc<Settings>,
    ) -> PacketTx {
        let mtu = interface.mtu as usize;
        // Without a reader, the device's MTU is used.
        let mut peer = PeerMtu::of(interface).unwrap_or(None);
        PacketTx {
            sockets,
            port: port.to_owned(),
            interface: interface.name.clone(),
            mtu: mtu.min(peer.as_mut().and_then(PeerMtu::get).unwrap_or(mtu)),
            peer,
            stuck: false,
            batch: Batch::new(),
            sampler: Sampler::default(),
            sent: 0,
            losses: PortLosses::default(),
            onward: None,
            carrier: None,
            _settings: settings,
        }
    }

    /// Returns the interface's name.
    pub(in crate::port) fn interface(&self) -> &str {
        &self.interface
    }

    /// Counts the losses behind the interface as this port's, for an interface that forwards frames
    /// to another one.
    pub(crate) fn add_losses(&mut self, onward: OnwardLosses) {
        self.onward = Some(onward);
    }

    /// Returns whether the device accepts a frame of this length.
    fn fits(&mut self, frame: &TxFrame<'_>) -> bool {
        let len = frame.bytes.len();
        if !(ETHERNET..=SUPER_MAX).contains(&len) {
            return false;
        }
        if frame.offload.segments.is_some() {
            return true;
        }
        let packet = packet_len(frame.bytes);
        if packet <= self.mtu {
            return true;
        }
        // The MTU may have been raised since the last query.
        self.read_mtu();
        packet <= self.mtu
    }

    fn read_mtu(&mut self) {
        if let Ok(answer) = ask_interface(
            self.sockets.direct.as_fd(),
            &self.interface,
            libc::SIOCGIFMTU,
        ) {
            // SAFETY: the kernel has filled in the MTU.
            let mtu = unsafe { answer.ifr_ifru.ifru_mtu };
            self.mtu = usize::try_from(mtu).unwrap_or(self.mtu);
        }
        let peer = self.peer.as_mut().and_then(PeerMtu::get);
        self.mtu = self.mtu.min(peer.unwrap_or(usize::MAX));
    }

    /// Returns whether the interface has a carrier. Without one, the kernel accepts frames
    /// indefinitely and sends none.
    fn has_carrier(&self) -> io::Result<bool> {
        let answer = ask_interface(
            self.sockets.direct.as_fd(),
            &self.interface,
            libc::SIOCGIFFLAGS,
        )?;
        // SAFETY: the kernel has filled in the flags.
        let flags = unsafe { answer.ifr_ifru.ifru_flags };
        Ok(i32::from(flags) & libc::IFF_RUNNING != 0)
    }

    /// Pushes a frame that must leave through a packet socket.
    fn push_slow(&mut self, frame: &TxFrame<'_>, stamped: Option<Nanos>) -> PushResult {
        let long = frame.bytes.len() > COPY_MAX;
        if self.fast_waits() || (long && self.batch.ring.len() > 0) {
            // The next flush returns the error again and can report it.
            let _ = self.send_all();
        }
        if self.batch.ring.free_slots() == 0 || self.fast_waits() {
            return PushResult::Full;
        }
        let control = self
            .sockets
            .timestamps
            .control(frame.release, stamped.is_some());
        if !long || self.batch.ring.len() > 0 || !self.send_at_once(frame, control, stamped) {
            self.batch.put(frame.bytes, frame.offload, control, stamped);
        }
        PushResult::Taken
    }

    /// Sends all frames queued for AF_XDP and returns whether they left.
    fn flush_fast(&mut self) -> bool {
        // The next flush returns the error again and can report it.
        let _ = self.send_all();
        !self.fast_waits()
    }

    fn fast_waits(&self) -> bool {
        self.sockets
            .fast
            .as_ref()
            .is_some_and(|fast| fast.unsent() > 0)
    }

    /// Sends a frame in place through the packet socket, while no other frame is queued. Returns
    /// whether it left.
    fn send_at_once(
        &mut self,
        frame: &TxFrame<'_>,
        mut control: Control,
        stamped: Option<Nanos>,
    ) -> bool {
        let mut header = vnet::encode(frame.offload);
        let mut parts = [
            libc::iovec {
                iov_base: header.as_mut_ptr().cast(),
                iov_len: header.len(),
            },
            libc::iovec {
                iov_base: frame.bytes.as_ptr().cast_mut().cast(),
                iov_len: frame.bytes.len(),
            },
        ];
        let mut message = message(&mut parts);
        control.go_with(&mut message);
        // SAFETY: the message points to two readable pieces and a control message, which live
        // during the call; sending does not write to them.
        let sent = unsafe {
            libc::sendmsg(
                self.sockets.direct.as_raw_fd(),
                &message,
                libc::MSG_DONTWAIT,
            )
        };
        let left = sent >= 0;
        let dropped = !left && io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
        if stamped.is_some() && (left || dropped) {
            self.sockets.timestamps.numbered(stamped.filter(|_| left));
        }
        self.sent += usize::from(left);
        left
    }

    /// Sends as many queued frames as the kernel accepts.
    fn send_all(&mut self) -> Result<(), PortError> {
        self.send_batch()?;
        while self.batch.ring.len() == 0
            && let Some(fast) = &mut self.sockets.fast
            && fast.unsent() > 0
        {
            let batch = &mut self.batch;
            let sent = fast.send(|dropped| {
                // Retry the frame from the batch, before later frames.
                batch.put(dropped, Offload::NONE, Control::new(None, None), None);
                false
            });
            self.sent += sent.map_err(|error| failure(&self.port, "sending", error))?;
            if self.batch.ring.len() == 0 {
                break;
            }
            self.send_batch()?;
        }
        Ok(())
    }

    /// Sends as many frames of the batch as the kernel accepts.
    fn send_batch(&mut self) -> Result<(), PortError> {
        while self.batch.ring.len() > 0 {
            match self.batch.ring.send(self.sockets.direct.as_fd(), SLOTS) {
                Ok(sent) => {
                    for release in self.batch.stamped(sent) {
                        self.sockets.timestamps.numbered(Some(release));
                    }
                    self.batch.ring.advance(sent);
                    self.sent += sent;
                    self.stuck &= sent == 0;
                }
                Err(error) => {
                    if !self.go_on_after(error)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Recovers from a send error for the first frame of the batch. Returns whether to continue now
    /// rather than at the next flush.
    fn go_on_after(&mut self, error: io::Error) -> Result<bool, PortError> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(true),
            // The socket's buffer is full of frames in transit.
            Some(libc::EAGAIN | libc::ENOMEM) => Ok(false),
            Some(libc::ENOBUFS) => self.go_on_after_drop(),
            // The device will never accept this frame.
            Some(libc::EMSGSIZE | libc::EINVAL) => {
                self.lose(1);
                Ok(true)
            }
            _ => Err(failure(&self.port, "sending", error)),
        }
    }

    /// Recovers from the driver's drop of the first frame: the driver is full, has no carrier, or
    /// cannot segment super-packets.
    fn go_on_after_drop(&mut self) -> Result<bool, PortError> {
        if self.batch.stamped(1).next().is_some() {
            // The frame already has a number, and will get another.
            self.sockets.timestamps.numbered(None);
        }
        let carrier = self
            .has_carrier()
            .map_err(|error| failure(&self.port, "checking the carrier", error))?;
        if !carrier {
            return Ok(self.lose_without_carrier());
        }
        if self.batch.first_has_segments() {
            // The queue of a device without a carrier still accepts frames until the flag changes.
            if !ethtool::has_carrier(self.sockets.direct.as_fd(), &self.interface).unwrap_or(true) {
                return Ok(self.lose_without_carrier());
            }
            match self.batch.ring.send(self.sockets.queued.as_fd(), 1) {
                Ok(_) => {
                    self.batch.ring.advance(1);
                    self.sent += 1;
                    return Ok(true);
                }
                // The frame cannot be segmented, and would block all later frames.
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                    self.lose(1);
                    return Ok(true);
                }
                Err(_) => {}
            }
        }
        if std::mem::replace(&mut self.stuck, true) && !self.batch.first_has_segments() {
            // The MTU may have been lowered since the frame was taken.
            self.read_mtu();
            if packet_len(self.batch.first()) > self.mtu {
                self.lose(1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops the batch, as an unplugged cable does. Always returns `true`: sending continues.
    fn lose_without_carrier(&mut self) -> bool {
        self.losses.no_carrier += self.batch.wire_frames(self.batch.ring.len());
        self.batch.ring.advance(self.batch.ring.len());
        true
    }

    fn lose(&mut self, frames: usize) {
        self.losses.send_failed += self.batch.wire_frames(frames);
        self.batch.ring.advance(frames);
    }
}

/// Returns a frame's length without its Ethernet header and tag, as an MTU counts it.
fn packet_len(frame: &[u8]) -> usize {
    let tagged = frame.get(12..14) == Some(&[0x81, 0x00]);
    frame.len() - ETHERNET - if tagged { TAG } else { 0 }
}

impl TxPort for PacketTx {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        if !self.fits(&frame) {
            return PushResult::Refused;
        }
        if let Some(carrier) = &mut self.carrier
            && let Some(stopped) = carrier.stops(&frame)
        {
            return stopped;
        }
        let stamped = self.sampler.next().then_some(frame.release);
        let pushed = match &mut self.sockets.fast {
            Some(fast)
                if frame.offload.segments.is_none() && frame.bytes.len() <= fast.frame_max() =>
            {
                if fast.put(frame.bytes, frame.offload.checksum, stamped) {
                    PushResult::Taken
                } else {
                    PushResult::Full
                }
            }
            _ => self.push_slow(&frame, stamped),
        };
        if pushed == PushResult::Full {
            self.sampler.revert();
        }
        pushed
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        self.send_all()?;
        Ok(std::mem::take(&mut self.sent))
    }

    fn free_slots(&self) -> usize {
        let fast = self.sockets.fast.as_ref().map_or(SLOTS, Sender::free_slots);
        self.batch.ring.free_slots().min(fast)
    }

    fn unsent(&self) -> usize {
        self.batch.ring.len() + self.sockets.fast.as_ref().map_or(0, Sender::unsent)
    }

    fn sample_every(&mut self, every: u32) -> Option<StampedBy> {
        self.sampler = Sampler::new(every);
        if every == 0 {
            return None;
        }
        let by = self
            .sockets
            .timestamps
            .stamp(self.sockets.direct.as_fd(), &self.interface);
        if by == Some(StampedBy::Device) && self.flush_fast() {
            self.sockets.fast = None;
        }
        by
    }

    fn sampled(&mut self, take: &mut dyn FnMut(SendStamp)) {
        if let Some(fast) = &mut self.sockets.fast {
            fast.sampled(take);
        }
        self.sockets.timestamps.drain(take);
    }

    fn takes_offload(&self) -> bool {
        true
    }

    fn launch_lead(&self) -> Option<Nanos> {
        self.sockets.timestamps.lead()
    }

    fn losses(&mut self) -> PortLosses {
        let onward = self.onward.as_ref().map(|onward| onward());
        let onward = onward.unwrap_or_default();
        PortLosses {
            send_failed: self.losses.send_failed
                + self.sockets.timestamps.missed()
                + onward.send_failed,
            no_carrier: self.losses.no_carrier
                + onward.no_carrier
                + self.carrier.as_ref().map_or(0, Carrier::lost),
            ..self.losses
        }
    }

    fn set_carrier(&mut self, up: bool) {
        if let Some(carrier) = &self.carrier {
            carrier.set(up);
        }
    }
}
