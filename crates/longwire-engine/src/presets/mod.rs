//! Links that people ask for by name: plain options for both directions,
//! with where they come from.
//!
//! A preset is a starting point and no promise: each describes one access
//! link, without the network behind it, as a source once measured or
//! specified it. What no source says is named an assumption.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::loader::Loader;
use crate::options::LinkOptions;
use crate::spec::{ModelInfo, SpecError};

mod errant;
mod table;

pub use table::PRESETS;

/// A link by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Where its values come from.
    pub sources: &'static [&'static str],
    /// What no source says.
    pub assumptions: &'static str,
    /// Options of both directions, of the way up, and of the way down: name
    /// and text.
    both: Texts,
    up: Texts,
    down: Texts,
}

/// Options: name and text.
type Texts = &'static [(&'static str, &'static str)];

/// The options of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Duplex {
    /// From near to far: from a home, a phone or a client.
    pub up: LinkOptions,
    /// From far to near.
    pub down: LinkOptions,
}

/// Why a preset was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// There is none of this name.
    #[error("unknown preset '{name}'; known: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// It takes no parameters.
    #[error("{name} takes no parameters; options beside it change it")]
    NoParameters {
        /// Which preset.
        name: &'static str,
    },
    /// Its parameters, or its file, are wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Preset {
    /// Its options.
    pub fn options(&self) -> Duplex {
        let of = |one_way: Texts| {
            let mut options = LinkOptions::default();
            for (name, text) in self.both.iter().chain(one_way) {
                let known = options.set(name, (*text).to_owned());
                debug_assert!(known, "{}: there is no option {name}", self.name);
            }
            options
        };
        Duplex {
            up: of(self.up),
            down: of(self.down),
        }
    }
}

/// The preset with parameters, which reads its values from a file.
pub static FROM_FILE: &ModelInfo = &errant::INFO;

/// Reads a preset as a user writes it: a name, or
/// `errant:file=profiles.csv,operator=…`, whose file comes from `loader`.
///
/// # Errors
/// What is not known, and what is.
pub fn read(text: &str, loader: &dyn Loader) -> Result<Duplex, PresetError> {
    let (name, parameters) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    if name == FROM_FILE.name {
        return Ok(errant::read(parameters, loader)?);
    }
    match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) if parameters.is_empty() => Ok(preset.options()),
        Some(preset) => Err(PresetError::NoParameters { name: preset.name }),
        None => {
            let names = PRESETS.iter().map(|preset| preset.name);
            let names: Vec<&str> = names.chain([FROM_FILE.name]).collect();
            Err(PresetError::Unknown {
                name: name.to_owned(),
                known: names.join(", "),
            })
        }
    }
}
