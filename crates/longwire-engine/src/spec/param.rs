//! Tables of parameters, a line or two for each, and what several models read alike.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

use crate::spec::{Arguments, Param, ParamRange, Unit};

impl Param {
    /// A parameter without a default and without help.
    pub const fn new(name: &'static str, unit: Unit) -> Param {
        Param {
            name,
            unit,
            default: None,
            help: "",
            range: None,
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

    /// The same parameter with a range, which `words` names. Values outside are refused
    /// when it is read. Only units that are plain numbers have ranges.
    pub const fn within(
        mut self,
        min: &'static str,
        max: &'static str,
        words: &'static str,
    ) -> Param {
        self.range = Some(ParamRange { min, max, words });
        self
    }

    /// Refuses a value outside of the range.
    pub(super) fn check_range(&self, text: &str) -> Result<(), UnitError> {
        let Some(range) = self.range else {
            return Ok(());
        };
        let (min, max) = (self.number(range.min)?, self.number(range.max)?);
        if (min..=max).contains(&self.number(text)?) {
            return Ok(());
        }
        Err(UnitError::OutOfRange {
            text: text.into(),
            range: range.words,
        })
    }

    fn number(&self, text: &str) -> Result<f64, UnitError> {
        match self.unit {
            Unit::Count => parse_count(text).map(|count| count as f64),
            Unit::Ratio => parse_ratio(text),
            _ => parse_real(text),
        }
    }
}

impl Arguments<'_> {
    /// Returns those of these parameters that were given, for a model's description.
    pub(crate) fn given(&self, params: &[Param]) -> Vec<(&'static str, String)> {
        let given = params.iter().filter_map(|param| {
            let word = self.word(param.name)?;
            Some((param.name, word.to_string()))
        });
        given.collect()
    }
}
