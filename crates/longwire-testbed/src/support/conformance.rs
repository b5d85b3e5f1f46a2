//! Checks for every registered model of every kind.

use std::collections::BTreeSet;
use std::fmt::Display;

use longwire_engine::models::{Entry, Kind};
use longwire_engine::spec::{ModelInfo, Param, SpecError, Unit, reads};
use longwire_engine::{Hook, Loader, Plugin, TakePiece};

fn is_kebab_case(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.split('-').all(word)
}

fn assert_described(info: &ModelInfo) {
    let name = info.name;
    assert!(is_kebab_case(name), "{name}");
    assert!(info.summary.len() > 10, "{name} has no summary");
    assert!(
        !info.summary.ends_with('.') && !info.summary.contains("  "),
        "{name}: {}",
        info.summary
    );
    let mut keys = BTreeSet::new();
    for Param {
        name: key,
        unit,
        default,
        help,
        range: _,
    } in info.params
    {
        assert!(is_kebab_case(key), "{name}: {key}");
        assert!(keys.insert(key), "{name}: {key} twice");
        assert!(
            help.len() > 5 && !help.contains("  "),
            "{name}: {key} has no help"
        );
        assert!(
            *unit == Unit::Rest || reads(*unit, unit.example()),
            "{name}: {key}: the example of its unit does not parse"
        );
        if let Some(default) = default {
            assert!(
                reads(*unit, default),
                "{name}: {key}: the default {default} does not parse"
            );
        }
    }
}

/// Returns example arguments of the model: with all parameters, once per word of each choice, and
/// with only the required ones.
pub fn model_examples(info: &ModelInfo) -> Vec<String> {
    // A rest parameter accepts any key, so its name serves as the key. Each file has the name of
    // its parameter, because a model may need several.
    let pair = |param: &Param, value: &str| match param.unit {
        Unit::File(_) => format!("{}={}", param.name, param.name),
        _ => format!("{}={value}", param.name),
    };
    let text = |pairs: Vec<String>| format!("{}:{}", info.name, pairs.join(","));
    let all = |chosen: &str| {
        let value = |param: &Param| match param.unit {
            Unit::Choice(words) if words.contains(&chosen) => pair(param, chosen),
            unit => pair(param, unit.example()),
        };
        text(info.params.iter().map(value).collect())
    };
    let words = info.params.iter().filter_map(|param| match param.unit {
        Unit::Choice(words) => Some(words),
        _ => None,
    });
    let mut examples: Vec<String> = words.flatten().map(|word| all(word)).collect();
    examples.push(all(""));
    let required = info.params.iter().filter(|param| param.default.is_none());
    examples.push(text(
        required
            .map(|param| pair(param, param.unit.example()))
            .collect(),
    ));
    examples
}

/// Example files named like the model's parameters, and a plugin without effect.
pub struct ExampleFiles(pub &'static ModelInfo);

impl Loader for ExampleFiles {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let param = self.0.params.iter().find(|param| param.name == path);
        match param.map(|param| param.unit) {
            Some(Unit::File(contents)) => take(contents.as_bytes()),
            _ => Err(format!("no parameter is named like the file '{path}'")),
        }
    }

    fn plugin(&self, _: &str, _: Hook, _: &[(String, String)]) -> Result<Box<dyn Plugin>, String> {
        Ok(Box::new(Idle))
    }
}

#[derive(Debug)]
struct Idle;

impl Plugin for Idle {}

fn assert_builds<M: Display>(kind: &Kind<M>, entry: &'static Entry<M>) {
    let open = entry
        .info
        .params
        .iter()
        .any(|param| param.unit == Unit::Rest);
    let loader = ExampleFiles(&entry.info);
    for text in model_examples(&entry.info) {
        let model = kind
            .parse_with(&text, &loader)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let written = model.to_string();
        let again = kind
            .parse_with(&written, &loader)
            .unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(again.to_string(), written, "{text}");
        // Formatting must keep the choice.
        if text.contains("entry") {
            assert!(written.contains("entry"), "{text} became {written}");
        }
        let comma = if text.ends_with(':') { "" } else { "," };
        let unknown = format!("{text}{comma}no-such-key=1");
        let error = kind.parse_with(&unknown, &loader).err();
        assert!(
            open || matches!(error, Some(SpecError::UnknownParam { .. })),
            "{unknown}: {error:?}"
        );
    }
    let Some(first) = entry.info.params.first() else {
        return;
    };
    let (key, value) = (first.name, first.unit.example());
    let twice = format!("{}:{key}={value},{key}={value}", entry.info.name);
    let error = kind.parse_with(&twice, &loader).err();
    assert!(
        matches!(error, Some(SpecError::Repeated { .. })),
        "{twice}: {error:?}"
    );
}

/// Asserts that the models of `kind` are documented, can be built from each of their examples, and
/// have a text form that parses; adds each kind and name to `seen`.
///
/// # Panics
///
/// If a model fails a check, or is already in `seen`.
#[track_caller]
pub fn assert_models_conform<M: Display>(kind: &Kind<M>, seen: &mut BTreeSet<(&str, &str)>) {
    assert!(is_kebab_case(kind.name), "{}", kind.name);
    assert!(
        kind.parse(kind.example).is_ok(),
        "{}: {}",
        kind.name,
        kind.example
    );
    for entry in kind.entries {
        assert!(
            seen.insert((kind.name, entry.info.name)),
            "{} twice",
            entry.info.name
        );
        assert_described(&entry.info);
        assert_builds(kind, entry);
    }
}
