//! Classification: from a frame's headers to a rule and its target, usually a link.
//!
//! A [`Matcher`] holds conditions on frames, a [`Classifier`] finds the rule of a frame
//! among up to millions of them. Rules whose matchers use the same fields, with
//! prefixes of the same lengths, have one *shape* and are in one hash table (tuple
//! space search: Srinivasan, Suri and Varghese, "Packet Classification using Tuple
//! Space Search", SIGCOMM 1999). A lookup reads one table a shape, best rules first,
//! and ends as soon as no remaining shape can have a better one. So a million pairs of
//! addresses cost the same as ten except for cache misses, and a hundred shapes cost a
//! hundred times one. [`Classifier::cost`] returns the number of shapes.

mod analysis;
mod classifier;
mod datagrams;
mod grammar;
mod key;
mod matcher;
mod shape;
mod table;
mod update;

pub use analysis::{Overlap, Overlaps, Unreachable, UnreachableRules};
pub use classifier::{Classified, Classifier, Order, RuleError, RuleId, SearchCost};
pub use datagrams::DatagramPorts;
pub use grammar::{KEYS, MatcherError};
pub use key::FrameKey;
pub use matcher::{Matcher, PortRange, Prefix, VlanMatch, WrittenFilter};
