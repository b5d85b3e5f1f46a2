//! Presets: named links with options for both directions and the sources of their values.
//!
//! A preset is a starting point, not a promise. It describes one access link, as measured or
//! specified by a source, without the network beyond it. Values without a source are labelled as
//! assumptions.

use crate::loader::{Loader, NoLoader};
use crate::parts::LinkSpec;
use crate::prelude::*;
use crate::spec::{ModelInfo, SpecError};

mod errant;
mod table;

pub use table::PRESETS;

/// A named link.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Preset name.
    pub name: &'static str,
    /// One-line help.
    pub summary: &'static str,
    /// Sources of the values.
    pub sources: &'static [&'static str],
    /// Values without a source.
    pub assumptions: &'static str,
    /// Options for both directions; those in `up` or `down` follow them.
    both: &'static str,
    up: &'static str,
    down: &'static str,
}

/// Options for both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Duplex {
    /// Upstream: from a home, a phone or a client.
    pub up: LinkSpec,
    /// Downstream.
    pub down: LinkSpec,
}

/// Error in a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// Unknown preset.
    #[error("unknown preset '{name}'; known: {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The preset takes no parameters.
    #[error("{name} takes no parameters; other options override its values")]
    NoParameters {
        /// Preset name.
        name: &'static str,
    },
    /// Error in its parameters or file.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Preset {
    /// Returns the preset's options.
    pub fn options(&self) -> Duplex {
        let of = |one_way: &str| {
            let spec = LinkSpec::parse(&format!("{} {one_way}", self.both), &NoLoader);
            debug_assert!(spec.is_ok(), "{}: {spec:?}", self.name);
            spec.unwrap_or_default()
        };
        Duplex {
            up: of(self.up),
            down: of(self.down),
        }
    }
}

/// The preset whose values come from a file.
pub static FROM_FILE: &ModelInfo = &errant::INFO;

/// Parses a preset as specified by the user: a name, or `errant:file=profiles.csv,operator=…`,
/// whose file is read through `loader`.
///
/// # Errors
/// If the name or a parameter is unknown or invalid; the message lists the known ones.
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
