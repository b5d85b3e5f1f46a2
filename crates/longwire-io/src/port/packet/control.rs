//! What goes to the kernel beside a frame: that it is to be stamped as it
//! leaves, and when it is to leave.

use longwire_engine::Nanos;

use super::launch::TXTIME;
use super::sent::TIMESTAMPING;

/// One piece of it: a header, and a number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    header: libc::cmsghdr,
    data: u64,
}

/// The control message of one frame.
#[derive(Clone, Copy)]
pub(super) struct Control {
    parts: [Part; 2],
    used: usize,
}

impl Control {
    /// Stamp the frame, by the kinds of stamps that the flags name
    /// (`SOF_TIMESTAMPING_TX_…`); hold it until `launch`, on the clock that
    /// the socket was told.
    pub(super) fn new(stamp: Option<u32>, launch: Option<Nanos>) -> Control {
        let mut control = Control {
            // SAFETY: C structures of integers, for which zeros are valid.
            parts: unsafe { std::mem::zeroed() },
            used: 0,
        };
        if let Some(flags) = stamp {
            let [a, b, c, d] = flags.to_ne_bytes();
            let data = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
            control.add(TIMESTAMPING, data, size_of::<u32>());
        }
        if let Some(at) = launch {
            control.add(TXTIME, at.as_nanos(), size_of::<u64>());
        }
        control
    }

    fn add(&mut self, kind: libc::c_int, data: u64, len: usize) {
        let part = &mut self.parts[self.used];
        part.header.cmsg_len = (std::mem::offset_of!(Part, data) + len) as _;
        part.header.cmsg_level = libc::SOL_SOCKET;
        part.header.cmsg_type = kind;
        part.data = data;
        self.used += 1;
    }

    /// Makes it go with a message, which it must outlive at its place.
    pub(super) fn go_with(&mut self, message: &mut libc::msghdr) {
        message.msg_control = match self.used {
            0 => std::ptr::null_mut(),
            _ => self.parts.as_mut_ptr().cast(),
        };
        message.msg_controllen = (self.used * size_of::<Part>()) as _;
    }
}
