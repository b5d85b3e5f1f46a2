//! The station table.
//!
//! Open addressing with a fixed number of rows, so that forwarding never allocates. A row takes 16
//! bytes and half of the rows stay empty, so a lookup usually touches one cache line. The hash is
//! keyed, because senders choose addresses. Even if they know the key, a lookup checks at most
//! [`PROBES_MAX`] rows: no station is stored farther from its home row.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::Nanos;

/// Maximum rows per lookup. At 50 % load, runs of even half this length do not occur by chance.
const PROBES_MAX: usize = 128;

/// Rows checked for aged stations when a station is learned: while the table has free space, and
/// when it is full.
const SWEEP: usize = 4;
const SWEEP_FULL: usize = 64;

/// Binary logarithm of a tick in nanoseconds. An active station causes at most one write per tick.
const TICK_BITS: u32 = 20;

/// Converts a time to ticks.
#[inline]
pub(super) fn tick(now: Nanos) -> u64 {
    now.as_nanos() >> TICK_BITS
}

/// VLAN and MAC address; zero is invalid.
pub(super) type StationKey = u64;

#[inline]
pub(super) fn station_key(vlan: u16, mac: u64) -> StationKey {
    u64::from(vlan) << 48 | mac
}

/// A station's port and the tick at which it was last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StationPlace(u64);

const STATIC: u64 = 1 << 47;

impl StationPlace {
    fn new(port: u16, tick: u64) -> StationPlace {
        StationPlace(u64::from(port) << 48 | tick)
    }

    fn given(port: u16) -> StationPlace {
        StationPlace(u64::from(port) << 48 | STATIC)
    }

    #[inline]
    fn port(self) -> u16 {
        (self.0 >> 48) as u16
    }

    #[inline]
    fn is_static(self) -> bool {
        self.0 & STATIC != 0
    }

    #[inline]
    fn tick(self) -> u64 {
        self.0 & (STATIC - 1)
    }
}

/// Result of learning from a source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    Known,
    New,
    /// Station that returned after ageing.
    Again,
    Moved,
    /// Static entry for a different port.
    Static,
    Full,
}

/// The station table.
#[derive(Clone, Debug)]
pub(super) struct Stations {
    rows: Vec<(StationKey, StationPlace)>,
    /// Number of rows (a power of two) minus one.
    last_row: usize,
    /// Number of stations, including aged ones.
    pub len: usize,
    len_max: usize,
    /// Ageing time in ticks; the maximum disables ageing.
    ageing: u64,
    seed: u64,
    /// Row at which the search for aged stations continues.
    hand: usize,
    /// Number of stations found to have aged.
    pub aged: u64,
}

impl Stations {
    pub fn new(len_max: u32, ageing: Nanos, seed: u64) -> Stations {
        let rows = (len_max as usize * 2).next_power_of_two();
        Stations {
            rows: vec![(0, StationPlace::default()); rows],
            last_row: rows - 1,
            len: 0,
            len_max: len_max as usize,
            ageing: match ageing {
                Nanos::MAX => u64::MAX,
                ageing => ageing.as_nanos().div_ceil(1 << TICK_BITS),
            },
            seed: longwire_units::random::absorb(0, seed),
            hand: 0,
            aged: 0,
        }
    }

    #[inline]
    fn home(&self, key: StationKey) -> usize {
        let product = u128::from(key ^ self.seed) * 0x9e37_79b9_7f4a_7c15_u128;
        (product as u64 ^ (product >> 64) as u64) as usize & self.last_row
    }

    /// Returns a station's row, or the empty row for a new station. Returns `None` if that is too
    /// far from the home row.
    #[inline]
    fn find(&self, key: StationKey) -> Option<usize> {
        let mut row = self.home(key);
        for _ in 0..PROBES_MAX {
            let (there, _) = self.rows[row];
            if there == key || there == 0 {
                return Some(row);
            }
            row = (row + 1) & self.last_row;
        }
        None
    }

    #[inline]
    fn has_aged(&self, place: StationPlace, tick: u64) -> bool {
        !place.is_static() && tick.saturating_sub(place.tick()) > self.ageing
    }

    /// Returns a station's port.
    #[inline]
    pub fn get(&self, key: StationKey, tick: u64) -> Option<u16> {
        let (there, place) = self.rows[self.find(key)?];
        (there != 0 && !self.has_aged(place, tick)).then(|| place.port())
    }

    /// Records the port at which a station was seen.
    #[inline]
    pub fn learn(&mut self, key: StationKey, port: u16, tick: u64) -> Learnt {
        let Some(row) = self.find(key) else {
            return Learnt::Full;
        };
        let (there, place) = self.rows[row];
        if there == 0 {
            return self.learn_new(key, port, tick);
        }
        let now = StationPlace::new(port, tick);
        if place == now {
            return Learnt::Known;
        }
        if place.is_static() {
            let elsewhere = place.port() != port;
            return if elsewhere {
                Learnt::Static
            } else {
                Learnt::Known
            };
        }
        // Ticks never decrease.
        let now = StationPlace::new(port, tick.max(place.tick()));
        self.rows[row].1 = now;
        if self.has_aged(place, tick) {
            self.aged += 1;
            return Learnt::Again;
        }
        if place.port() == port {
            Learnt::Known
        } else {
            Learnt::Moved
        }
    }

    #[cold]
    fn learn_new(&mut self, key: StationKey, port: u16, tick: u64) -> Learnt {
        let is_full = self.len >= self.len_max;
        self.sweep(tick, if is_full { SWEEP_FULL } else { SWEEP });
        if self.len >= self.len_max {
            return Learnt::Full;
        }
        if self.put(key, StationPlace::new(port, tick)) {
            Learnt::New
        } else {
            Learnt::Full
        }
    }

    fn put(&mut self, key: StationKey, place: StationPlace) -> bool {
        let Some(row) = self.find(key) else {
            return false;
        };
        self.len += usize::from(self.rows[row].0 == 0);
        self.rows[row] = (key, place);
        true
    }

    /// Adds a static entry; returns `false` if the table is full.
    pub fn give(&mut self, key: StationKey, port: u16) -> bool {
        let known = self.find(key).is_some_and(|row| self.rows[row].0 == key);
        (known || self.len < self.len_max) && self.put(key, StationPlace::given(port))
    }

    /// Removes aged stations from the next rows.
    fn sweep(&mut self, tick: u64, rows: usize) {
        for _ in 0..rows.min(self.rows.len()) {
            let (key, place) = self.rows[self.hand];
            if key != 0 && self.has_aged(place, tick) {
                // Check this row again: another station may have moved into it.
                self.remove(self.hand);
                self.aged += 1;
            } else {
                self.hand = (self.hand + 1) & self.last_row;
            }
        }
    }

    /// Clears a row, and moves later rows up so that runs stay contiguous.
    fn remove(&mut self, row: usize) {
        self.len -= 1;
        let mut gap = row;
        let mut row = row;
        loop {
            row = (row + 1) & self.last_row;
            let (key, _) = self.rows[row];
            if key == 0 {
                break;
            }
            // A row may fill the gap unless its home row lies after the gap.
            let from_home = row.wrapping_sub(self.home(key)) & self.last_row;
            let from_gap = row.wrapping_sub(gap) & self.last_row;
            if from_home >= from_gap {
                self.rows[gap] = self.rows[row];
                gap = row;
            }
        }
        self.rows[gap] = (0, StationPlace::default());
    }
}
