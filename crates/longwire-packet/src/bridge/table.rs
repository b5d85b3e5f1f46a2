//! Stations and their ports.
//!
//! Open addressing over all rows that there will ever be: no memory is taken
//! while frames pass. A row is 16 bytes, and half of the rows stay empty, so
//! a lookup is one cache line. The hash is keyed, since whoever sends frames
//! chooses the keys; and should the key be known, no lookup goes further than
//! [`PROBES_MAX`] rows, for no station is put further from its place.

use alloc::vec;
use alloc::vec::Vec;

use longwire_units::Nanos;

/// Rows that a lookup goes through at most. With half of the rows empty,
/// runs of even half that length do not come about by chance.
const PROBES_MAX: usize = 128;

/// Rows looked at for stations that have aged, when there is a new one: with
/// room, and without.
const SWEEP: usize = 4;
const SWEEP_FULL: usize = 64;

/// Time is counted in ticks of 2^20 ns here: so a station that is heard of
/// a million times a second is written to memory only once a tick.
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

/// Where a station is and when it was last heard of, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place(u64);

const STATIC: u64 = 1 << 47;

impl Place {
    fn new(port: u16, tick: u64) -> Place {
        Place(u64::from(port) << 48 | tick)
    }

    fn given(port: u16) -> Place {
        Place(u64::from(port) << 48 | STATIC)
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

/// What was learnt from a frame's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    /// Nothing new.
    Known,
    /// A station that was not known.
    New,
    /// A station that had aged, and is known again.
    Again,
    /// A station that was at another port.
    Moved { from: u16 },
    /// A station of which a static entry says that it is at another port.
    Static,
    /// A station for which there is no room.
    Full,
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Stations {
    rows: Vec<(StationKey, Place)>,
    /// A power of two, less one.
    last_row: usize,
    len: usize,
    len_max: usize,
    /// Ticks; at the largest value stations do not age.
    ageing: u64,
    seed: u64,
    /// Where the search for aged stations goes on.
    hand: usize,
    aged: u64,
}

impl Stations {
    pub fn new(len_max: u32, ageing: Nanos, seed: u64) -> Stations {
        let rows = (len_max as usize * 2).next_power_of_two();
        Stations {
            rows: vec![(0, Place::default()); rows],
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

    /// Stations in the table, those included that have aged and were not
    /// needed to make room.
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

    /// The row of a station, or the empty one where it would be. `None` where
    /// it would be too far from home.
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
    fn has_aged(&self, place: Place, tick: u64) -> bool {
        !place.is_static() && tick.saturating_sub(place.tick()) > self.ageing
    }

    /// Where a station is.
    #[inline]
    pub fn get(&self, key: StationKey, tick: u64) -> Option<u16> {
        let (there, place) = self.rows[self.find(key)?];
        (there != 0 && !self.has_aged(place, tick)).then(|| place.port())
    }

    /// Notes where a station was heard of.
    #[inline]
    pub fn learn(&mut self, key: StationKey, port: u16, tick: u64) -> Learnt {
        let Some(row) = self.find(key) else {
            return Learnt::Full;
        };
        let (there, place) = self.rows[row];
        if there == 0 {
            return self.learn_new(key, port, tick);
        }
        let now = Place::new(port, tick);
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
        let now = Place::new(port, tick.max(place.tick()));
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
        match self.put(key, Place::new(port, tick)) {
            true => Learnt::New,
            false => Learnt::Full,
        }
    }

    fn put(&mut self, key: StationKey, place: Place) -> bool {
        let Some(row) = self.find(key) else {
            return false;
        };
        self.len += usize::from(self.rows[row].0 == 0);
        self.rows[row] = (key, place);
        true
    }

    /// Gives a station its port; false where there is no room.
    pub fn give(&mut self, key: StationKey, port: u16) -> bool {
        let known = self.find(key).is_some_and(|row| self.rows[row].0 == key);
        (known || self.len < self.len_max) && self.put(key, Place::given(port))
    }

    /// Takes a static entry back; false where there is none.
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

    /// Forgets what was learnt, of one port or of all.
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

    /// Empties a row. Those behind it move up, so that no run has a gap.
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
            // A row may move to the gap if its home is not behind it.
            let from_home = row.wrapping_sub(self.home(key)) & self.last_row;
            let from_gap = row.wrapping_sub(gap) & self.last_row;
            if from_home >= from_gap {
                self.rows[gap] = self.rows[row];
                gap = row;
            }
        }
        self.rows[gap] = (0, Place::default());
    }

    /// Every station that has not aged: key, port, whether it is static.
    pub fn all(&self, tick: u64) -> impl Iterator<Item = (StationKey, u16, bool)> + '_ {
        let there = self.rows.iter().filter(|(key, _)| *key != 0);
        let fresh = there.filter(move |(_, place)| !self.has_aged(*place, tick));
        fresh.map(|(key, place)| (*key, place.port(), place.is_static()))
    }
}
