//! The order of several attachments at one interface: each takes its frames, and the first
//! whose frame it is has it.
//!
//! The name of a program says its place, so that processes need nothing in common but the
//! interface: `longwire`, `o` (egress) or `i` (ingress), the priority and the serial number,
//! in hexadecimal. The letter is a capital for one that takes all frames.

use crate::bpf::tcx::{Hook, Position, Programs};

/// Start of the names of programs at interfaces.
const PROGRAM: &str = "longwire";
/// The priority of an attachment that takes a part of the traffic, if none is asked for.
const PARTIAL: u8 = 128;
/// The priority of one that takes all.
const WHOLE: u8 = 255;

/// The directions of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Frames that the interface's namespace sends and receives.
    #[default]
    Both,
    /// Sent frames alone.
    Up,
    /// Received frames alone.
    Down,
}

impl Direction {
    pub(super) fn has(self, hook: Hook) -> bool {
        match self {
            Direction::Both => true,
            Direction::Up => hook == Hook::Egress,
            Direction::Down => hook == Hook::Ingress,
        }
    }
}

/// The wanted place of an attachment among others at its interface. Lower priorities are
/// first, then lower serial numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// 0 to 255; `None` for 128 with prefixes or a filter, and 255 without.
    pub priority: Option<u8>,
    /// The number among those of one priority; `None` for the one after all others.
    pub serial: Option<u16>,
}

/// The place of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    priority: u8,
    pub serial: u16,
    pub takes_all: bool,
}

/// Why an attachment has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenByOther;

impl Rank {
    /// Returns the rank of an attachment at an interface with these programs.
    pub fn new(order: Order, takes_all: bool, hooks: &[Programs]) -> Rank {
        let usual = if takes_all { WHOLE } else { PARTIAL };
        let priority = order.priority.unwrap_or(usual);
        let others = hooks.iter().flat_map(|hook| &hook.names);
        let others = others.filter_map(|name| Seat::read(name).ok().flatten());
        let of_priority = others.filter(|rank| rank.priority == priority);
        let last = of_priority.map(|rank| rank.serial).max();
        Rank {
            priority,
            serial: order
                .serial
                .unwrap_or_else(|| last.map_or(0, |last| last.saturating_add(1))),
            takes_all,
        }
    }

    /// Returns the name of its program at a hook.
    pub fn name(self, hook: Hook) -> String {
        let letter = match (hook, self.takes_all) {
            (Hook::Egress, false) => 'o',
            (Hook::Egress, true) => 'O',
            (Hook::Ingress, false) => 'i',
            (Hook::Ingress, true) => 'I',
        };
        format!("{PROGRAM}{letter}{:02x}{:04x}", self.priority, self.serial)
    }

    /// Returns its position among the programs of a hook: the programs of attachments are
    /// before all others, in the order of their ranks.
    ///
    /// # Errors
    /// If both take all frames, so that one would never have any, or if the program of
    /// another version of Longwire is there.
    pub fn position(self, programs: &Programs) -> Result<Position, TakenByOther> {
        let mut position = Position::First;
        for (name, id) in programs.names.iter().zip(&programs.ids) {
            let Some(other) = Seat::read(name)? else {
                continue;
            };
            if other.takes_all && self.takes_all {
                return Err(TakenByOther);
            }
            if (other.priority, other.serial) > (self.priority, self.serial) {
                if !matches!(position, Position::Before(_)) {
                    position = Position::Before(*id);
                }
            } else if !matches!(position, Position::Before(_)) {
                position = Position::After(*id);
            }
        }
        Ok(position)
    }

    /// Returns a number that no other attachment of the interface has, unless two were
    /// attached at the same moment.
    pub fn number(self) -> u32 {
        u32::from(self.priority) << 16 | u32::from(self.serial)
    }
}

/// Reads the names of programs.
struct Seat;

impl Seat {
    /// Returns the rank of an attachment's program; `None` for the program of others.
    fn read(name: &str) -> Result<Option<Rank>, TakenByOther> {
        let Some(rest) = name.strip_prefix(PROGRAM) else {
            return Ok(None);
        };
        let mut letters = rest.chars();
        let takes_all = match letters.next() {
            Some('o' | 'i') => false,
            Some('O' | 'I') => true,
            _ => return Err(TakenByOther),
        };
        let digits = letters.as_str();
        let number = u32::from_str_radix(digits, 16).map_err(|_| TakenByOther)?;
        if digits.len() != 6 {
            return Err(TakenByOther);
        }
        Ok(Some(Rank {
            priority: (number >> 16) as u8,
            serial: number as u16,
            takes_all,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(names: &[&str]) -> Programs {
        Programs {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ids: (10..).take(names.len()).collect(),
            revision: 1,
        }
    }

    fn rank(priority: u8, takes_all: bool, there: &Programs) -> Rank {
        let order = Order {
            priority: Some(priority),
            serial: None,
        };
        Rank::new(order, takes_all, std::slice::from_ref(there))
    }

    #[test]
    fn lower_priorities_are_first_then_older_ones() {
        let there = programs(&["longwireo100000", "longwireo800003", "longwireOff0000", "x"]);
        let position = |priority| rank(priority, false, &there).position(&there);
        assert_eq!(position(0), Ok(Position::Before(10)));
        assert_eq!(position(0x10), Ok(Position::Before(11)));
        assert_eq!(position(0x80), Ok(Position::Before(12)));
        assert_eq!(position(0xff), Ok(Position::After(12)));
        assert_eq!(
            rank(0x80, false, &there).name(Hook::Egress),
            "longwireo800004"
        );
        assert_eq!(
            rank(1, false, &programs(&["x"])).position(&programs(&["x"])),
            Ok(Position::First)
        );
    }

    #[test]
    fn a_rank_that_was_kept_has_its_place_again() {
        let there = programs(&["longwireo800003"]);
        let order = Order {
            priority: None,
            serial: Some(2),
        };
        let rank = Rank::new(order, false, std::slice::from_ref(&there));
        assert_eq!(rank.position(&there), Ok(Position::Before(10)));
    }

    #[test]
    fn only_one_takes_all() {
        let there = programs(&["longwireOff0000"]);
        assert_eq!(rank(3, true, &there).position(&there), Err(TakenByOther));
        assert!(rank(3, false, &there).position(&there).is_ok());
        let old = programs(&["longwire_out"]);
        assert_eq!(rank(3, false, &old).position(&old), Err(TakenByOther));
    }
}
