//! Limits of a generator's configuration.

/// The most flows: each takes 44 bytes.
pub const FLOWS_MAX: u64 = 1 << 20;

/// The most MAC addresses in a row: they differ in their last three octets, so that
/// none of them becomes a group address or another manufacturer's.
pub const MACS_MAX: u64 = 1 << 24;

/// The longest pattern of a payload, in bytes.
pub const PAYLOAD_MAX: usize = 65_536;
