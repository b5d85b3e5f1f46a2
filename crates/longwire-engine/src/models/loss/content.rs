//! Loss by frame contents.

use longwire_packet::filter::Filter;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::models::prelude::*;

pub const ENTRY: Entry<PlacedLoss> = Entry::new(
    "content",
    "drops frames that match a filter of tcpdump or Wireshark, such as udp port 53; `longwire \
     replay --help` shows the syntax",
    &[
        Param::new(
            "match",
            Unit::Text("udp port 53 and not (src net 10.0.0.0/8 or len > 100)"),
        )
        .help("filter, evaluated on the bytes that the port provides; tests of missing bytes fail"),
        Param::with_default("probability", Unit::Probability, "100%")
            .help("probability that a matching frame is lost"),
        PLACE,
        ECN,
    ],
    |arguments| {
        let filter = Filter::parse(arguments.required_text("match")?);
        let filter = filter.map_err(|error| arguments.invalid(format!("match: {error}")))?;
        let content = ContentLoss {
            filter: Box::new(filter),
            probability: arguments.required("probability")?,
        };
        placed(arguments, content)
    },
);

#[derive(Clone, Debug)]
struct ContentLoss {
    filter: Box<Filter>,
    probability: Probability,
}

impl LossModel for ContentLoss {
    fn reads_bytes(&self) -> bool {
        true
    }

    /// Draws only for matching frames; matching is deterministic.
    fn judge(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        let met = self.filter.matches(frame.bytes, frame.frame.len);
        let lost = met && stream.chance(self.probability);
        lost.then_some(DropReason::Content)
    }
}
