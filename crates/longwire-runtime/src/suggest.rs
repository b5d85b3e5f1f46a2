//! Suggestions for unknown names: `did you mean 'rate'?`

use longwire_engine::OptionError;
use longwire_engine::presets::PresetError;
use longwire_engine::spec::SpecError;
use longwire_io::PortError;

/// Returns the closest name within an edit distance of 1 + n/4 for n letters. An edit inserts,
/// deletes or replaces a letter, or swaps two adjacent letters.
pub fn closest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.trim().to_lowercase();
    let most = 1 + text.chars().count() / 4;
    let letters = text.chars().count();
    // Text this short is close to every short name, and very long text is not a name.
    if letters <= most || letters > LETTERS_MAX {
        return None;
    }
    let distances = known.into_iter().map(|name| {
        let distance = strsim::osa_distance(&text, &name.to_lowercase());
        (distance, name)
    });
    let near = distances.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Maximum length of a name.
const LETTERS_MAX: usize = 100;

/// Returns ` (did you mean 'rate'?)` or an empty string. `known` is comma-separated.
pub fn aside(name: &str, known: &str) -> String {
    let close = closest(name, known.split(", "));
    close.map_or_else(String::new, |close| format!(" (did you mean '{close}'?)"))
}

/// Returns at most `most` names closest to `text`. A name qualifies if its edit distance from
/// `text`, or that of one of its words between dots, hyphens and underscores, is at most half the
/// length of `text`.
pub fn nearest<'a>(
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let text = text.trim().to_lowercase();
    let text: String = text.chars().take(LETTERS_MAX).collect();
    let distance = |name: &str| {
        let words = name.split(['.', '-', '_']).chain([name]);
        let distances = words.map(|word| strsim::osa_distance(&text, word));
        distances.min().unwrap_or(usize::MAX)
    };
    let names = known.into_iter().map(|name| (distance(name), name));
    let mut near: Vec<(usize, &str)> = names
        .filter(|(distance, _)| *distance <= text.chars().count() / 2)
        .collect();
    near.sort_by_key(|(distance, name)| (*distance, name.len()));
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Returns `'a', 'b' or 'c'`.
pub fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("'{one}'"),
        [others @ .., last] => format!("'{}' or '{last}'", others.join("', '")),
    }
}

/// Returns the message for an invalid model. For a misspelt name, the message suggests a name
/// instead of listing all names.
pub fn spec_error(error: &SpecError) -> String {
    let close = |name: &str, known: &str| {
        closest(name, known.split(", ")).map(|close| format!("did you mean '{close}'?"))
    };
    let short = match error {
        SpecError::UnknownModel {
            kind, name, known, ..
        } => close(name, known).map(|close| format!("unknown {kind} model '{name}'; {close}")),
        SpecError::UnknownParam { model, key, known } => {
            close(key, known).map(|close| format!("{model} has no parameter '{key}'; {close}"))
        }
        SpecError::Choice { text, known, .. } => {
            close(text, known).map(|close| format!("{error}; {close}"))
        }
        _ => None,
    };
    short.unwrap_or_else(|| error.to_string())
}

/// Like [`spec_error`], without the content of files that the model read.
pub fn spec_error_without_content(error: &SpecError) -> String {
    match error {
        SpecError::Content { .. } => error.without_content(),
        error => spec_error(error),
    }
}

/// Returns the message for an invalid option, as [`spec_error`] does.
pub fn option_error(error: &OptionError) -> String {
    format!("{}: {}", error.option, spec_error(&error.source))
}

/// Aliases of presets.
const OTHER_NAMES: [(&str, &[&str]); 12] = [
    ("2g", &["edge"]),
    ("4g", &["lte"]),
    ("mobile", &["lte", "5g", "3g"]),
    ("satellite", &["geo-satellite", "starlink"]),
    ("leo", &["starlink"]),
    ("geo", &["geo-satellite"]),
    ("dsl", &["adsl", "vdsl"]),
    ("docsis", &["cable"]),
    ("fibre", &["fiber"]),
    ("ftth", &["fiber"]),
    ("wlan", &["wifi"]),
    ("lan", &["datacenter"]),
];

/// Returns the message for an invalid preset, as [`spec_error`] does.
pub fn preset_error(error: &PresetError) -> String {
    match error {
        PresetError::Unknown { name, known } => {
            let meant = OTHER_NAMES
                .iter()
                .find(|(other, _)| *other == name.to_lowercase());
            let meant = match meant {
                Some((_, names)) => names.to_vec(),
                None => closest(name, known.split(", ")).into_iter().collect(),
            };
            match meant.as_slice() {
                [] => error.to_string(),
                meant => format!("unknown preset '{name}'; did you mean {}?", either(meant)),
            }
        }
        PresetError::Spec(error) => spec_error(error),
        PresetError::NoParameters { .. } => error.to_string(),
    }
}

/// Returns the message for an invalid port, as [`spec_error`] does.
pub fn port_error(error: &PortError) -> String {
    if let PortError::Unknown { text, known } = error {
        // Known ports are written KIND:ARGUMENT.
        let kind = |text: &'_ str| text.split(':').next().unwrap_or_default().to_owned();
        let kinds: Vec<String> = known.split(", ").map(kind).collect();
        if let Some(close) = closest(&kind(text), kinds.iter().map(String::as_str)) {
            return format!("'{text}' is not a port; did you mean '{close}'?");
        }
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_other_names() {
        let said = |name| {
            let refused = longwire_engine::presets::read(name, &longwire_engine::NoLoader);
            refused.map_or_else(|error| preset_error(&error), |_| String::new())
        };
        assert_eq!(said("4g"), "unknown preset '4g'; did you mean 'lte'?");
        assert_eq!(
            said("Satellite"),
            "unknown preset 'Satellite'; did you mean 'geo-satellite' or 'starlink'?"
        );
        assert!(said("nothing-like-it").contains("known: dialup"));
        // All suggested names exist.
        for (_, names) in OTHER_NAMES {
            assert!(names.iter().all(|name| said(name).is_empty()), "{names:?}");
        }
    }
}
