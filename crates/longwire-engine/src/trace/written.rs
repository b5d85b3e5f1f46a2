//! A model that reads a file, as its user wrote it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::spec::{Arguments, ModelInfo};

/// A model's name and every parameter that was given or has a default: what
/// was read from a file cannot be written back into a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    name: &'static str,
    values: Vec<(&'static str, String)>,
}

impl Written {
    /// What these arguments of the model say.
    pub fn of(arguments: &Arguments<'_>, model: &'static ModelInfo) -> Written {
        let value = |key| Some((key, arguments.word(key)?.to_owned()));
        Written {
            name: model.name,
            values: model
                .params
                .iter()
                .filter_map(|param| value(param.name))
                .collect(),
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let mut mark = ':';
        for (key, value) in &self.values {
            write!(f, "{mark}{key}={value}")?;
            mark = ',';
        }
        Ok(())
    }
}
