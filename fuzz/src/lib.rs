//! What the fuzz targets check. Each is a function from arbitrary bytes that
//! panics when something is wrong, so that libFuzzer, the test over the seeds
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
