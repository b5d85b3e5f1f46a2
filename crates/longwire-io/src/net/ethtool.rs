//! Reads and changes device features (checksum, segmentation and receive offloads), like
//! the `ethtool` program.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use longwire_engine::BitRate;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::ifreq;
use super::netlink_message::text_of;

// Numbers from linux/ethtool.h.
const GSET: u32 = 0x01;
const GDRVINFO: u32 = 0x03;
const GLINK: u32 = 0x0a;
const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const GCHANNELS: u32 = 0x3c;
const GET_TS_INFO: u32 = 0x41;
/// `ETH_SS_FEATURES`.
const STRINGS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const STRING_LEN: usize = 32;
/// Maximum number of features. The kernel has about 60.
const FEATURES_MAX: usize = 1024;

/// Access to the devices of one network namespace: the opening thread's, even if the thread moves
/// later.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens the calling thread's namespace.
    ///
    /// # Errors
    /// EMFILE or ENFILE if no descriptor is free.
    pub fn open() -> io::Result<Ethtool> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
        Ok(Ethtool { socket })
    }

    /// Runs a command. `buffer` begins with the command number and has room for any answer.
    fn command(&self, name: &str, buffer: &mut [u32]) -> io::Result<()> {
        self.ask(name, libc::SIOCETHTOOL, buffer.as_mut_ptr().cast())
    }

    /// Returns the answer to a command without arguments.
    fn read<const WORDS: usize>(&self, name: &str, command: u32) -> io::Result<[u32; WORDS]> {
        let mut buffer = [0; WORDS];
        buffer[0] = command;
        self.command(name, &mut buffer)?;
        Ok(buffer)
    }

    fn ask(&self, name: &str, question: libc::c_ulong, data: *mut libc::c_char) -> io::Result<()> {
        ask(self.socket.as_fd(), name, question, data)
    }

    /// Returns the driver's name.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver reports no name.
    pub fn driver(&self, name: &str) -> io::Result<String> {
        // struct ethtool_drvinfo: 196 bytes.
        let buffer: [u32; 49] = self.read(name, GDRVINFO)?;
        Ok(text_of(&bytes_of(&buffer)[4..36]))
    }

    /// Returns the device's line rate; `None` if unknown.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver has no link settings, for
    /// example that of `lo`.
    pub fn speed(&self, name: &str) -> io::Result<Option<BitRate>> {
        // struct ethtool_cmd: cmd, two masks, then further fields. The low half of the speed in
        // Mbit/s is in the first of them, and the high half four words later.
        let buffer: [u32; 11] = self.read(name, GSET)?;
        let megabits = buffer[3] & 0xffff | (buffer[7] & 0xffff) << 16;
        Ok(match megabits {
            0xffff | u32::MAX => None,
            megabits => BitRate::from_bits_per_sec(u64::from(megabits) * 1_000_000),
        })
    }

    /// Returns the device's timestamping capabilities.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver reports none.
    pub fn stamps(&self, name: &str) -> io::Result<StampingAbilities> {
        // struct ethtool_ts_info: cmd, a mask of stamp sources, clock number, and masks of the
        // modes for sending and, four words later, for receiving.
        let buffer: [u32; 11] = self.read(name, GET_TS_INFO)?;
        let needed = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        Ok(StampingAbilities {
            sends: buffer[1] & needed == needed && buffer[3] & 1 << libc::HWTSTAMP_TX_ON != 0,
            clock: (buffer[2] != u32::MAX).then_some(buffer[2]),
        })
    }

    /// Returns the device's current timestamping configuration.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver stamps no frames.
    pub fn stamping(&self, name: &str) -> io::Result<libc::hwtstamp_config> {
        let mut config = libc::hwtstamp_config {
            flags: 0,
            tx_type: 0,
            rx_filter: 0,
        };
        self.ask(name, libc::SIOCGHWTSTAMP, (&raw mut config).cast())?;
        Ok(config)
    }

    /// Sets the device's timestamping configuration.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver stamps no frames; ERANGE if it
    /// does not support this configuration; EPERM without CAP_NET_ADMIN.
    pub fn set_stamping(&self, name: &str, mut config: libc::hwtstamp_config) -> io::Result<()> {
        self.ask(name, libc::SIOCSHWTSTAMP, (&raw mut config).cast())
    }

    /// Returns the number of receive queues.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver reports no queues.
    pub fn rx_queues(&self, name: &str) -> io::Result<u32> {
        // struct ethtool_channels: cmd, four maxima, rx, tx, other, combined.
        let buffer: [u32; 9] = self.read(name, GCHANNELS)?;
        Ok(buffer[5].saturating_add(buffer[8]))
    }

    /// Returns a device's features.
    ///
    /// # Errors
    /// ENODEV if no device has this name; EOPNOTSUPP if its driver has no features.
    pub fn features(&self, name: &str) -> io::Result<Features> {
        let names = self.feature_names(name)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: cmd, size, then per block of 32 features: available, requested,
        // active, never changed.
        let mut buffer = vec![0u32; 2 + 4 * blocks];
        buffer[0] = GFEATURES;
        buffer[1] = blocks as u32;
        self.command(name, &mut buffer)?;
        let list = names.into_iter().enumerate().map(|(n, name)| {
            let active = buffer[4 + 4 * (n / 32)] & 1 << (n % 32) != 0;
            (name, active)
        });
        Ok(Features(list.collect()))
    }

    /// Turns the named features on or off. Skips names unknown to the kernel.
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN.
    pub fn set_features<'a>(
        &self,
        name: &str,
        wanted: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> io::Result<()> {
        let names = self.feature_names(name)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: cmd, size, then per block: mask of the features to change, and
        // their new state.
        let mut buffer = vec![0u32; 2 + 2 * blocks];
        buffer[0] = SFEATURES;
        buffer[1] = blocks as u32;
        for (feature, on) in wanted {
            let Some(n) = names.iter().position(|known| known == feature) else {
                continue;
            };
            let bit = 1u32 << (n % 32);
            let block = &mut buffer[2 + 2 * (n / 32)..];
            block[0] |= bit;
            if on {
                block[1] |= bit;
            }
        }
        self.command(name, &mut buffer)
    }

    /// Returns the feature names in the kernel's order.
    fn feature_names(&self, name: &str) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, a 64-bit mask, then a length for each bit that
        // the kernel left set.
        let mut sizes = [0u32; 5];
        sizes[0] = GSSET_INFO;
        sizes[2..4].copy_from_slice(&halves(1 << STRINGS_FEATURES));
        self.command(name, &mut sizes)?;
        let count = (sizes[4] as usize).min(FEATURES_MAX);
        // struct ethtool_gstrings: cmd, set, length, then the strings.
        let mut buffer = vec![0u32; 3 + count * STRING_LEN / 4];
        buffer[0] = GSTRINGS;
        buffer[1] = STRINGS_FEATURES;
        buffer[2] = count as u32;
        self.command(name, &mut buffer)?;
        let bytes = bytes_of(&buffer[3..]);
        Ok(bytes.chunks_exact(STRING_LEN).map(text_of).collect())
    }
}

