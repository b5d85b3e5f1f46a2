//! A fixed rate, or none.

use super::Rate;
use crate::models::Entry;
use crate::spec::{ModelInfo, Param, Unit};

/// Registry entry of `fixed`.
pub const ENTRY: Entry<Rate> = Entry {
    info: &ModelInfo {
        name: "fixed",
        summary: "departure = max(departure of the previous frame, arrival) + bits / rate, exact: \
                  the remainder is carried (Rizzo and Lettieri's TLEM, 2016)",
        params: &[Param::new("rate", Unit::Rate).help("bit rate, including framing")],
    },
    build: |arguments| Ok(Rate::Fixed(arguments.required("rate")?)),
};

/// Registry entry of `unlimited`.
pub const UNLIMITED_ENTRY: Entry<Rate> = Entry {
    info: &ModelInfo {
        name: "unlimited",
        summary: "infinitely fast: a frame departs when it arrives",
        params: &[],
    },
    build: |_| Ok(Rate::Unlimited),
};
