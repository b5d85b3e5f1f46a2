//! Links of any models with any traffic: the engine's own property test, with
//! libFuzzer choosing.

#[path = "../../crates/longwire-engine/tests/common/composition.rs"]
mod any_link;

pub use any_link::check;
