//! The tested links and their traffic.

use std::collections::BTreeSet;

use longwire_engine::{LinkConfig, LinkSpec, Nanos};

use crate::composed::any_spec::{Choices, Examples, any_spec};
use crate::composed::traffic::{Buffer, buffers, draws};

/// A link and its traffic.
#[derive(Debug)]
pub struct Case {
    pub spec: LinkSpec,
    pub seed: u64,
    /// Seed for the traffic.
    pub traffic: u64,
}

impl Case {
    /// Returns case `number`.
    pub fn random(number: u64) -> Case {
        let mut draws = draws(number);
        let bytes: Vec<u8> = (0..600).map(|_| draws.below(256) as u8).collect();
        Case {
            spec: any_spec(&mut Choices(&bytes)),
            seed: number,
            traffic: number,
        }
    }

    /// Returns the link, with schedules relative to `epoch`.
    pub fn config(&self, epoch: Nanos) -> LinkConfig {
        let config = self.spec.build(&Examples);
        LinkConfig {
            epoch,
            ..config.unwrap_or_else(|error| panic!("{}: {error}", self.spec))
        }
    }

    /// Returns the traffic.
    pub fn buffers(&self) -> Vec<Buffer> {
        buffers(&mut draws(!self.traffic))
    }

    /// Returns the models by kind and name, and their relevant combinations.
    fn features(&self) -> Vec<String> {
        let name = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        let given = self.spec.given().into_iter();
        let mut features: Vec<String> = given
            .map(|(kind, text)| format!("{kind} {}", name(&text)))
            .collect();
        if features.iter().any(|feature| feature == "mtu fragment") {
            let queue = self.spec.texts("queue");
            features.push(format!(
                "fragments {:?}",
                queue.first().map(|text| name(text))
            ));
        }
        features
    }
}

/// The features that cases cover.
#[derive(Debug, Default)]
pub struct Seen(BTreeSet<String>);

impl Seen {
    /// Adds a case, and returns whether it has a new feature.
    pub fn note(&mut self, case: &Case) -> bool {
        let before = self.0.len();
        self.0.extend(case.features());
        self.0.len() > before
    }

    /// Asserts that every registered link model was tested.
    pub fn assert_every_model(&self) {
        for (kind, info) in longwire_engine::all_models() {
            let feature = format!("{kind} {}", info.name);
            assert!(self.0.contains(&feature), "no {feature}");
        }
    }
}

/// Returns a subset of the cases that covers every model.
pub fn covering() -> Vec<Case> {
    let mut seen = Seen::default();
    let cases = (0..4_000).map(|number| Case::random(1 << 32 | number));
    let cases = cases.filter(|case| seen.note(case)).collect();
    seen.assert_every_model();
    cases
}
