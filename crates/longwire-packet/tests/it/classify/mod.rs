//! The classifier against rules asked one by one, by code that shares
//! nothing with it.

mod analysis;
mod grammar;
mod lookup;
mod oracle;
mod universe;
