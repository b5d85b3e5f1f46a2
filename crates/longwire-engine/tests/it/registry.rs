//! Conformance tests for every registered model.

use std::collections::BTreeSet;

use longwire_engine::models;
use longwire_engine::{LinkSpec, NoLoader, PARTS};
use longwire_testbed::support::assert_models_conform;

#[test]
fn every_model_conforms() {
    let mut seen = BTreeSet::new();
    assert_models_conform(&models::RATE, &mut seen);
    assert_models_conform(&models::FRAMING, &mut seen);
    assert_models_conform(&models::QUEUE, &mut seen);
    assert_models_conform(&models::LOSS, &mut seen);
    assert_models_conform(&models::CORRUPTION, &mut seen);
    assert_models_conform(&models::DUPLICATION, &mut seen);
    assert_models_conform(&models::DELAY, &mut seen);
    assert_models_conform(&models::REORDERING, &mut seen);
    assert_models_conform(&models::ORDER, &mut seen);
    assert_models_conform(&models::MTU, &mut seen);
    assert_models_conform(&models::ROUTER, &mut seen);
    assert_models_conform(&models::REWRITE, &mut seen);
    // Detects kinds missing above.
    let all = longwire_engine::all_models()
        .into_iter()
        .map(|(kind, info)| (kind, info.name));
    assert_eq!(all.collect::<BTreeSet<_>>(), seen);
}

#[test]
fn every_part_has_a_text_for_its_default() {
    for part in &PARTS {
        let text = part.default_text();
        let mut spec = LinkSpec::new();
        part.add(&mut spec, &text, &NoLoader)
            .unwrap_or_else(|error| panic!("{}={text}: {error}", part.name));
        let built = spec.build(&NoLoader).expect("no plugins").describe();
        let default = LinkSpec::new().build(&NoLoader).expect("no plugins");
        assert_eq!(built, default.describe(), "{}={text}", part.name);
        part.clear(&mut spec);
        assert_eq!(spec, LinkSpec::new(), "{}", part.name);
    }
}
