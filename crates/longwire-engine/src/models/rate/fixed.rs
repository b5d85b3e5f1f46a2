//! A fixed rate, or none.

use super::Rate;
use crate::models::Entry;
use crate::spec::{ModelInfo, Param, Unit};

/// Registry entry of `fixed`.
pub const ENTRY: Entry<Rate> = Entry {
    info: &ModelInfo {
        name: "fixed",
        summary: "departure = max(departure of the frame before, arrival) + bits / rate, exactly: \
                  the remainder is carried (Rizzo and Lettieri's TLEM, 2016)",
        params: &[Param::new("rate", Unit::Rate).help("bits a second, framing included")],
    },
    build: |arguments| Ok(Rate::Fixed(arguments.required("rate")?)),
};

/// Registry entry of `unlimited`.
pub const UNLIMITED_ENTRY: Entry<Rate> = Entry {
    info: &ModelInfo {
        name: "unlimited",
        summary: "infinitely fast: a frame departs as it arrives and never waits",
        params: &[],
    },
    build: |_| Ok(Rate::Unlimited),
};
