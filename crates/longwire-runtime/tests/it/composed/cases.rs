//! The links that are tested, and their traffic.

use std::collections::BTreeSet;

use longwire_engine::{LinkConfig, LinkOptions, Nanos, models};

use crate::composed::any_options::{Choices, Examples, options};
use crate::composed::traffic::{Buffer, Draws, buffers};

/// A link and its traffic.
#[derive(Debug)]
pub struct Case {
    pub options: LinkOptions,
    pub seed: u64,
    /// The number of the traffic.
    pub traffic: u64,
}

impl Case {
    /// Returns the case of this number.
    pub fn random(number: u64) -> Case {
        let mut draws = Draws::new(number);
        let bytes: Vec<u8> = (0..600).map(|_| draws.below(256) as u8).collect();
        Case {
            options: options(&mut Choices(&bytes)),
            seed: number,
            traffic: number,
        }
    }

    /// Returns the link, whose schedules count from `epoch`.
    pub fn config(&self, epoch: Nanos) -> LinkConfig {
        let config = self.options.parse_with(&Examples);
        LinkConfig {
            epoch,
            ..config.unwrap_or_else(|error| panic!("{:?}: {error}", self.options))
        }
    }

    /// Returns the traffic.
    pub fn buffers(&self) -> Vec<Buffer> {
        buffers(&mut Draws::new(!self.traffic))
    }

    /// Returns the models by kind and name, and relevant combinations of them.
    fn features(&self) -> Vec<String> {
        let name = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        let options = &self.options;
        let given = [
            ("rate", &options.rate),
            ("framing", &options.framing),
            ("queue", &options.queue),
            ("corrupt", &options.corrupt),
            ("duplicate", &options.duplicate),
            ("delay", &options.delay),
            ("reorder", &options.reorder),
            ("order", &options.order),
            ("mtu", &options.mtu),
        ];
        let given = given
            .iter()
            .filter_map(|(kind, text)| Some(format!("{kind} {}", name(text.as_deref()?))));
        let losses = options
            .loss
            .iter()
            .map(|text| format!("loss {}", name(text)));
        let rewrites = options.rewrite.iter();
        let rewrites = rewrites.map(|text| format!("rewrite {}", name(text)));
        let mut features: Vec<String> = given.chain(losses).chain(rewrites).collect();
        if options
            .mtu
            .as_deref()
            .is_some_and(|mtu| mtu.starts_with("fragment"))
        {
            let queue = options.queue.as_deref().map(name);
            features.push(format!("fragments {queue:?}"));
        }
        features
    }
}

/// The features of cases.
#[derive(Debug, Default)]
pub struct Seen(BTreeSet<String>);

impl Seen {
    /// Adds a case; returns whether it has a feature that is new.
    pub fn note(&mut self, case: &Case) -> bool {
        let before = self.0.len();
        self.0.extend(case.features());
        self.0.len() > before
    }

    /// Asserts that every registered model of a link was tried.
    pub fn assert_every_model(&self) {
        for (kind, info) in models::all() {
            let feature = format!("{kind} {}", info.name);
            let of_links = !["arrivals", "sizes"].contains(&kind);
            assert!(!of_links || self.0.contains(&feature), "no {feature}");
        }
    }
}

/// Returns some cases that cover every model.
pub fn covering() -> Vec<Case> {
    let mut seen = Seen::default();
    let cases = (0..4_000).map(|number| Case::random(1 << 32 | number));
    let cases = cases.filter(|case| seen.note(case)).collect();
    seen.assert_every_model();
    cases
}
