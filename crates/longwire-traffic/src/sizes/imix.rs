//! Simple IMIX.

use longwire_engine::models::Entry;
use longwire_engine::spec::ModelInfo;

use super::weighted::{ORDER, Weighted};
use super::{FCS, SizeModel};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry {
    info: INFO,
    build: |arguments| Weighted::build("imix:", SIMPLE.to_vec(), arguments),
};

const INFO: ModelInfo = ModelInfo {
    name: "imix",
    summary: "simple Internet mix: IP packets of 40, 576 and 1500 bytes in the ratio 7:4:1, or \
              Ethernet frames of 64, 594 and 1518 bytes with FCS (predates RFC 6985, which \
              standardises the notation)",
    params: &[
        ORDER,
        FCS.default("with").help(
            "with: frames of 60, 590 and 1514 bytes, to which the device adds the FCS; without: frames \
             of 64, 594 and 1518 bytes, to which it adds the FCS",
        ),
    ],
};

/// Sizes with FCS, and weights. The smallest packet is padded to the minimum size of an Ethernet
/// frame.
const SIMPLE: [(u64, u64); 3] = [(64, 7), (594, 4), (1_518, 1)];
