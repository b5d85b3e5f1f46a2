//! Ethernet addresses.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::filter::values::mac;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

/// Error: not a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a MAC address; for example: 02:00:00:00:00:01")]
pub struct MacError(String);

impl MacAddress {
    /// Returns the address as a number below 2^48.
    #[inline]
    pub(crate) fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Returns the address `number` after this one. Only the last three octets are incremented;
    /// they wrap around.
    #[inline]
    #[must_use]
    pub fn number(self, number: u64) -> MacAddress {
        let [a, b, c, d, e, f] = self.0;
        let last = u32::from_be_bytes([0, d, e, f]).wrapping_add(number as u32);
        let [_, d, e, f] = last.to_be_bytes();
        MacAddress([a, b, c, d, e, f])
    }
}

impl FromStr for MacAddress {
    type Err = MacError;

    /// Parses addresses such as `02:00:00:00:00:01`. Leading zeros are required, unlike in filters.
    fn from_str(text: &str) -> Result<MacAddress, MacError> {
        let address = mac(text).filter(|_| text.len() == 17).map(MacAddress);
        address.ok_or_else(|| MacError(text.to_owned()))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
