//! Limits of a generator.

/// Maximum number of flows, at 44 bytes each.
pub const FLOWS_MAX: u64 = 1 << 20;

/// Maximum consecutive MAC addresses. They differ in the last three octets only, so none
/// becomes a group address or changes its OUI.
pub const MACS_MAX: u64 = 1 << 24;

/// Maximum length of a payload pattern in bytes.
pub const PAYLOAD_MAX: usize = 65_536;
