//! Which rule a frame falls under: from its headers to a target, usually a
//! link.
//!
//! A [`Matcher`] says what frames must be like, a [`Classifier`] finds the
//! rule of a frame among up to millions of them. Rules whose matchers ask for
//! the same fields, with prefixes of the same lengths, are of one *shape* and
//! lie in one hash table (tuple space search: Srinivasan, Suri and Varghese,
//! "Packet Classification using Tuple Space Search", SIGCOMM 1999). A lookup
//! asks one table a shape, best rules first, and ends as soon as no shape
//! left can have a better one. So a million pairs of addresses cost what ten
//! do but for the cache, and a hundred shapes cost a hundred times one.
//! [`Classifier::cost`] tells how many there are.

mod analysis;
mod classifier;
mod grammar;
mod key;
mod matcher;
mod shape;
mod table;
mod update;

pub use analysis::{Overlap, Overlaps, Unreachable, UnreachableRules};
pub use classifier::{Classified, Classifier, Order, RuleError, RuleId, SearchCost};
pub use grammar::{KEYS, MatcherError};
pub use matcher::{Matcher, PortRange, Prefix, VlanMatch, WrittenFilter};
