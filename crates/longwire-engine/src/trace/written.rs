//! Notation of a model that reads a file.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::spec::{Arguments, ModelInfo};

/// A model's name and every parameter with a value or default; the file's contents cannot
/// be written back into a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelText {
    name: &'static str,
    values: Vec<(&'static str, String)>,
}

impl ModelText {
    /// Returns the text of these arguments of the model.
    pub fn of(arguments: &Arguments<'_>, model: &'static ModelInfo) -> ModelText {
        let value = |key| Some((key, arguments.word(key)?.to_owned()));
        ModelText {
            name: model.name,
            values: model
                .params
                .iter()
                .filter_map(|param| value(param.name))
                .collect(),
        }
    }
}

impl fmt::Display for ModelText {
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
