//! Models and presets as JSON.

use longwire_engine::presets::PRESETS;
use longwire_engine::spec::{ModelInfo, Param, Unit};
use longwire_engine::{PARTS, Part};
use schemars::JsonSchema;
use serde::Serialize;

/// Options of links, models and presets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Models {
    /// Options of links.
    pub options: Vec<LinkOption>,
    /// Models, ordered by option.
    pub models: Vec<Model>,
    /// Presets.
    pub presets: Vec<NamedPreset>,
}

/// Option of a link.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkOption {
    /// Name.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Whether the option may be repeated.
    pub repeated: bool,
    /// Default value.
    pub default: String,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Model {
    /// Option that accepts the model.
    pub kind: &'static str,
    /// Name.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Parameters; the first one may be given without its name.
    pub params: Vec<ModelParameter>,
}

/// Parameter of a model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelParameter {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Permitted words, if the parameter is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<&'static [&'static str]>,
    /// Minimum, if it differs from the unit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<&'static str>,
    /// Maximum, if it differs from the unit's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<&'static str>,
    /// Default value; null if the parameter is required or derived.
    pub default: Option<&'static str>,
    /// Example value.
    pub example: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// A preset.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preset")]
pub struct NamedPreset {
    /// Name.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Options for direction up, by name.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub up: serde_json::Map<String, serde_json::Value>,
    /// Options for direction down, by name.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub down: serde_json::Map<String, serde_json::Value>,
}

impl Models {
    /// Returns all models and presets.
    pub fn all() -> Models {
        let models = longwire_engine::all_models().into_iter();
        Models {
            options: PARTS.iter().map(LinkOption::of).collect(),
            models: models.map(|(kind, info)| Model::of(kind, info)).collect(),
            presets: PRESETS.iter().map(NamedPreset::of).collect(),
        }
    }
}

impl LinkOption {
    fn of(part: &Part) -> LinkOption {
        LinkOption {
            name: part.name,
            summary: part.summary,
            repeated: part.is_repeated,
            default: part.default_text(),
        }
    }
}

impl Model {
    /// Describes a model of an option.
    pub fn of(kind: &'static str, info: &ModelInfo) -> Model {
        Model {
            kind,
            name: info.name,
            summary: info.summary,
            params: info.params.iter().map(ModelParameter::of).collect(),
        }
    }
}

impl ModelParameter {
    fn of(param: &Param) -> ModelParameter {
        ModelParameter {
            name: param.name,
            unit: unit_name(param.unit),
            choices: match param.unit {
                Unit::Choice(words) => Some(words),
                _ => None,
            },
            min: param.range.map(|range| range.min),
            max: param.range.map(|range| range.max),
            default: param.default,
            example: param.unit.example(),
            help: param.help,
        }
    }
}

impl NamedPreset {
    fn of(preset: &longwire_engine::presets::Preset) -> NamedPreset {
        let options = preset.options();
        NamedPreset {
            name: preset.name,
            summary: preset.summary,
            up: longwire_network::options_in_json(&options.up),
            down: longwire_network::options_in_json(&options.down),
        }
    }
}

/// Returns the name of a unit in help and JSON.
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "time",
        Unit::Rate => "rate",
        Unit::Size => "size",
        Unit::Packets => "packets",
        Unit::Probability => "probability",
        Unit::Correlation => "correlation",
        Unit::Ratio => "ratio",
        Unit::Count => "number",
        Unit::Signed => "whole number",
        Unit::Real => "real number",
        Unit::File(_) => "file",
        Unit::Text(_) => "text",
        Unit::Rest => "any key=value",
        Unit::Choice(_) => "choice",
    }
}

#[cfg(test)]
mod tests {
    use longwire_engine::{LinkSpec, NoLoader};

    use super::*;

    #[test]
    fn every_model_is_of_an_option() {
        let models = Models::all();
        let name = |model: &Model| model.name;
        let of_options = models.options.iter().flat_map(|option| {
            let all = models.models.iter();
            all.filter(|model| model.kind == option.name).map(name)
        });
        let all: Vec<&str> = models.models.iter().map(name).collect();
        assert_eq!(of_options.collect::<Vec<_>>(), all);
    }

    #[test]
    fn parameter_ranges_match_validation() {
        let models = Models::all().models;
        for (kind, model, given, key, outside) in [
            ("mtu", "drop", "", "bytes", ["67", "65536"]),
            ("delay", "pareto", "scale=1ms,", "shape", ["0.09", "1001"]),
            ("delay", "weibull", "scale=1ms,", "shape", ["0.09", "101"]),
            ("corrupt", "ber", "", "rate", ["0.51", "0.6"]),
        ] {
            let read = |value: &str| {
                let text = format!("{model}:{given}{key}={value}");
                LinkSpec::new().set(kind, &text, &NoLoader)
            };
            let mut models = models.iter();
            let found = models.find(|known| (known.kind, known.name) == (kind, model));
            let mut params = found.expect("a model").params.iter();
            let param = params.find(|param| param.name == key).expect("a parameter");
            for end in [param.min, param.max] {
                read(end.expect("it has a range")).expect("inside");
            }
            for value in outside {
                read(value).expect_err("outside");
            }
        }
    }
}
