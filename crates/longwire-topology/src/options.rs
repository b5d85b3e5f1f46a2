//! Options of links: read, checked once each, and kept once each.

use std::collections::HashMap;
use std::sync::Arc;

use longwire_engine::LinkOptions;
use longwire_engine::presets::{self, Duplex, PresetError};
use toml::de::DeTable;

use super::files::{Files, StartFiles};
use super::problem::{Complaints, Place};
use super::tree;
use longwire_runtime::suggest;

/// Options that have been checked and kept. A hundred thousand links with the same
/// options share them.
#[derive(Debug)]
pub(super) struct OptionStore {
    /// Options whose text was read without an error, and what is doubtful in
    /// them.
    good: HashMap<(&'static str, String), Vec<String>>,
    kept: HashMap<String, Arc<LinkOptions>>,
    pub files: Arc<dyn Files>,
}

impl Default for OptionStore {
    fn default() -> OptionStore {
        OptionStore::with(Arc::new(StartFiles::default()))
    }
}

impl OptionStore {
    /// A store whose options name these files.
    pub fn with(files: Arc<dyn Files>) -> OptionStore {
        OptionStore {
            good: HashMap::new(),
            kept: HashMap::new(),
            files,
        }
    }

    /// Checks a value of an option, and returns what is doubtful in it.
    ///
    /// # Errors
    /// Why the option does not take it.
    fn check(&mut self, option: &'static str, text: &str) -> Result<Vec<String>, String> {
        let key = (option, text.to_owned());
        if let Some(doubts) = self.good.get(&key) {
            return Ok(doubts.clone());
        }
        let mut alone = LinkOptions::default();
        alone.set(option, text.to_owned());
        match alone.parse_with(&*self.files) {
            Ok(config) => {
                let doubts = config.doubts.into_iter().map(|doubt| doubt.message);
                let doubts: Vec<String> = doubts.collect();
                self.good.insert(key, doubts.clone());
                Ok(doubts)
            }
            // The option's name is in the frame of the message.
            Err(error) if self.files.may_quote() => Err(suggest::spec_error(&error.source)),
            Err(error) => Err(suggest::spec_error_without_content(&error.source)),
        }
    }

    /// Adds an option to others if it is right.
    pub fn set(
        &mut self,
        options: &mut LinkOptions,
        (option, text): (&'static str, String),
        place: impl Into<Place>,
        at: &str,
        complaints: &mut Complaints,
    ) {
        match self.check(option, &text) {
            Ok(doubts) => {
                let place = place.into();
                for doubt in doubts {
                    complaints.warn_once(place.clone(), format!("{at}.{option}"), doubt);
                }
                options.set(option, text);
            }
            Err(reason) => {
                let remedy = format!("`longwire models {option}` shows what there is");
                complaints.refuse(place, format!("{at}.{option}"), reason, remedy);
            }
        }
    }

    /// The options in a table, for one direction or both alike.
    pub fn one_way(
        &mut self,
        table: &DeTable,
        at: &str,
        complaints: &mut Complaints,
    ) -> LinkOptions {
        let mut options = LinkOptions::default();
        for (option, text) in tree::options(table) {
            self.set(
                &mut options,
                (option, text.value),
                text.span,
                at,
                complaints,
            );
        }
        options
    }

    /// The options in a table for both directions: a preset, then what is
    /// given to both, then what is given to one.
    pub fn duplex(&mut self, table: &DeTable, at: &str, complaints: &mut Complaints) -> Duplex {
        let both = self.one_way(table, at, complaints);
        let mut side = |name: &str| match tree::table(table, name) {
            Some(table) => {
                let own = self.one_way(table, &format!("{at}.{name}"), complaints);
                both.overlay(&own)
            }
            None => both.clone(),
        };
        let (up, down) = (side("up"), side("down"));
        let Some(preset) = tree::text(table, "preset") else {
            return Duplex { up, down };
        };
        match presets::read(preset.value, &*self.files) {
            Ok(under) => Duplex {
                up: under.up.overlay(&up),
                down: under.down.overlay(&down),
            },
            Err(error) => {
                let reason = match &error {
                    PresetError::Spec(error) if !self.files.may_quote() => {
                        suggest::spec_error_without_content(error)
                    }
                    error => suggest::preset_error(error),
                };
                let remedy = "`longwire preset` lists them";
                complaints.refuse(preset.span, format!("{at}.preset"), reason, remedy);
                Duplex { up, down }
            }
        }
    }

    /// The same options as kept before, or these.
    pub fn keep(&mut self, options: LinkOptions) -> Arc<LinkOptions> {
        let mut key = String::new();
        for (name, text) in options.given() {
            key = key + name + "\u{0}" + &text + "\u{0}";
        }
        let kept = self.kept.entry(key);
        Arc::clone(kept.or_insert_with(|| Arc::new(options)))
    }
}

/// One pair of options over another.
pub(super) fn overlay(under: &Duplex, over: &Duplex) -> Duplex {
    Duplex {
        up: under.up.overlay(&over.up),
        down: under.down.overlay(&over.down),
    }
}
