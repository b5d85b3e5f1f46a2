//! Links with any models and any traffic: the engine's property test with libFuzzer's inputs.

#[path = "../../crates/longwire-engine/tests/it/common/composition.rs"]
mod any_link;
#[path = "../../crates/longwire-engine/tests/it/common/any_spec.rs"]
mod any_spec;
#[path = "../../crates/longwire-engine/tests/it/common/fates.rs"]
mod fates;

pub use any_link::check;
