//! Packet processing: headers, checksums, filters, rewriting, splitting, probes, the
//! classifier and the learning bridge.
//!
//! ```
//! use longwire_packet::filter::Filter;
//! use longwire_packet::header::IpHeader;
//! use longwire_packet::repair_checksums;
//!
//! // Ethernet, IPv4, and a UDP datagram to port 53, without checksums.
//! let mut frame = [0; 42];
//! frame[12..14].copy_from_slice(&[0x08, 0x00]);
//! frame[14..18].copy_from_slice(&[0x45, 0, 0, 28]);
//! frame[22..24].copy_from_slice(&[64, 17]);
//! frame[36..40].copy_from_slice(&[0, 53, 0, 8]);
//!
//! let ip = IpHeader::parse(&frame).expect("an IPv4 header");
//! assert_eq!(ip.ttl, 64);
//! assert!(Filter::parse("udp port 53")?.matches(&frame, 42));
//! assert!(repair_checksums(&mut frame), "the IPv4 checksum was wrong");
//! assert!(!repair_checksums(&mut frame));
//! # Ok::<(), longwire_packet::filter::FilterError>(())
//! ```
//!
//! A frame is a byte slice that starts with its destination MAC address. Malformed and truncated
//! frames are valid input: parsers return `None`, and filters do not match. An
//! [`IpHeader`](header::IpHeader) must be passed together with the frame from which it was parsed.
//! The crate is `no_std`, reads no clock and does no I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod alter;
pub mod bridge;
mod bytes;
mod checksum;
pub mod classify;
pub mod edit;
pub mod filter;
pub mod five_tuple;
mod flow;
pub mod flow_hash;
pub mod fragment;
pub mod frame;
pub mod header;
pub mod icmp;
mod mac;
mod payload;
pub mod probe;
pub mod sides;
pub mod split;

pub use checksum::crc32c;
pub use edit::{Corruption, repair_checksums};
pub use frame::FrameMeta;
pub use mac::{MacAddress, MacError};
pub use payload::transport_payload;
