//! Sizes of generated frames.
//!
//! A frame's size counts the bytes from the destination MAC address to the end of the
//! payload, as at a port. Testers count the frame check sequence too; with `fcs=with`
//! sizes include it, and the frames are 4 bytes shorter.

use std::fmt;

use longwire_engine::models::Kind;
use longwire_engine::spec::{Arguments, Param, SpecError, Unit};
use longwire_units::random::Stream;

pub mod fixed;
pub mod imix;
pub mod list;
pub mod mix;
pub mod uniform;
mod weighted;

/// A distribution of frame sizes.
pub trait SizeModel: fmt::Debug + Send + Sync {
    /// Returns the size of frame `number`, counted from 0, without frame check
    /// sequence.
    fn draw(&self, number: u64, stream: &mut Stream) -> u32;

    /// Passes every size with its share of all frames to `take`; the shares add up to
    /// one.
    fn each(&self, take: &mut dyn FnMut(u32, f64));

    /// Returns the size if there is only one.
    fn fixed(&self) -> Option<u32> {
        None
    }

    /// Writes the model as its user would write it.
    ///
    /// # Errors
    /// An error of the formatter `f`; a model adds none.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl dyn SizeModel {
    /// Returns the least and the greatest size.
    pub fn range(&self) -> (u32, u32) {
        let (mut least, mut greatest) = (u32::MAX, 0);
        self.each(&mut |size, _| {
            least = least.min(size);
            greatest = greatest.max(size);
        });
        (least, greatest)
    }

    /// Returns the mean size.
    pub fn mean(&self) -> f64 {
        let mut mean = 0.0;
        self.each(&mut |size, share| mean += f64::from(size) * share);
        mean
    }
}

impl fmt::Display for dyn SizeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

/// The frame check sequence (IEEE 802.3, 3.2.9).
pub const FCS_LEN: u32 = 4;

/// Frames have at least an Ethernet header and at most the maximum of a port.
const SIZE_MIN: u64 = 14;
const SIZE_MAX: u64 = 65_535;

/// The parameter for the frame check sequence.
const FCS: Param = Param::with_default("fcs", Unit::Choice(&["without", "with"]), "without")
    .help("whether sizes count the 4 bytes of frame check sequence, as testers and RFC 2544 do");

/// Whether sizes count the frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fcs {
    counted: bool,
}

impl Fcs {
    fn read(arguments: &Arguments<'_>) -> Result<Fcs, SpecError> {
        let counted = arguments.choice(FCS.name)? == 1;
        Ok(Fcs { counted })
    }

    /// Converts a written size to that of a frame.
    fn frame(self, size: u64) -> Result<u32, String> {
        let excess = u64::from(self.excess());
        match size {
            _ if size < SIZE_MIN + excess || size > SIZE_MAX + excess => Err(format!(
                "a size of {size} bytes is outside {}..{}",
                SIZE_MIN + excess,
                SIZE_MAX + excess
            )),
            size => Ok(size as u32 - self.excess()),
        }
    }

    /// Returns the bytes of a written size beyond the frame.
    fn excess(self) -> u32 {
        if self.counted { FCS_LEN } else { 0 }
    }
}

impl fmt::Display for Fcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.counted { "with" } else { "without" })
    }
}

/// Size models.
pub static KIND: Kind<Box<dyn SizeModel>> = Kind {
    name: "sizes",
    example: "1514",
    entries: &[
        fixed::ENTRY,
        imix::ENTRY,
        mix::ENTRY,
        uniform::ENTRY,
        list::ENTRY,
    ],
};
