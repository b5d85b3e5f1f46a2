//! Parameter tables.

use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

use crate::spec::{Param, ParamRange, Unit};

impl Param {
    /// Creates a parameter without default and help.
    pub const fn new(name: &'static str, unit: Unit) -> Param {
        Param {
            name,
            unit,
            default: None,
            help: "",
            range: None,
        }
    }

    /// Creates a parameter with a default and without help.
    pub const fn with_default(name: &'static str, unit: Unit, default: &'static str) -> Param {
        Param::new(name, unit).default(default)
    }

    /// Sets the default.
    pub const fn default(mut self, default: &'static str) -> Param {
        self.default = Some(default);
        self
    }

    /// Sets the line of help.
    pub const fn help(mut self, help: &'static str) -> Param {
        self.help = help;
        self
    }

    /// Sets an inclusive range, described by `words`; values outside are rejected when
    /// read. Only units that are plain numbers have ranges.
    pub const fn within(
        mut self,
        min: &'static str,
        max: &'static str,
        words: &'static str,
    ) -> Param {
        self.range = Some(ParamRange { min, max, words });
        self
    }

    /// Rejects a value outside the range.
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