/// A device's timestamping capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampingAbilities {
    /// Whether the device can stamp frames as they go onto the wire.
    pub sends: bool,
    /// Number of the device's clock, if it has one.
    pub clock: Option<u32>,
}

/// Returns whether a device has a carrier, without the lag of up to 1 s of `IFF_RUNNING`. `socket`
/// is any socket in the device's namespace.
///
/// # Errors
/// ENODEV if no device has this name; EOPNOTSUPP if its driver does not report the carrier.
pub(crate) fn has_carrier(socket: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    // struct ethtool_value.
    let mut buffer = [GLINK, 0];
    ask(socket, name, libc::SIOCETHTOOL, buffer.as_mut_ptr().cast())?;
    Ok(buffer[1] != 0)
}

/// Runs an ethtool or timestamping request with `data`, which must have room for any answer.
fn ask(
    socket: BorrowedFd<'_>,
    name: &str,
    question: libc::c_ulong,
    data: *mut libc::c_char,
) -> io::Result<()> {
    let mut request = ifreq::request(name)?;
    request.ifr_ifru.ifru_data = data;
    // SAFETY: every caller sizes the data for its command.
    unsafe { ifreq::ask(socket, question, &mut request) }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A device's features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features(BTreeMap<String, bool>);

impl Features {
    /// Returns whether the feature with this name is on.
    pub fn active(&self, name: &str) -> bool {
        self.0.get(name) == Some(&true)
    }
}

/// Splits a 64-bit number into two words, in memory order.
fn halves(number: u64) -> [u32; 2] {
    let bytes = number.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_features_and_no_stamps_and_others_are_missing() {
        let ethtool = Ethtool::open().expect("a socket");
        let features = ethtool.features("lo").expect("anyone may read");
        assert!(features.0.contains_key("tx-generic-segmentation"));
        assert!(features.0.len() > 30);
        assert!(!features.active("no-such-feature"));
        let stamps = ethtool.stamps("lo").expect("anyone may read");
        assert_eq!((stamps.sends, stamps.clock), (false, None));
        assert!(ethtool.stamping("lo").is_err());
        for name in ["no-such", "a-name-longer-than-the-kernel-takes"] {
            let error = ethtool.features(name).expect_err("no such device");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }
}
