//! Builder of capture files, byte by byte, in either byte order.

/// A capture file under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    pub bytes: Vec<u8>,
    big: bool,
}

impl Builder {
    pub fn new(big: bool) -> Builder {
        let bytes = Vec::new();
        Builder { bytes, big }
    }

    /// Starts a pcap file.
    pub fn pcap(big: bool, magic: u32, snapshot: u32, link_type: u32) -> Builder {
        let mut file = Builder::new(big);
        file.u32(magic).u16(2).u16(4).u32(0).u32(0);
        file.u32(snapshot).u32(link_type);
        file
    }

    /// Starts a pcapng file with one interface.
    pub fn ng(big: bool, link_type: u16, snapshot: u32, options: &[(u16, &[u8])]) -> Builder {
        let mut file = Builder::new(big);
        file.section().interface(link_type, snapshot, options);
        file
    }

    pub fn u16(&mut self, value: u16) -> &mut Builder {
        self.number(value.to_le_bytes())
    }

    pub fn u32(&mut self, value: u32) -> &mut Builder {
        self.number(value.to_le_bytes())
    }

    fn number<const LEN: usize>(&mut self, mut bytes: [u8; LEN]) -> &mut Builder {
        if self.big {
            bytes.reverse();
        }
        self.raw(&bytes)
    }

    fn padded(&mut self) -> &mut Builder {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Builder {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a classic record.
    pub fn record(&mut self, seconds: u32, ticks: u32, data: &[u8], original: u32) -> &mut Builder {
        self.u32(seconds).u32(ticks);
        self.u32(data.len() as u32).u32(original).raw(data)
    }

    /// Appends a pcapng block around `body`, with padding.
    pub fn block(&mut self, kind: u32, body: impl FnOnce(&mut Builder)) -> &mut Builder {
        let mut inner = Builder::new(self.big);
        body(&mut inner);
        let len = inner.padded().bytes.len() as u32 + 12;
        self.u32(kind).u32(len).raw(&inner.bytes).u32(len)
    }

    /// Appends a section header in this builder's byte order, with a comment.
    pub fn section(&mut self) -> &mut Builder {
        self.block(0x0a0d_0d0a, |b| {
            b.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
            b.u16(1).u16(5).raw(b"hello\0\0\0").u32(0);
        })
    }

    /// Appends an interface with options given as `(code, value)`.
    pub fn interface(
        &mut self,
        link_type: u16,
        snapshot: u32,
        options: &[(u16, &[u8])],
    ) -> &mut Builder {
        self.block(1, |b| {
            b.u16(link_type).u16(0).u32(snapshot);
            for (code, value) in options {
                b.u16(*code).u16(value.len() as u16).raw(value).padded();
            }
            if !options.is_empty() {
                b.u32(0);
            }
        })
    }

    /// Appends an enhanced packet with the option `epb_flags` after the data.
    pub fn flagged(&mut self, interface: u32, data: &[u8], flags: u32) -> &mut Builder {
        self.block(6, |b| {
            let len = data.len() as u32;
            b.u32(interface).u32(0).u32(5).u32(len).u32(len).raw(data);
            b.padded().u16(2).u16(4).u32(flags).u32(0);
        })
    }

    /// Appends an enhanced packet with a comment after the data.
    pub fn enhanced(
        &mut self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        original: u32,
    ) -> &mut Builder {
        self.block(6, |b| {
            b.u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32);
            b.u32(data.len() as u32).u32(original).raw(data);
            b.padded().u16(1).u16(4).raw(b"note").u32(0);
        })
    }
}
