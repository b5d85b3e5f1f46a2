//! The order of attachments at an interface: a frame goes to the first attachment that selects it.
//!
//! A program's name encodes its rank, so that processes need to share only the interface:
//! `longwire`, then `o` (egress) or `i` (ingress), then priority and serial number in hexadecimal.
//! The letter is upper case for attachments that take all frames.

use std::cmp::Ordering;

use crate::bpf::tcx::{Hook, Position, Programs};

/// Name prefix of programs at interfaces.
const PROGRAM: &str = "longwire";
/// Default priority of an attachment that takes some of the frames.
const PARTIAL: u8 = 128;
/// Default priority of an attachment that takes all frames.
const WHOLE: u8 = 255;

/// The directions that an attachment takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Frames sent and received by the interface's namespace.
    #[default]
    Both,
    /// Sent frames.
    Up,
    /// Received frames.
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

/// An attachment's rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    priority: u8,
    pub serial: u16,
    pub takes_all: bool,
}

/// The reason why an attachment has no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// Both attachments take all frames, or the other one belongs to a different version of
    /// Longwire.
    Taken,
    /// Another attachment has this priority and serial number.
    SerialTaken,
}

impl Rank {
    /// Returns an attachment's rank among these programs. The default `priority` is 128 for an
    /// attachment that takes some frames, and 255 for one that takes all. Without a `serial`, the
    /// rank is the last of its priority.
    pub fn new(
        priority: Option<u8>,
        serial: Option<u16>,
        takes_all: bool,
        hooks: &[Programs],
    ) -> Rank {
        let usual = if takes_all { WHOLE } else { PARTIAL };
        let rank = Rank {
            priority: priority.unwrap_or(usual),
            serial: 0,
            takes_all,
        };
        match serial {
            Some(serial) => Rank { serial, ..rank },
            None => rank.after_others(hooks),
        }
    }

    /// Returns the rank after all existing attachments of the same priority.
    pub fn after_others(self, hooks: &[Programs]) -> Rank {
        let others = hooks.iter().flat_map(|hook| &hook.names);
        let others = others.filter_map(|name| Rank::of_program(name).ok().flatten());
        let of_priority = others.filter(|rank| rank.priority == self.priority);
        let last = of_priority.map(|rank| rank.serial).max();
        Rank {
            serial: last.map_or(0, |last| last.saturating_add(1)),
            ..self
        }
    }

    /// Returns the name of the attachment's program at a hook.
    pub fn name(self, hook: Hook) -> String {
        let letter = match (hook, self.takes_all) {
            (Hook::Egress, false) => 'o',
            (Hook::Egress, true) => 'O',
            (Hook::Ingress, false) => 'i',
            (Hook::Ingress, true) => 'I',
        };
        format!("{PROGRAM}{letter}{:02x}{:04x}", self.priority, self.serial)
    }

    /// Parses the rank from a program's name; `None` for unrelated programs.
    fn of_program(name: &str) -> Result<Option<Rank>, NoPlace> {
        let Some(rest) = name.strip_prefix(PROGRAM) else {
            return Ok(None);
        };
        let mut letters = rest.chars();
        let takes_all = match letters.next() {
            Some('o' | 'i') => false,
            Some('O' | 'I') => true,
            _ => return Err(NoPlace::Taken),
        };
        let digits = letters.as_str();
        let number = u32::from_str_radix(digits, 16).map_err(|_| NoPlace::Taken)?;
        if digits.len() != 6 {
            return Err(NoPlace::Taken);
        }
        Ok(Some(Rank {
            priority: (number >> 16) as u8,
            serial: number as u16,
            takes_all,
        }))
    }

    /// Returns the attachment's position among a hook's programs: attachments precede other
    /// programs, in order of rank.
    ///
    /// # Errors
    /// Both take all frames, another attachment has this rank, or a program belongs to a different
    /// version of Longwire.
    pub fn position(self, programs: &Programs) -> Result<Position, NoPlace> {
        let mut position = Position::First;
        for (name, id) in programs.names.iter().zip(&programs.ids) {
            let Some(other) = Rank::of_program(name)? else {
                continue;
            };
            if other.takes_all && self.takes_all {
                return Err(NoPlace::Taken);
            }
            let order = (other.priority, other.serial).cmp(&(self.priority, self.serial));
            match (position, order) {
                (_, Ordering::Equal) => return Err(NoPlace::SerialTaken),
                (Position::Before(_), _) => {}
                (_, Ordering::Greater) => position = Position::Before(*id),
                (_, Ordering::Less) => position = Position::After(*id),
            }
        }
        Ok(position)
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
        Rank::new(Some(priority), None, takes_all, std::slice::from_ref(there))
    }

    #[test]
    fn lower_priorities_are_first_then_older_ones() {
        let there = programs(&["longwireo100000", "longwireo800003", "longwireOff0000", "x"]);
        let position = |priority| rank(priority, false, &there).position(&there);
        assert_eq!(position(0), Ok(Position::Before(10)));
        assert_eq!(position(0x10), Ok(Position::Before(11)));
        assert_eq!(position(0x80), Ok(Position::Before(12)));
        assert_eq!(position(0xff), Ok(Position::After(12)));
        let name = rank(0x80, false, &there).name(Hook::Egress);
        assert_eq!(name, "longwireo800004");
        let others = programs(&["x"]);
        let first = rank(1, false, &others).position(&others);
        assert_eq!(first, Ok(Position::First));
    }

    #[test]
    fn a_rank_that_was_kept_has_its_place_again_unless_another_has_taken_it() {
        let there = programs(&["longwireo800003"]);
        for hooks in [&[][..], std::slice::from_ref(&there)] {
            let kept = |serial| Rank::new(None, Some(serial), false, hooks);
            assert_eq!(kept(2).position(&there), Ok(Position::Before(10)));
            assert_eq!(kept(3).position(&there), Err(NoPlace::SerialTaken));
        }
        let kept = Rank::new(None, Some(3), false, &[]);
        let next = kept.after_others(std::slice::from_ref(&there));
        assert_eq!(next.position(&there), Ok(Position::After(10)));
    }

    #[test]
    fn only_one_takes_all() {
        let there = programs(&["longwireOff0000"]);
        assert_eq!(rank(3, true, &there).position(&there), Err(NoPlace::Taken));
        assert!(rank(3, false, &there).position(&there).is_ok());
        let old = programs(&["longwire_out"]);
        assert_eq!(rank(3, false, &old).position(&old), Err(NoPlace::Taken));
    }
}
