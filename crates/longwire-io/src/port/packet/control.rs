//! The control message of a frame: request of a send stamp, and launch time.

use longwire_engine::Nanos;

use super::launch::TXTIME;
use super::sent::TIMESTAMPING;

/// One part of it: a header, and a number.
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
    /// Creates a message that requests stamps of the kinds that the flags name
    /// (`SOF_TIMESTAMPING_TX_…`), and holds the frame until `launch`, on the socket's
    /// clock for launch times.
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

    /// Attaches it to a message; it must not move while the message is used.
    pub(super) fn go_with(&mut self, message: &mut libc::msghdr) {
        message.msg_control = match self.used {
            0 => std::ptr::null_mut(),
            _ => self.parts.as_mut_ptr().cast(),
        };
        message.msg_controllen = (self.used * size_of::<Part>()) as _;
    }
}
