//! See `longwire_fuzz::control`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| longwire_fuzz::control::check(data));

/// Without libFuzzer there is nothing to run; the test `fuzz_seeds` runs the check.
#[cfg(not(fuzzing))]
fn main() {}
