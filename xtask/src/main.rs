//! Continuous integration and housekeeping for Longwire.
fn main() {}
