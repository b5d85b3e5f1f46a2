//! Tables of parameters, a line or two for each, and what several models read alike.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use longwire_units::{UnitError, parse_real};

use crate::spec::{Arguments, Param, SpecError, Unit};

impl Param {
    /// A parameter without a default and without help.
    pub const fn new(name: &'static str, unit: Unit) -> Param {
        Param {
            name,
            unit,
            default: None,
            help: "",
        }
    }

    /// A parameter with a default and without help.
    pub const fn with_default(name: &'static str, unit: Unit, default: &'static str) -> Param {
        Param::new(name, unit).default(default)
    }

    /// The same parameter with another default.
    pub const fn default(mut self, default: &'static str) -> Param {
        self.default = Some(default);
        self
    }

    /// The same parameter with this line of help.
    pub const fn help(mut self, help: &'static str) -> Param {
        self.help = help;
        self
    }
}

impl Arguments<'_> {
    /// Reads a number in a range, which `words` names.
    ///
    /// # Errors
    /// If it is no number, or outside.
    pub(crate) fn real_within(
        &self,
        key: &'static str,
        range: RangeInclusive<f64>,
        words: &'static str,
    ) -> Result<f64, SpecError> {
        self.read(key, |text| match parse_real(text)? {
            value if range.contains(&value) => Ok(value),
            _ => Err(UnitError::OutOfRange {
                text: text.into(),
                range: words,
            }),
        })
    }

    /// Returns those of these parameters that were given, for a model's description.
    pub(crate) fn given(&self, params: &[Param]) -> Vec<(&'static str, String)> {
        let given = params.iter().filter_map(|param| {
            let word = self.word(param.name)?;
            Some((param.name, word.to_string()))
        });
        given.collect()
    }
}
