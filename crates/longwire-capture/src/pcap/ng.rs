//! pcapng input: blocks that begin with a type and a length and end with the same length
//! (draft-ietf-opsawg-pcapng). A file has one or more sections, each with its own byte order and
//! interfaces.

use super::CAPTURED_MAX;
use super::counts::LeftOut;
use super::link_type::{self, Found, Framing, Place};
use super::ng_interface::{Interface, Options};
use super::source::{BUFFER_LEN, FillResult, Order, Source, Stop};

/// First bytes of a file, equal in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const BLOCK_SECTION: u32 = 0x0a0d_0d0a;
const BLOCK_INTERFACE: u32 = 1;
const BLOCK_PACKET: u32 = 2;
const BLOCK_SIMPLE: u32 = 3;
const BLOCK_ENHANCED: u32 = 6;

/// Length of a block's framing: type and length before the body, length after it.
const FRAMING_LEN: u32 = 12;
/// Offset of the data in an enhanced or an obsolete packet block.
const DATA_AT: usize = 28;
/// Offset of the data in a simple packet block.
const SIMPLE_DATA_AT: usize = 12;
/// Maximum number of interfaces per section. More indicate a damaged file, which could claim
/// unbounded memory.
const INTERFACES_MAX: usize = 65_536;

/// The section being read.
#[derive(Debug, Default)]
pub(super) struct Ng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Interface names; an empty string for an unnamed interface.
    names: Vec<String>,
    /// Name or number of the only interface to read.
    chosen: Option<String>,
    /// Whether any section contained the chosen interface.
    is_found: bool,
    /// Whether the frames of any interface can be converted to Ethernet.
    is_carried: bool,
    /// Link type of the first record that was skipped because of its link type.
    refused: Option<u32>,
    /// For a block being skipped: its length, which must be repeated at its end, and its offset.
    closing: Option<(u32, u64)>,
    /// Time of the last frame, also used for simple packets, which have no time.
    last_stamp: u64,
}

/// A frame in a block, before its interface is validated.
struct Packet {
    interface: u32,
    ticks: Option<u64>,
    captured: u32,
    original: u32,
    /// Offset of the data in the block.
    data_at: usize,
}

impl Ng {
    /// Reads the first section header.
    pub(super) fn open(source: &mut Source, interface: Option<&str>) -> Result<Ng, Stop> {
        let mut ng = Ng {
            chosen: interface.map(str::to_owned),
            ..Ng::default()
        };
        ng.begin_section(source)?;
        Ok(ng)
    }

    /// Reads an ordinary enhanced packet that lies entirely in the block. Nearly all blocks are of
    /// this kind; for others, returns `None`, and [`Ng::advance`] reads them.
    #[inline]
    pub(super) fn quick(&mut self, source: &mut Source) -> Option<Place> {
        let held = source.held();
        let header: &[u8; DATA_AT] = held.first_chunk()?;
        let [kind, len, number, high, low, captured, original] = self.order.words(header);
        let block = held.get(..len as usize)?;
        let interface = self.interfaces.get(number as usize)?;
        if kind != BLOCK_ENHANCED
            || self.closing.is_some()
            || !len.is_multiple_of(4)
            || len < DATA_AT as u32 + 4
            || self.order.u32(block, block.len() - 4) != len
            || captured > (len - DATA_AT as u32 - 4).min(CAPTURED_MAX)
            || interface.framing != Ok(Framing::Ethernet)
        {
            return None;
        }
        let fcs_len = self.fcs_len(interface, block, DATA_AT, captured);
        let stamp = interface.nanos(u64::from(high) << 32 | u64::from(low))?;
        self.last_stamp = stamp;
        let at = source.consume(len as usize) + DATA_AT;
        Some(Place::new(stamp, at, captured, original, fcs_len).on(number))
    }

    /// Advances to the next frame.
    pub(super) fn advance(&mut self, source: &mut Source) -> Result<Option<Found>, Stop> {
        loop {
            self.close_skipped(source)?;
            match source.need(FRAMING_LEN as usize)? {
                FillResult::Ready => {}
                FillResult::Ended(0) => return self.end().map(|()| None),
                FillResult::Ended(held) => return Err(cut(source, held, FRAMING_LEN)),
            }
            let kind = self.order.u32(source.held(), 0);
            let len = self.order.u32(source.held(), 4);
            if kind == BLOCK_SECTION {
                self.begin_section(source)?;
                continue;
            }
            if len < FRAMING_LEN || !len.is_multiple_of(4) {
                return Err(bad_length(source, len));
            }
            match kind {
                BLOCK_ENHANCED | BLOCK_SIMPLE | BLOCK_PACKET => {
                    return self.packet(source, kind, len).map(Some);
                }
                BLOCK_INTERFACE => {
                    self.whole_block(source, len)?;
                    self.add_interface(source, len)?;
                }
                _ => self.skip_block(source, len, 0),
            }
        }
    }

