//! The classifier, compared with independent code: a linear search over rules.

mod analysis;
mod grammar;
mod lookup;
mod oracle;
mod universe;
