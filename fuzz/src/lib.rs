//! Checks of the fuzz targets. Each is a function from arbitrary bytes that
//! panics on an error, so that libFuzzer, the test over the seeds
//! (`crates/longwire/tests/it/fuzz_seeds.rs`) and a debugger can all call it.

pub mod alter;
pub mod capture;
pub mod composition;
pub mod control;
pub mod feed;
pub mod frame;
pub mod options;
pub mod topology;
pub mod trace;
