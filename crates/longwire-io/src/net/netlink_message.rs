//! Netlink message encoding and decoding. A message has a header, a fixed struct and attributes,
//! which may nest.
//!
//! Netlink uses host byte order, except in a few attributes.

/// Bytes of `struct nlmsghdr`.
pub const HEADER_LEN: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE_HEADER_LEN: usize = 4;
/// `NLA_F_NESTED`: the attribute contains attributes.
const NESTED: u16 = 1 << 15;
/// Mask of an attribute's type without flags (`NLA_TYPE_MASK`).
const KIND_MASK: u16 = 0x3fff;

/// A netlink message under construction.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Starts a message of `kind` (`nlmsg_type`) with `flags` (`nlmsg_flags`) and the family's
    /// fixed struct.
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Message {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let mut message = Message { bytes };
        message.raw(fixed);
        message
    }

    /// Appends raw bytes, padded to netlink's four-byte alignment.
    pub fn raw(&mut self, value: &[u8]) -> &mut Message {
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an attribute.
    ///
    /// # Panics
    /// If the value exceeds an attribute's maximum of 64 KB; Longwire's values are far shorter.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Message {
        let length = u16::try_from(ATTRIBUTE_HEADER_LEN + value.len())
            .expect("an attribute of less than 64 KB");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.raw(value)
    }

    /// Appends a 32-bit number in host byte order.
    pub fn number(&mut self, kind: u16, value: u32) -> &mut Message {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends a zero-terminated string.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Message {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends an attribute that contains the attributes appended by `fill`.
    ///
    /// # Panics
    /// As for [`Message::attribute`].
    pub fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) -> &mut Message {
        let start = self.bytes.len();
        self.attribute(kind | NESTED, &[]);
        fill(self);
        let length =
            u16::try_from(self.bytes.len() - start).expect("an attribute of less than 64 KB");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Sets length and sequence number in the header and returns the bytes to send.
    pub(super) fn finish(&mut self, sequence: u32) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).expect("a message of less than 4 GB");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.bytes
    }

    pub(super) fn flags(&self) -> u16 {
        u16::from_ne_bytes([self.bytes[6], self.bytes[7]])
    }

    /// Adds flags to those given to [`Message::new`].
    pub(super) fn add_flags(&mut self, flags: u16) {
        let now = self.flags() | flags;
        self.bytes[6..8].copy_from_slice(&now.to_ne_bytes());
    }
}

/// A message received from the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

/// Splits received bytes into messages; stops at an inconsistent length.
pub(super) fn replies(mut bytes: &[u8]) -> impl Iterator<Item = Reply<'_>> {
    std::iter::from_fn(move || {
        let header = bytes.get(..HEADER_LEN)?;
        let length = number_at(header, 0)? as usize;
        let payload = bytes.get(HEADER_LEN..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Reply {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            flags: u16::from_ne_bytes([header[6], header[7]]),
            sequence: number_at(header, 8)?,
            payload,
        })
    })
}

/// Returns the attributes in `bytes` as pairs of kind and value; stops at an inconsistent length.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.get(..ATTRIBUTE_HEADER_LEN)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let value = bytes.get(ATTRIBUTE_HEADER_LEN..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// Returns the value of the first attribute of this kind.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// Returns the 32-bit number at an offset; `None` past the end.
pub fn number_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*four))
}

/// Returns a string attribute without its terminating zero.
pub fn text_of(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_attributes_are_read_back() {
        let mut message = Message::new(16, 1, &[0; 16]);
        message.text(3, "eth0").nested(18, |inner| {
            inner.text(1, "veth").number(4, 1500);
        });
        let bytes = message.finish(7).to_vec();
        let reply = replies(&bytes).next().expect("one message");
        assert_eq!((reply.kind, reply.flags, reply.sequence), (16, 1, 7));
        let body = &reply.payload[16..];
        assert_eq!(attribute(body, 3).map(text_of), Some("eth0".into()));
        let inner = attribute(body, 18).expect("the nested one");
        assert_eq!(attribute(inner, 1).map(text_of), Some("veth".into()));
        let number = attribute(inner, 4).and_then(|v| number_at(v, 0));
        assert_eq!(number, Some(1500));
    }

    proptest! {
        /// Parsing arbitrary bytes ends without a panic.
        #[test]
        fn reading_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for reply in replies(&bytes) {
                for (_, value) in attributes(reply.payload) {
                    let _ = text_of(value);
                }
            }
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
