//! Tests of every registered model of traffic: a new line in a kind's table is included
//! automatically.

use std::collections::BTreeSet;

use longwire_testbed::support::assert_models_conform;
use longwire_traffic::{ARRIVALS, SIZES, traffic_models};

#[test]
fn every_model_conforms() {
    let mut seen = BTreeSet::new();
    assert_models_conform(&ARRIVALS, &mut seen);
    assert_models_conform(&SIZES, &mut seen);
    // A kind left out above would be missing.
    let all = traffic_models().map(|(kind, info)| (kind, info.name));
    assert_eq!(all.collect::<BTreeSet<_>>(), seen);
}
