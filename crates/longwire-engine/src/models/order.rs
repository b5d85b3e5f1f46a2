//! Order policy: whether jitter may reorder frames.

use crate::models::prelude::*;

/// Treatment of a frame whose release would precede that of an earlier frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderPolicy {
    /// Postpone its release to that of the earlier frame. Postponed releases are counted, because
    /// they bunch frames into bursts.
    #[default]
    InOrder,
    /// Let the frame overtake.
    Reorder,
}

impl fmt::Display for OrderPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderPolicy::InOrder => "in-order",
            OrderPolicy::Reorder => "reorder",
        })
    }
}

/// Order policies.
pub static KIND: Kind<OrderPolicy> = Kind {
    name: "order",
    example: "in-order",
    entries: &[
        Entry::new(
            "in-order",
            "jitter does not reorder frames; a release earlier than the previous one is raised to \
             it",
            &[],
            |_| Ok(OrderPolicy::InOrder),
        ),
        Entry::new("reorder", "jitter may reorder frames", &[], |_| {
            Ok(OrderPolicy::Reorder)
        }),
    ],
};
