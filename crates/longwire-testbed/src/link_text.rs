//! Link options as a line of text: `rate=10mbit delay=20ms loss=1%`.

use longwire_engine::presets::{self, Duplex, PresetError};
use longwire_engine::{LinkConfig, LinkSpec, OptionError, PARTS, Part};
use longwire_runtime::{Faults, FileLoader, suggest};

use crate::config::Side;

/// An error in a link's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LinkTextError {
    #[error("'{word}' has no value; expected NAME=VALUE, such as delay=20ms")]
    NoValue { word: String },
    #[error("'{word}': unknown option '{name}'; {advice}")]
    Unknown {
        word: String,
        name: String,
        advice: String,
    },
    #[error("'{word}': {name} is given twice")]
    Repeated { word: String, name: String },
    #[error("'{word}': a preset applies to both directions; write it in Testbed::link")]
    OneWayPreset { word: String },
    #[error("preset: {}", suggest::preset_error(.0))]
    Preset(PresetError),
    #[error("{}", suggest::option_error(.0))]
    Option(#[from] OptionError),
}

/// Name of the preset option.
const PRESET: &str = "preset";

/// Specifications of both directions, and the preset that they override.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplexOptions {
    preset: Option<Duplex>,
    up: LinkSpec,
    down: LinkSpec,
}

impl DuplexOptions {
    /// Applies the options in `text`, which override existing ones, to the direction from one side,
    /// or to both directions if `from` is `None`. In the latter case, the prefixes `up-` and
    /// `down-` select a direction.
    pub(crate) fn set(&mut self, from: Option<Side>, text: &str) -> Result<(), LinkTextError> {
        let mut both = LinkSpec::new();
        let (mut up, mut down) = (LinkSpec::new(), LinkSpec::new());
        for word in text.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                return Err(LinkTextError::NoValue {
                    word: word.to_owned(),
                });
            };
            if name == PRESET {
                self.set_preset(from, word, value)?;
                continue;
            }
            let prefixed = |prefix| name.strip_prefix(prefix).filter(|_| from.is_none());
            match (prefixed("up-"), prefixed("down-")) {
                (Some(name), _) => set_part(&mut up, word, name, value)?,
                (_, Some(name)) => set_part(&mut down, word, name, value)?,
                (None, None) => set_part(&mut both, word, name, value)?,
            }
        }
        if from != Some(Side::Far) {
            self.up = self.up.overlay(&both).overlay(&up);
        }
        if from != Some(Side::Near) {
            self.down = self.down.overlay(&both).overlay(&down);
        }
        Ok(())
    }

    fn set_preset(
        &mut self,
        from: Option<Side>,
        word: &str,
        value: &str,
    ) -> Result<(), LinkTextError> {
        let word = || word.to_owned();
        if from.is_some() {
            return Err(LinkTextError::OneWayPreset { word: word() });
        }
        if self.preset.is_some() {
            return Err(LinkTextError::Repeated {
                word: word(),
                name: PRESET.to_owned(),
            });
        }
        let preset = presets::read(value, &FileLoader::new()).map_err(LinkTextError::Preset)?;
        self.preset = Some(preset);
        Ok(())
    }

    /// Builds the up and down links. Each direction has a separate loader, and therefore separate
    /// plugin states.
    pub(crate) fn links(&self, faults: &Faults) -> Result<[LinkConfig; 2], LinkTextError> {
        let preset = self.preset.clone().unwrap_or_default();
        let build = |spec: LinkSpec| spec.build(&FileLoader::reporting_to(faults));
        Ok([
            build(preset.up.overlay(&self.up))?,
            build(preset.down.overlay(&self.down))?,
        ])
    }
}

/// Sets a part of `spec` to `value`, or appends it if the part is a list.
fn set_part(spec: &mut LinkSpec, word: &str, name: &str, value: &str) -> Result<(), LinkTextError> {
    let Some(part) = Part::named(name) else {
        return Err(LinkTextError::Unknown {
            word: word.to_owned(),
            name: name.to_owned(),
            advice: advice(name),
        });
    };
    if part.texts(spec).is_some() && !part.is_repeated {
        return Err(LinkTextError::Repeated {
            word: word.to_owned(),
            name: name.to_owned(),
        });
    }
    Ok(part.add(spec, value, &FileLoader::new())?)
}

/// Returns a suggestion for an unknown option name, or a list of all names.
fn advice(name: &str) -> String {
    let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    match suggest::closest(name, known.iter().copied()) {
        Some(close) => format!("did you mean '{close}'?"),
        None => format!("the options are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(texts: &[(Option<Side>, &str)]) -> Result<[LinkConfig; 2], LinkTextError> {
        let mut options = DuplexOptions::default();
        for (from, text) in texts {
            options.set(*from, text)?;
        }
        options.links(&Faults::new())
    }

    fn refused(from: Option<Side>, text: &str) -> String {
        match links(&[(from, text)]) {
            Ok(_) => panic!("{text} is read"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn later_texts_change_one_direction() {
        let texts = [
            (None, "rate=10mbit delay=20ms up-loss=1% loss=2%"),
            (Some(Side::Near), "rate=1mbit"),
            (Some(Side::Far), "delay=5ms"),
        ];
        let [up, down] = links(&texts).expect("options");
        assert_eq!(up.rate.to_string(), "1mbit");
        assert_eq!(down.rate.to_string(), "10mbit");
        assert_eq!(up.delay.to_string(), "20ms");
        assert_eq!(down.delay.to_string(), "5ms");
        assert_eq!(up.loss[0].to_string(), "packet:rate=1%");
        assert_eq!(down.loss[0].to_string(), "packet:rate=2%");
        let [up, _] = links(&[(None, "preset=lte delay=7ms")]).expect("options");
        assert_eq!(up.delay.to_string(), "7ms");
        let [up, _] = links(&[(None, "loss=1% loss=2%")]).expect("options");
        assert_eq!(up.loss.len(), 2);
    }

    #[test]
    fn errors_name_the_word() {
        for (text, expected) in [
            ("delay", "'delay' has no value; expected NAME=VALUE"),
            (
                "dely=20ms",
                "'dely=20ms': unknown option 'dely'; did you mean 'delay'?",
            ),
            ("colour=red", "the options are rate, framing, queue"),
            ("up-dely=20ms", "'up-dely=20ms': unknown option 'dely'"),
            ("delay=1ms delay=2ms", "'delay=2ms': delay is given twice"),
            ("delay=20mss", "delay: "),
            ("loss=gilbrt:p=1%", "did you mean 'gilbert'?"),
            ("preset=lty", "did you mean 'lte'?"),
        ] {
            let found = refused(None, text);
            assert!(found.contains(expected), "{text}: {found}");
        }
        let found = refused(Some(Side::Near), "preset=lte");
        assert!(found.contains("applies to both directions"), "{found}");
        let found = refused(Some(Side::Near), "up-delay=1ms");
        assert!(found.contains("unknown option 'up-delay'"), "{found}");
    }
}
