//! Conformance tests of all registered traffic models; new registry entries are included
//! automatically.

use std::collections::BTreeSet;

use longwire_testbed::support::assert_models_conform;
use longwire_traffic::{ARRIVALS, SIZES, traffic_models};

#[test]
fn every_model_conforms() {
    let mut seen = BTreeSet::new();
    assert_models_conform(&ARRIVALS, &mut seen);
    assert_models_conform(&SIZES, &mut seen);
    // Detect a kind that is missing above.
    let all = traffic_models().map(|(kind, info)| (kind, info.name));
    assert_eq!(all.collect::<BTreeSet<_>>(), seen);
}
