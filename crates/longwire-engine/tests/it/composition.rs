//! Any model with any other: nothing panics, nothing is reordered unasked,
//! every frame is accounted for, and polling late changes nothing.

use crate::common::composition;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_models_go_together(data in proptest::collection::vec(any::<u8>(), 0..900)) {
        composition::check(&data);
    }
}
