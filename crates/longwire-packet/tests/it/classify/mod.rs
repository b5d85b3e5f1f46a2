//! The classifier against linear search over rules, by independent code.

mod analysis;
mod grammar;
mod lookup;
mod oracle;
mod universe;
