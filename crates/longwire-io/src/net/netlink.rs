//! A netlink socket for synchronous requests.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::netlink_message::{HEADER_LEN, Message, Reply, attribute, number_at, replies, text_of};
use crate::port::socket::set_option;

/// `NLM_F_REQUEST`, set on every message to the kernel.
pub const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
/// `NLM_F_ACK`: the kernel acknowledges the message.
pub const ACK: u16 = libc::NLM_F_ACK as u16;
const DUMP: u16 = libc::NLM_F_DUMP as u16;

const KIND_ERROR: u16 = libc::NLMSG_ERROR as u16;
const KIND_DONE: u16 = libc::NLMSG_DONE as u16;
/// `NLM_F_CAPPED`: the error message does not repeat the request's payload.
const CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: attributes follow the error code.
const ACK_ATTRIBUTES: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`: the kernel's error message.
const ERROR_TEXT: u16 = 1;

/// A netlink socket in the opening thread's network namespace, whichever thread uses it.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// The kernel's refusal of a request.
#[derive(Debug, thiserror::Error)]
#[error("{source}{}", detail.as_deref().map(|d| format!(" (kernel: {d})")).unwrap_or_default())]
pub struct NetlinkError {
    /// The error code.
    pub source: io::Error,
    /// The kernel's explanation, if any.
    pub detail: Option<String>,
}

impl From<nix::Error> for NetlinkError {
    fn from(error: nix::Error) -> NetlinkError {
        NetlinkError {
            source: error.into(),
            detail: None,
        }
    }
}

impl Netlink {
    /// Opens an rtnetlink socket.
    ///
    /// # Errors
    /// EMFILE or ENFILE if no descriptor is free.
    pub fn route() -> Result<Netlink, NetlinkError> {
        Netlink::open(SockProtocol::NetlinkRoute)
    }

    /// Opens an nf_tables socket.
    ///
    /// # Errors
    /// EPROTONOSUPPORT if the kernel has no nf_tables; EMFILE or ENFILE if no descriptor is free.
    pub fn netfilter() -> Result<Netlink, NetlinkError> {
        Netlink::open(SockProtocol::NetlinkNetFilter)
    }

    fn open(protocol: SockProtocol) -> Result<Netlink, NetlinkError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        // Best effort: without it, errors have no text.
        let on: libc::c_int = 1;
        let _ = set_option(
            socket.as_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_EXT_ACK,
            &on,
        );
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request and waits for the acknowledgement.
    ///
    /// # Errors
    /// The kernel's refusal, with its explanation, or a socket error.
    pub fn request(&mut self, mut message: Message) -> Result<(), NetlinkError> {
        message.add_flags(ACK);
        self.request_all(vec![message])
    }

    /// Sends several messages in one datagram, as nf_tables requires for a batch, and waits for the
    /// acknowledgements of messages flagged [`ACK`].
    ///
    /// # Errors
    /// The kernel's first refusal, with its explanation, or a socket error.
    pub fn request_all(&mut self, messages: Vec<Message>) -> Result<(), NetlinkError> {
        let mut bytes = Vec::new();
        let mut waiting = Vec::new();
        for mut message in messages {
            self.sequence += 1;
            if message.flags() & ACK != 0 {
                waiting.push(self.sequence);
            }
            bytes.extend_from_slice(message.finish(self.sequence));
        }
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        let mut buffer = vec![0; 1 << 15];
        while !waiting.is_empty() {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            for reply in replies(&buffer[..length]) {
                if reply.kind == KIND_ERROR {
                    outcome(reply.flags, reply.payload)?;
                    waiting.retain(|&sequence| sequence != reply.sequence);
                }
            }
        }
        Ok(())
    }

    /// Requests one object and passes its payload, which begins with the fixed struct, to `take`.
    ///
    /// # Errors
    /// The kernel's refusal, for example ENODEV for an unknown object, or a socket error.
    pub fn get<T>(
        &mut self,
        message: Message,
        mut take: impl FnMut(&[u8]) -> T,
    ) -> Result<T, NetlinkError> {
        self.exchange(message, |reply| match reply.kind {
            KIND_ERROR => outcome(reply.flags, reply.payload).map(|()| None),
            _ => Ok(Some(take(reply.payload))),
        })
    }

    /// Requests all objects and passes the payload of each to `take`.
    ///
    /// # Errors
    /// The kernel refuses the list, or the socket fails. `take` may have received some objects.
    pub fn dump(
        &mut self,
        mut message: Message,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        message.add_flags(DUMP);
        self.exchange(message, |reply| {
            match reply.kind {
                KIND_DONE => return Ok(Some(())),
                KIND_ERROR => return outcome(reply.flags, reply.payload).map(Some),
                _ => take(reply.payload),
            }
            Ok(None)
        })
    }

    /// Sends a message and passes its replies to `take` until `take` returns a result.
    fn exchange<T>(
        &mut self,
        mut message: Message,
        mut take: impl FnMut(Reply<'_>) -> Result<Option<T>, NetlinkError>,
    ) -> Result<T, NetlinkError> {
        self.sequence += 1;
        send(
            self.socket.as_raw_fd(),
            message.finish(self.sequence),
            MsgFlags::empty(),
        )?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            for reply in replies(&buffer[..length]) {
                if reply.sequence == self.sequence
                    && let Some(result) = take(reply)?
                {
                    return Ok(result);
                }
            }
        }
    }
}

/// Parses an `NLMSG_ERROR`; code 0 is an acknowledgement.
fn outcome(flags: u16, payload: &[u8]) -> Result<(), NetlinkError> {
    let code = number_at(payload, 0).unwrap_or(0).cast_signed();
    if code == 0 {
        return Ok(());
    }
    // The code is followed by the request's header, by the request's payload unless capped, and by
    // the attributes.
    let request_len = if flags & CAPPED != 0 {
        HEADER_LEN
    } else {
        number_at(payload, 4).map_or(0, |n| (n as usize).next_multiple_of(4))
    };
    let detail = (flags & ACK_ATTRIBUTES != 0)
        .then(|| payload.get(4 + request_len..))
        .flatten()
        .and_then(|rest| attribute(rest, ERROR_TEXT))
        .map(text_of);
    Err(NetlinkError {
        source: io::Error::from_raw_os_error(-code),
        detail,
    })
}
