//! Options of links: each text is parsed once, and each specification kept once.

use std::collections::HashMap;
use std::sync::Arc;

use longwire_engine::presets::{self, Duplex, PresetError};
use longwire_engine::{LinkSpec, LinkSpecError, OptionError};

use super::files::{Files, StartFiles};
use super::problem::{Complaints, Place};
use super::tree;
use super::value::Table;
use longwire_runtime::suggest;

/// Texts that were parsed, and specifications that were kept. A hundred thousand links
/// with the same options share them.
#[derive(Debug)]
pub(super) struct OptionStore {
    /// Values without an error, each as a specification of one part.
    parsed: HashMap<(&'static str, String), LinkSpec>,
    kept: HashMap<String, Arc<LinkSpec>>,
    pub files: Arc<dyn Files>,
}

impl Default for OptionStore {
    fn default() -> OptionStore {
        OptionStore::with(StartFiles::any())
    }
}

impl OptionStore {
    /// A store whose options name these files.
    pub fn with(files: Arc<dyn Files>) -> OptionStore {
        OptionStore {
            parsed: HashMap::new(),
            kept: HashMap::new(),
            files,
        }
    }

    /// Parses a value of an option and adds it to a specification.
    fn add(
        &mut self,
        spec: &mut LinkSpec,
        (option, text): (&'static str, &str),
    ) -> Result<Vec<String>, LinkSpecError> {
        let key = (option, text.to_owned());
        if !self.parsed.contains_key(&key) {
            let mut alone = LinkSpec::new();
            alone.set(option, text, &*self.files)?;
            self.parsed.insert(key.clone(), alone);
        }
        let alone = &self.parsed[&key];
        spec.append(alone)?;
        let doubts = alone.value_doubts().into_iter();
        Ok(doubts.map(|doubt| doubt.message).collect())
    }

    /// Adds an option to a specification if it is right.
    pub fn set(
        &mut self,
        spec: &mut LinkSpec,
        (option, text): (&'static str, &str),
        place: impl Into<Place>,
        at: &str,
        complaints: &mut Complaints,
    ) {
        let place = place.into();
        let field = format!("{at}.{option}");
        match self.add(spec, (option, text)) {
            Ok(doubts) => {
                for doubt in doubts {
                    complaints.warn_once(place.clone(), field.clone(), doubt);
                }
            }
            Err(error) => {
                let remedy = format!("`longwire models {option}` shows what there is");
                complaints.refuse(place, field, self.reason(&error), remedy);
            }
        }
    }

    /// Returns the reason of a refusal: the option's name is in the frame of the
    /// message.
    fn reason(&self, error: &LinkSpecError) -> String {
        match error {
            LinkSpecError::Option(OptionError { source, .. }) if self.files.may_quote() => {
                suggest::spec_error(source)
            }
            LinkSpecError::Option(OptionError { source, .. }) => {
                suggest::spec_error_without_content(source)
            }
            other => other.to_string(),
        }
    }

    /// The options in a table, for one direction or both alike.
    pub fn one_way(
        &mut self,
        table: &Table<'_>,
        at: &str,
        complaints: &mut Complaints,
    ) -> LinkSpec {
        let mut spec = LinkSpec::new();
        for (part, text) in tree::options(table) {
            let given = (part.name, text.value.as_str());
            self.set(&mut spec, given, text.span, at, complaints);
        }
        spec
    }

    /// The options in a table for both directions: a preset, then what is
    /// given to both, then what is given to one.
    pub fn duplex(&mut self, table: &Table<'_>, at: &str, complaints: &mut Complaints) -> Duplex {
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

    /// The same specification as kept before, or this one.
    pub fn keep(&mut self, spec: LinkSpec) -> Arc<LinkSpec> {
        let mut key = String::new();
        for (name, text) in spec.given() {
            key = key + name + "\u{0}" + &text + "\u{0}";
        }
        let kept = self.kept.entry(key);
        Arc::clone(kept.or_insert_with(|| Arc::new(spec)))
    }
}

/// One pair of options over another.
pub(super) fn overlay(under: &Duplex, over: &Duplex) -> Duplex {
    Duplex {
        up: under.up.overlay(&over.up),
        down: under.down.overlay(&over.down),
    }
}
