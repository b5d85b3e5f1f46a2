//! Link options: each text is parsed once, and equal specifications are shared.

use std::collections::HashMap;
use std::sync::Arc;

use longwire_engine::presets::{self, Duplex, PresetError};
use longwire_engine::{LinkSpec, LinkSpecError, OptionError};
use longwire_runtime::suggest;
use serde_json::{Map, Value};

use super::files::Files;
use super::problem::{Diagnostics, Place, Problem};
use super::value::{JsonSource, Table};
use super::{fields, tree};

/// Caches parsed texts and specifications, so that 100,000 links with equal options share them.
#[derive(Debug)]
pub(super) struct OptionStore {
    /// Valid values of each option.
    parsed: HashMap<&'static str, HashMap<String, ParsedValue>>,
    shared: HashMap<String, Arc<LinkSpec>>,
    pub files: Arc<dyn Files>,
}

/// A valid value.
#[derive(Debug)]
struct ParsedValue {
    /// A specification with only this option.
    alone: LinkSpec,
    warnings: Vec<String>,
}

impl OptionStore {
    /// Creates an empty store that reads files through `files`.
    pub fn with(files: Arc<dyn Files>) -> OptionStore {
        OptionStore {
            parsed: HashMap::new(),
            shared: HashMap::new(),
            files,
        }
    }

    /// Parses an option, adds it to a specification, and returns warnings.
    fn add(
        &mut self,
        spec: &mut LinkSpec,
        (option, text): (&'static str, &str),
    ) -> Result<Vec<String>, LinkSpecError> {
        let values = self.parsed.entry(option).or_default();
        if !values.contains_key(text) {
            let mut alone = LinkSpec::new();
            alone.set(option, text, &*self.files)?;
            let doubts = alone.value_doubts().into_iter();
            let warnings = doubts.map(|doubt| doubt.message).collect();
            values.insert(text.to_owned(), ParsedValue { alone, warnings });
        }
        let value = &values[text];
        spec.append(&value.alone)?;
        Ok(value.warnings.clone())
    }

    /// Adds an option to a specification, or reports the reason for rejecting it.
    pub fn set(
        &mut self,
        spec: &mut LinkSpec,
        (option, text): (&'static str, &str),
        place: impl Into<Place>,
        at: &str,
        diagnostics: &mut Diagnostics,
    ) {
        let place = place.into();
        let field = || format!("{at}.{option}");
        match self.add(spec, (option, text)) {
            Ok(doubts) => {
                for doubt in doubts {
                    diagnostics.warn_once(place.clone(), field(), doubt);
                }
            }
            Err(error) => {
                let remedy = format!("`longwire models {option}` lists the choices");
                diagnostics.refuse(place, field(), self.reason(&error), remedy);
            }
        }
    }

    /// Returns the reason for rejecting a value, without the option's name.
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

    /// Reads a table's options except those in `up` and `down`.
    pub fn one_way(
        &mut self,
        table: &Table<'_>,
        at: &str,
        diagnostics: &mut Diagnostics,
    ) -> LinkSpec {
        let mut spec = LinkSpec::new();
        for (part, text) in tree::options(table) {
            let given = (part.name, text.value.as_str());
            self.set(&mut spec, given, text.span, at, diagnostics);
        }
        spec
    }

    /// Reads a table's options by direction. Common options override the preset, and options of one
    /// direction override common ones.
    pub fn duplex(&mut self, table: &Table<'_>, at: &str, diagnostics: &mut Diagnostics) -> Duplex {
        let both = self.one_way(table, at, diagnostics);
        let mut side = |name: &str| match tree::table(table, name) {
            Some(table) => {
                let own = self.one_way(table, &format!("{at}.{name}"), diagnostics);
                both.overlay(&own)
            }
            None => both.clone(),
        };
        let own = Duplex {
            up: side("up"),
            down: side("down"),
        };
        let Some(preset) = tree::text(table, "preset") else {
            return own;
        };
        match presets::read(preset.value, &*self.files) {
            Ok(under) => overlay(&under, &own),
            Err(error) => {
                let reason = match &error {
                    PresetError::Spec(error) if !self.files.may_quote() => {
                        suggest::spec_error_without_content(error)
                    }
                    error => suggest::preset_error(error),
                };
                let remedy = "`longwire preset` lists them";
                diagnostics.refuse(preset.span, format!("{at}.preset"), reason, remedy);
                own
            }
        }
    }

    /// Returns an equal specification from the cache; adds this one if there is none.
    pub fn intern(&mut self, spec: LinkSpec) -> Arc<LinkSpec> {
        let mut key = String::new();
        for (name, text) in spec.given() {
            key = key + name + "\u{0}" + &text + "\u{0}";
        }
        Arc::clone(self.shared.entry(key).or_insert_with(|| Arc::new(spec)))
    }
}

pub(super) fn overlay(under: &Duplex, over: &Duplex) -> Duplex {
    Duplex {
        up: under.up.overlay(&over.up),
        down: under.down.overlay(&over.down),
    }
}

/// Prefix of field names in messages.
const AT: &str = "link";

/// Reads a link's options from JSON: options for both directions, and options for one direction in
/// the tables `up` and `down`. All of them override those of `preset`. Also returns warnings.
///
/// # Errors
/// All problems; pointers are relative to `options`.
pub fn duplex_of_json(
    options: &Map<String, Value>,
    files: &Arc<dyn Files>,
) -> Result<(Duplex, Vec<Problem>), Vec<Problem>> {
    let mut source = JsonSource::of(AT);
    let table = source.read(Some(options)).map_err(|fault| vec![*fault])?;
    let mut diagnostics = Diagnostics::of_json(source);
    diagnostics.checking_shape = true;
    tree::check(&fields::DEFAULTS, &table, AT, &mut diagnostics);
    diagnostics.checking_shape = false;
    let duplex = OptionStore::with(Arc::clone(files)).duplex(&table, AT, &mut diagnostics);
    Ok((duplex, diagnostics.finish()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::files::StartFiles;
    use super::*;

    fn read(options: &Value) -> Result<(Duplex, Vec<Problem>), Vec<Problem>> {
        duplex_of_json(options.as_object().expect("an object"), &StartFiles::any())
    }

    #[test]
    fn options_of_one_direction_override_those_of_both() {
        let options = json!({ "delay": "20ms", "up": { "delay": "5ms", "rate": "1mbit" } });
        let (duplex, warnings) = read(&options).expect("options");
        assert_eq!(warnings, []);
        assert_eq!(duplex.up.texts("delay"), ["5ms"]);
        assert_eq!(duplex.up.texts("rate"), ["1mbit"]);
        assert_eq!(duplex.down.texts("delay"), ["20ms"]);
        assert_eq!(duplex.down.texts("rate"), <[&str; 0]>::default());
    }

    #[test]
    fn problems_point_to_the_value() {
        let problems = read(&json!({ "delay": "soon", "down": { "loss": "1%" } }));
        let problems = problems.expect_err("no time");
        assert_eq!(problems[0].pointer, "/delay");
        assert!(!problems[0].is_malformed);
        let problems = read(&json!({ "dealy": "1ms" })).expect_err("no option");
        assert!(problems[0].is_malformed, "{problems:?}");
        let problems = read(&json!({ "up": { "delay": null } })).expect_err("no value");
        assert_eq!(problems[0].pointer, "/up/delay");
    }
}