    /// Selects the only interface to read. Call it before the first interface description.
    pub(super) fn choose(&mut self, interface: &str) {
        self.chosen = Some(interface.to_owned());
    }

    pub(super) fn interface_name(&self, interface: u32) -> Option<&str> {
        let name = self.names.get(interface as usize)?;
        (!name.is_empty()).then_some(name)
    }

    /// Reads a section header: type, length, byte order mark, version, and section length, which is
    /// not needed because blocks are read in sequence.
    fn begin_section(&mut self, source: &mut Source) -> Result<(), Stop> {
        if let FillResult::Ended(held) = source.need(28)? {
            return Err(cut(source, held, 28));
        }
        let header = source.held();
        self.order = match header[8..12] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => {
                return Err(malformed(
                    source,
                    8,
                    "section header without byte-order magic",
                ));
            }
        };
        let len = self.order.u32(header, 4);
        let (major, minor) = (self.order.u16(header, 12), self.order.u16(header, 14));
        if len < 28 || !len.is_multiple_of(4) {
            return Err(bad_length(source, len));
        }
        if major != 1 {
            let reason = format!("pcapng version {major}.{minor}; supported: 1.x");
            return Err(malformed(source, 12, reason));
        }
        self.interfaces.clear();
        self.names.clear();
        self.skip_block(source, len, 24);
        Ok(())
    }

    /// Skips a block of `len` bytes, which may be longer than the buffer. The caller has used its
    /// first `seen` bytes.
    fn skip_block(&mut self, source: &mut Source, len: u32, seen: u32) {
        debug_assert!(seen + 4 <= len, "the closing length is still to come");
        self.closing = Some((len, source.offset()));
        source.skip(u64::from(len - 4));
    }

    fn close_skipped(&mut self, source: &mut Source) -> Result<(), Stop> {
        let Some((len, offset)) = self.closing else {
            return Ok(());
        };
        if let FillResult::Ended(_) = source.need(4)? {
            return Err(Stop::malformed(
                offset,
                format!("truncated block of {len} bytes"),
            ));
        }
        let closing = self.order.u32(source.held(), 0);
        if closing != len {
            return Err(mismatch(offset, len, closing));
        }
        source.consume(4);
        self.closing = None;
        Ok(())
    }

    /// Loads a block into the buffer and checks the length at its end.
    #[inline]
    fn whole_block(&self, source: &mut Source, len: u32) -> Result<(), Stop> {
        if len as usize > BUFFER_LEN {
            let reason = format!("block of {len} bytes; the maximum is {BUFFER_LEN}");
            return Err(malformed(source, 4, reason));
        }
        if let FillResult::Ended(held) = source.need(len as usize)? {
            return Err(cut(source, held, len));
        }
        let closing = self.order.u32(source.held(), len as usize - 4);
        if closing != len {
            return Err(mismatch(source.offset(), len, closing));
        }
        Ok(())
    }

    fn add_interface(&mut self, source: &mut Source, len: u32) -> Result<(), Stop> {
        if self.interfaces.len() == INTERFACES_MAX {
            let reason = format!("more than {INTERFACES_MAX} interfaces");
            return Err(malformed(source, 0, reason));
        }
        let body = &source.held()[8..len as usize - 4];
        match Interface::parse(self.order, body) {
            Ok((interface, name)) => self.push_interface(interface, name),
            Err((at, reason)) => return Err(malformed(source, 8 + at as u64, reason)),
        }
        source.consume(len as usize);
        Ok(())
    }

    fn push_interface(&mut self, mut interface: Interface, name: String) {
        let number = self.interfaces.len().to_string();
        match &self.chosen {
            Some(chosen) if *chosen != name && *chosen != number => {
                interface.framing = Err(LeftOut::OtherInterface);
            }
            Some(_) => self.is_found = true,
            None => {}
        }
        self.is_carried |= interface.framing.is_ok();
        self.interfaces.push(interface);
        self.names.push(name);
    }

    /// At the end of a file, rejects it if none of its interfaces could be read.
    #[cold]
    fn end(&self) -> Result<(), Stop> {
        /// Maximum number of interfaces listed in a message.
        const LISTED: usize = 8;
        if let (Some(chosen), false) = (&self.chosen, self.is_found) {
            let names = self.names.iter().enumerate().take(LISTED);
            let names = names.map(|(number, name)| format!("{number} ({name})"));
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(Stop::Unsupported(format!(
                "no interface '{chosen}'; the last section has {names}"
            )));
        }
        match self.refused {
            Some(link_type) if !self.is_carried => {
                Err(Stop::Unsupported(link_type::refusal(link_type)))
            }
            _ => Ok(()),
        }
    }

    fn packet(&mut self, source: &mut Source, kind: u32, len: u32) -> Result<Found, Stop> {
        let packet = self.packet_fields(source, kind, len)?;
        let number = packet.interface;
        let Some(interface) = self.interfaces.get(number as usize) else {
            let reason = format!("frame on interface {number}, which has no description block");
            return Err(malformed(source, 8, reason));
        };
        let captured = match kind {
            BLOCK_SIMPLE => packet.captured.min(interface.snapshot_len),
            _ => packet.captured,
        };
        if captured > len - 4 - packet.data_at as u32 {
            let reason = format!("frame of {captured} bytes in a block of {len} bytes");
            return Err(malformed(source, 0, reason));
        }
        let is_too_long = captured > CAPTURED_MAX || len as usize > BUFFER_LEN;
        let (Ok(framing), false) = (interface.framing, is_too_long) else {
            let reason = interface.framing.err().unwrap_or(LeftOut::TooLong);
            if let (LeftOut::LinkType(link_type), None) = (reason, self.refused) {
                self.refused = Some(link_type);
            }
            self.skip_block(source, len, packet.data_at as u32);
            return Ok(Err(reason));
        };
        self.whole_block(source, len)?;
        if let Some(ticks) = packet.ticks {
            let Some(stamp) = interface.nanos(ticks) else {
                let reason = format!("timestamp of {ticks} ticks is before 1970 or after 2554");
                return Err(malformed(source, 0, reason));
            };
            self.last_stamp = stamp;
        }
        let block = &source.held()[..len as usize];
        let fcs_len = self.fcs_len(interface, block, packet.data_at, captured);
        let at = source.consume(len as usize) + packet.data_at;
        let stamp = self.last_stamp;
        let place = Place::new(stamp, at, captured, packet.original, fcs_len);
        Ok(Ok(place.framed(framing).on(number)))
    }

    /// Reads the fields that precede the data in a packet block.
    fn packet_fields(&self, source: &mut Source, kind: u32, len: u32) -> Result<Packet, Stop> {
        let data_at = if kind == BLOCK_SIMPLE {
            SIMPLE_DATA_AT
        } else {
            DATA_AT
        };
        if (len as usize) < data_at + 4 {
            return Err(bad_length(source, len));
        }
        if let FillResult::Ended(held) = source.need(data_at)? {
            return Err(cut(source, held, len));
        }
        let block = source.held();
        let field = |at: usize| self.order.u32(block, at);
        if kind == BLOCK_SIMPLE {
            return Ok(Packet {
                interface: 0,
                ticks: None,
                captured: field(8),
                original: field(8),
                data_at,
            });
        }
        let interface = match kind {
            BLOCK_ENHANCED => field(8),
            _ => u32::from(self.order.u16(block, 8)),
        };
        Ok(Packet {
            interface,
            ticks: Some(u64::from(field(12)) << 32 | u64::from(field(16))),
            captured: field(20),
            original: field(24),
            data_at,
        })
    }

    /// Returns the length of a frame's FCS in bytes. A non-zero length in the block's flags
    /// overrides the interface's.
    #[inline]
    fn fcs_len(&self, interface: &Interface, block: &[u8], data_at: usize, captured: u32) -> u32 {
        let options_at = data_at + captured.next_multiple_of(4) as usize;
        match block.get(options_at..block.len() - 4) {
            Some([_, _, _, _, ..]) if data_at == DATA_AT => self
                .flags_fcs_len(&block[options_at..])
                .unwrap_or(interface.fcs_len),
            _ => interface.fcs_len,
        }
    }

    /// Returns the length of the FCS in bytes, from bits 5 to 8 of the option `epb_flags`.
    #[cold]
    fn flags_fcs_len(&self, options: &[u8]) -> Option<u32> {
        const OPTION_FLAGS: u16 = 2;
        let options = Options {
            order: self.order,
            bytes: options,
            at: 0,
        };
        let mut options = options.map_while(Result::ok);
        let (_, _, value) =
            options.find(|(_, code, value)| *code == OPTION_FLAGS && value.len() == 4)?;
        let len = self.order.u32(value, 0) >> 5 & 0xf;
        (len > 0).then_some(len)
    }
}

#[cold]
fn malformed(source: &Source, at: u64, reason: impl Into<String>) -> Stop {
    Stop::malformed(source.offset() + at, reason)
}

#[cold]
fn bad_length(source: &Source, len: u32) -> Stop {
    let reason = format!("block length {len}: too short, or not a multiple of 4");
    malformed(source, 4, reason)
}

#[cold]
fn mismatch(offset: u64, len: u32, closing: u32) -> Stop {
    let reason = format!("block of {len} bytes with trailing length {closing}");
    Stop::malformed(offset, reason)
}

#[cold]
fn cut(source: &Source, held: usize, len: u32) -> Stop {
    let reason = format!("truncated block: {held} of {len} bytes");
    malformed(source, 0, reason)
}
