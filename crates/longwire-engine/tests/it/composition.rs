//! Arbitrary combinations of models: no panics, no unrequested reordering, every frame is accounted
//! for, and late polling changes nothing.

use crate::common::composition;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_models_go_together(data in proptest::collection::vec(any::<u8>(), 0..900)) {
        composition::check(&data);
    }
}
