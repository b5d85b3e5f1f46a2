//! Classification: maps a frame's headers to a rule and its target, usually a link.
//!
//! A [`Matcher`] holds a rule's conditions; a [`Classifier`] finds a frame's rule among up to
//! millions. Rules with the same fields and prefix lengths have the same *shape* and share a hash
//! table (tuple space search: Srinivasan, Suri and Varghese, "Packet Classification using Tuple
//! Space Search", SIGCOMM 1999). A lookup probes one table per shape, shapes with the best rules
//! first, until no remaining shape can contain a better rule. Thus, a million address pairs cost
//! the same as ten, except for cache misses, but a hundred shapes cost a hundred times as much as
//! one. [`Classifier::cost`] returns the number of shapes.

mod analysis;
mod classifier;
mod datagrams;
mod grammar;
mod key;
mod matcher;
mod shape;
mod table;

pub use analysis::{Overlap, Overlaps, Unreachable, UnreachableRules};
pub use classifier::{Classified, Classifier, Order, RuleError, RuleId, SearchCost};
pub use datagrams::DatagramPorts;
pub use grammar::{KEYS, MatcherError};
pub use key::FrameKey;
pub use matcher::{Matcher, PortRange, Prefix, VlanMatch, WrittenFilter};
