//! Stations and their ports.
//!
//! Open addressing over a fixed number of rows: no memory is allocated while frames
//! pass. A row is 16 bytes, and half of the rows stay empty, so a lookup is one cache
//! line. The hash is keyed, since senders choose the keys; and should the key be known,
//! no lookup checks more than [`PROBES_MAX`] rows, because no station is stored further
//! from its place.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::Nanos;

/// Maximum number of rows in a lookup. With half of the rows empty, runs of even half
/// that length do not occur by chance.
const PROBES_MAX: usize = 128;

/// Rows checked for aged stations when there is a new one: with free space, and
/// without.
const SWEEP: usize = 4;
const SWEEP_FULL: usize = 64;

/// Time is counted in ticks of 2^20 ns here: so a station that sends a million times a
/// second is written to memory only once a tick.
const TICK_BITS: u32 = 20;

/// A tick of a point in time.
#[inline]
pub(super) fn tick(now: Nanos) -> u64 {
    now.as_nanos() >> TICK_BITS
}

/// VLAN and Ethernet address in one word; zero is no station.
pub(super) type StationKey = u64;

#[inline]
pub(super) fn station_key(vlan: u16, mac: u64) -> StationKey {
    u64::from(vlan) << 48 | mac
}

/// A station's port and when it was last seen, in one word.
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

/// The result of learning a frame's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    /// Nothing new.
    Known,
    /// A station that was not known.
    New,
    /// A station that had aged, and returned.
    Again,
    /// A station that was at another port.
    Moved { from: u16 },
    /// A station whose static entry has another port.
    Static,
    /// A station for which the table has no space.
    Full,
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Stations {
    rows: Vec<(StationKey, StationPlace)>,
    /// A power of two, less one.
    last_row: usize,
    len: usize,
    len_max: usize,
    /// Ticks; at the largest value stations do not age.
    ageing: u64,
    seed: u64,
    /// Position of the search for aged stations.
    hand: usize,
    aged: u64,
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

    /// Returns the number of stations in the table, including aged ones.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Stations that were found to have aged.
    pub fn aged(&self) -> u64 {
        self.aged
    }

    #[inline]
    fn home(&self, key: StationKey) -> usize {
        let product = u128::from(key ^ self.seed) * 0x9e37_79b9_7f4a_7c15_u128;
        (product as u64 ^ (product >> 64) as u64) as usize & self.last_row
    }

    /// Returns the row of a station, or the empty one for it. `None` if that would be
    /// too far from its place.
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

    /// Notes a station's port.
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
        // An earlier time is as good as now: nothing is unlearnt by it.
        let now = StationPlace::new(port, tick.max(place.tick()));
        self.rows[row].1 = now;
        if self.has_aged(place, tick) {
            self.aged += 1;
            return Learnt::Again;
        }
        match place.port() {
            from if from != port => Learnt::Moved { from },
            _ => Learnt::Known,
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

    /// Assigns a port to a station; returns false if there is no space.
    pub fn give(&mut self, key: StationKey, port: u16) -> bool {
        let known = self.find(key).is_some_and(|row| self.rows[row].0 == key);
        (known || self.len < self.len_max) && self.put(key, StationPlace::given(port))
    }

    /// Removes a static entry; returns false if there is none.
    pub fn take_back(&mut self, key: StationKey) -> bool {
        let row = self.find(key).filter(|row| {
            let (there, place) = self.rows[*row];
            there == key && place.is_static()
        });
        if let Some(row) = row {
            self.remove(row);
        }
        row.is_some()
    }

    /// Removes aged stations from the next rows.
    fn sweep(&mut self, tick: u64, rows: usize) {
        for _ in 0..rows.min(self.rows.len()) {
            let (key, place) = self.rows[self.hand];
            if key != 0 && self.has_aged(place, tick) {
                // Another station may have taken the row: it is next.
                self.remove(self.hand);
                self.aged += 1;
            } else {
                self.hand = (self.hand + 1) & self.last_row;
            }
        }
    }

    /// Forgets learnt stations, of one port or of all.
    pub fn flush(&mut self, port: Option<u16>) {
        let mut row = 0;
        while row < self.rows.len() {
            let (key, place) = self.rows[row];
            let meant = port.is_none_or(|port| port == place.port());
            if key != 0 && meant && !place.is_static() {
                self.remove(row);
            } else {
                row += 1;
            }
        }
    }

    /// Empties a row. Later rows move up, so that no run has a gap.
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
            // A row may move to the gap if its home is not after the gap.
            let from_home = row.wrapping_sub(self.home(key)) & self.last_row;
            let from_gap = row.wrapping_sub(gap) & self.last_row;
            if from_home >= from_gap {
                self.rows[gap] = self.rows[row];
                gap = row;
            }
        }
        self.rows[gap] = (0, StationPlace::default());
    }

    /// Every station that has not aged: key, port, whether it is static.
    pub fn all(&self, tick: u64) -> impl Iterator<Item = (StationKey, u16, bool)> + '_ {
        let there = self.rows.iter().filter(|(key, _)| *key != 0);
        let fresh = there.filter(move |(_, place)| !self.has_aged(*place, tick));
        fresh.map(|(key, place)| (*key, place.port(), place.is_static()))
    }
}
