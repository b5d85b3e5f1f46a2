//! Model arguments.

use core::cell::RefCell;
use core::str::FromStr;

use longwire_units::{BitRate, UnitError};

use super::{ModelInfo, Param, SpecError, Unit};
use crate::loader::{Hook, Loader, Plugin, TakePiece};
use crate::models::Described;
use crate::prelude::*;
use longwire_units::lines::LineSplitter;

/// A model's arguments, checked against its parameters.
pub struct Arguments<'a> {
    model: &'static ModelInfo,
    values: Vec<Option<String>>,
    /// Indices of parameters whose values were given without a key.
    bare: Vec<usize>,
    /// Pairs collected by [`Unit::Rest`].
    rest: Vec<(String, String)>,
    loader: &'a dyn Loader,
    /// Warnings about allowed values.
    doubts: RefCell<Vec<String>>,
}

impl<'a> Arguments<'a> {
    /// Parses the text after a model's name: `key=value,key=value`. A value without a key goes to
    /// the first remaining parameter whose unit accepts it.
    ///
    /// # Errors
    /// [`SpecError::EmptyItem`] for nothing between two commas, [`SpecError::UnknownParam`] for an
    /// unknown key, [`SpecError::NoValue`] for a key without a value, [`SpecError::Repeated`] for a
    /// repeated key, [`SpecError::Misfit`] for a plain value that no remaining parameter accepts.
    pub fn parse(
        model: &'static ModelInfo,
        text: &str,
        loader: &'a dyn Loader,
    ) -> Result<Arguments<'a>, SpecError> {
        let mut arguments = Arguments {
            model,
            values: model.params.iter().map(|_| None).collect(),
            bare: Vec::new(),
            rest: Vec::new(),
            loader,
            doubts: RefCell::default(),
        };
        let items = text.split(',').map(str::trim);
        let items = items.filter(|_| !text.trim().is_empty());
        if items.clone().any(str::is_empty) {
            return Err(SpecError::EmptyItem {
                model: model.name,
                text: text.trim().to_owned(),
            });
        }
        // Values with keys are assigned first, regardless of their position: they determine which
        // parameters remain.
        for (key, value) in items.clone().filter_map(|item| item.split_once('=')) {
            arguments.give_named(key.trim(), value.trim())?;
        }
        for value in items.filter(|item| !item.contains('=')) {
            let index = bare_param(model, &arguments.values, value)?;
            arguments.give(index, value)?;
            arguments.bare.push(index);
        }
        Ok(arguments)
    }

    fn give_named(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let takes_rest = |param: &&Param| param.unit == Unit::Rest;
        let known = self.param(key).filter(|param| !takes_rest(param));
        if known.is_some() || !self.model.params.iter().any(|param| takes_rest(&param)) {
            return self.give(find_param(self.model, key)?, value);
        }
        if self.rest.iter().any(|(other, _)| other == key) {
            return Err(SpecError::Repeated {
                model: self.model.name,
                key: key.to_owned(),
            });
        }
        self.rest.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    fn give(&mut self, index: usize, value: &str) -> Result<(), SpecError> {
        let param = &self.model.params[index];
        self.doubts
            .get_mut()
            .extend(capital_rates(param.unit, value));
        if value.is_empty() {
            return Err(SpecError::NoValue {
                model: self.model.name,
                key: param.name,
                example: param.unit.example(),
            });
        }
        if self.values[index].replace(value.to_owned()).is_some() {
            return Err(SpecError::Repeated {
                model: self.model.name,
                key: param.name.to_string(),
            });
        }
        Ok(())
    }

    /// Returns the model's name.
    pub fn model_name(&self) -> &'static str {
        self.model.name
    }

    /// Returns the value of `key` or its default.
    ///
    /// # Errors
    /// [`SpecError::Missing`] if there is neither; [`SpecError::Value`] if the value does not
    /// parse.
    pub fn required<T>(&self, key: &'static str) -> Result<T, SpecError>
    where
        T: FromStr<Err = UnitError>,
    {
        self.read(key, T::from_str)
    }

    /// Returns the value of `key` or its default, if any.
    ///
    /// # Errors
    /// [`SpecError::Value`] if the value does not parse.
    pub fn optional<T>(&self, key: &'static str) -> Result<Option<T>, SpecError>
    where
        T: FromStr<Err = UnitError>,
    {
        if self.word(key).is_none() {
            return Ok(None);
        }
        self.required(key).map(Some)
    }

    /// Returns a required parameter's text.
    ///
    /// # Errors
    /// If it is missing.
    pub fn required_text(&self, key: &'static str) -> Result<&str, SpecError> {
        self.word(key).ok_or_else(|| self.missing(key))
    }

    /// Like [`Arguments::required`], with a custom parser.
    ///
    /// # Errors
    /// [`SpecError::Missing`] without value or default; [`SpecError::Value`] if `parse` fails.
    pub fn read<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Result<T, SpecError> {
        let text = self.required_text(key)?;
        let in_range = self
            .param(key)
            .map_or(Ok(()), |param| param.check_range(text));
        in_range
            .and_then(|()| parse(text))
            .map_err(|source| SpecError::Value {
                model: self.model.name,
                key,
                source,
            })
    }

    /// Returns the error for a missing required value. A plain number assigned to a parameter
    /// without a unit was probably meant for `key`.
    fn missing(&self, key: &'static str) -> SpecError {
        let model = self.model.name;
        let unit = self.param(key).map(|param| param.unit);
        let without_unit = |index: &usize| match check(unit?, self.values[*index].as_ref()?) {
            Err(Some(source @ UnitError::MissingUnit { .. })) => Some(source),
            _ => None,
        };
        match self.bare.iter().find_map(without_unit) {
            Some(source) => SpecError::Value { model, key, source },
            None => SpecError::Missing {
                model,
                key,
                example: self.example(key),
            },
        }
    }

    /// Returns the index of the chosen keyword.
    ///
    /// # Errors
    /// [`SpecError::Choice`] if the value is missing or not one of the keywords.
    pub fn choice(&self, key: &'static str) -> Result<usize, SpecError> {
        let words = match self.param(key).map(|param| param.unit) {
            Some(Unit::Choice(words)) => words,
            _ => &[],
        };
        let text = self.word(key).unwrap_or("");
        let found = words.iter().position(|word| *word == text);
        found.ok_or_else(|| SpecError::Choice {
            model: self.model.name,
            key,
            text: text.to_owned(),
            known: words.join(", "),
        })
    }

    /// Returns the text of `key` or of its default, if any.
    pub fn word(&self, key: &str) -> Option<&str> {
        let index = index_of(self.model, key)?;
        self.values[index]
            .as_deref()
            .or(self.model.params[index].default)
    }

    /// Returns a model with its specification text: all parameters that have a value or default.
    pub(crate) fn described<T: ?Sized>(&self, model: Box<T>) -> Described<T> {
        Described::new(self.notation(&[]), model)
    }

    /// Returns the model's name with all parameters that have a value or default, as written: the
    /// specification text of models that read files.
    pub(crate) fn text(&self) -> String {
        let words = self.model.params.iter();
        let words = words.filter_map(|param| Some((param.name, self.word(param.name)?)));
        let pairs: Vec<String> = words.map(|(key, word)| format!("{key}={word}")).collect();
        format!("{}:{}", self.model.name, pairs.join(","))
    }

    /// Returns the model's name with all parameters except `omitted` that have a value or default,
    /// each value as its unit prints it.
    pub(crate) fn notation(&self, omitted: &[Param]) -> String {
        let keys = self.model.params.iter().map(|param| param.name);
        let keys = keys.filter(|key| omitted.iter().all(|other| other.name != *key));
        let mut text = format!("{}:{}", self.model.name, self.pairs(keys));
        for (key, value) in &self.rest {
            text += &format!(",{key}={value}");
        }
        text
    }

    /// Returns `key=value,key=value` for the given parameters, except those without a value or
    /// default. Each value is printed by its unit.
    pub(crate) fn pairs(&self, keys: impl IntoIterator<Item = &'static str>) -> String {
        let pairs = keys.into_iter().filter_map(|key| {
            let word = self.word(key)?;
            let printed = printed(self.param(key)?.unit, word);
            Some(format!(
                "{key}={}",
                printed.unwrap_or_else(|_| word.to_owned())
            ))
        });
        pairs.collect::<Vec<String>>().join(",")
    }

    /// Whether a parameter's value is its default.
    pub(crate) fn is_default(&self, param: &Param) -> bool {
        let text = |word| printed(param.unit, word).ok();
        self.word(param.name).and_then(text) == param.default.and_then(text)
    }

    /// Reads the file named by `key` line by line, buffering at most one line of up to 64 KiB.
    /// `take` receives each line's number, from 1, and its text without the line ending; its errors
    /// are reported with that number.
    ///
    /// # Errors
    /// The errors of [`Arguments::pieces`]; also [`SpecError::Content`] for a line above 64 KiB or
    /// invalid UTF-8.
    pub fn lines(
        &self,
        key: &'static str,
        take: &mut dyn FnMut(u64, &str) -> Result<(), String>,
    ) -> Result<(), SpecError> {
        let mut splitter = LineSplitter::default();
        self.pieces(key, &mut |piece| splitter.feed(piece, take))?;
        splitter
            .finish(take)
            .map_err(|message| self.file_error(key, message))
    }

    /// Returns an error about the contents of the file named by `key`.
    pub fn file_error(&self, key: &'static str, message: impl Into<String>) -> SpecError {
        SpecError::Content {
            model: self.model.name,
            key,
            path: self.word(key).unwrap_or_default().to_owned(),
            message: message.into(),
        }
    }

    /// Returns an error about a file or plugin that cannot be read or loaded.
    fn unreadable(&self, key: &'static str, message: String) -> SpecError {
        SpecError::File {
            model: self.model.name,
            key,
            path: self.word(key).unwrap_or_default().to_owned(),
            message,
        }
    }

    /// Loads the plugin named by `key`, with every `key=value` that no other parameter accepted.
    ///
    /// # Errors
    /// [`SpecError::Missing`] if no plugin is named; [`SpecError::File`] if the plugin cannot be
    /// loaded or rejects its parameters.
    pub fn plugin(&self, key: &'static str, hook: Hook) -> Result<Box<dyn Plugin>, SpecError> {
        let path = self.required_text(key)?;
        let loaded = self.loader.plugin(path, hook, &self.rest);
        loaded.map_err(|message| self.unreadable(key, message))
    }

    /// Reads the file named by `key` in pieces of any size.
    ///
    /// # Errors
    /// [`SpecError::Missing`] if no file is named; [`SpecError::File`] if the loader cannot read
    /// it; [`SpecError::Content`] if `take` fails.
    pub fn pieces(&self, key: &'static str, take: TakePiece<'_>) -> Result<(), SpecError> {
        let path = self.required_text(key)?;
        let mut refused = false;
        let read = self.loader.read(path, &mut |piece| {
            take(piece).inspect_err(|_| refused = true)
        });
        read.map_err(|message| {
            if refused {
                self.file_error(key, message)
            } else {
                self.unreadable(key, message)
            }
        })
    }

    /// Returns an error about a combination of arguments.
    pub fn invalid(&self, message: impl Into<String>) -> SpecError {
        SpecError::Unfit {
            model: self.model.name,
            message: message.into(),
        }
    }

    /// Records a warning about a value that is allowed but probably unintended.
    pub fn doubt(&self, message: impl Into<String>) {
        self.doubts.borrow_mut().push(message.into());
    }

    /// Returns the recorded warnings.
    pub(crate) fn into_doubts(self) -> Vec<String> {
        self.doubts.into_inner()
    }

    /// Returns the loader, for nested models.
    pub(crate) fn loader(&self) -> &'a dyn Loader {
        self.loader
    }

    fn param(&self, key: &str) -> Option<&'static Param> {
        Some(&self.model.params[index_of(self.model, key)?])
    }

    pub(crate) fn example(&self, key: &str) -> &'static str {
        self.param(key)
            .map_or("value", |param| param.unit.example())
    }
}

fn index_of(model: &ModelInfo, key: &str) -> Option<usize> {
    model.params.iter().position(|param| param.name == key)
}

fn find_param(model: &'static ModelInfo, key: &str) -> Result<usize, SpecError> {
    index_of(model, key).ok_or_else(|| SpecError::UnknownParam {
        model: model.name,
        key: key.to_owned(),
        known: known_params(model),
    })
}

/// Returns the index of the parameter for a value without a key: the first remaining one whose unit
/// accepts it, or else the one with the most helpful error.
fn bare_param(
    model: &'static ModelInfo,
    values: &[Option<String>],
    value: &str,
) -> Result<usize, SpecError> {
    let free = (0..values.len()).filter(|index| values[*index].is_none());
    let free: Vec<usize> = free.collect();
    let find = |accepts: fn(Unit, &str) -> bool| {
        let mut free = free.iter();
        free.find(|index| accepts(model.params[**index].unit, value))
    };
    if let Some(index) = find(reads).or_else(|| find(understands)) {
        return Ok(*index);
    }
    let measures = free.iter().map(|index| &model.params[*index]);
    let measures = measures.filter(|param| !matches!(param.unit, Unit::Choice(_) | Unit::Rest));
    let measures: Vec<&Param> = measures.collect();
    match measures.as_slice() {
        [first, rest @ ..] if rest.iter().any(|param| param.unit != first.unit) => {
            let with_unit = |param: &&Param| match check(param.unit, value) {
                Err(Some(UnitError::MissingUnit { units, .. })) => {
                    Some(longwire_units::with_unit(value, units[0]))
                }
                _ => None,
            };
            let mut written: Vec<String> = measures.iter().filter_map(with_unit).collect();
            written.dedup();
            if !written.is_empty() {
                let (text, written) = (value.to_owned(), written.join(" or "));
                return Err(SpecError::NoUnit { text, written });
            }
            let example = |param: &&Param| format!("{}={}", param.name, param.unit.example());
            let examples: Vec<String> = measures.iter().map(example).collect();
            Err(SpecError::Misfit {
                model: model.name,
                text: value.to_owned(),
                examples: examples.join(" or "),
            })
        }
        // If none remains, the first is reported as repeated.
        _ if !values.is_empty() => Ok(free.first().copied().unwrap_or(0)),
        _ => Err(SpecError::UnknownParam {
            model: model.name,
            key: value.to_owned(),
            known: known_params(model),
        }),
    }
}

/// Whether `value` is valid in this unit.
pub fn reads(unit: Unit, value: &str) -> bool {
    check(unit, value).is_ok()
}

/// Whether `value` has this unit's syntax, even if out of range.
fn understands(unit: Unit, value: &str) -> bool {
    use UnitError::{Negative, TooFine, TooLarge, ZeroRate};
    matches!(
        check(unit, value),
        Ok(())
            | Err(Some(
                Negative { .. } | TooFine { .. } | TooLarge { .. } | ZeroRate { .. }
            ))
    )
}

/// Checks that `value` parses in this unit. For a word that is not among the choices, an empty
/// file name or text, or [`Unit::Rest`], the error is `None`.
fn check(unit: Unit, value: &str) -> Result<(), Option<UnitError>> {
    printed(unit, value).map(drop)
}

/// Returns `value` as its unit prints it.
fn printed(unit: Unit, value: &str) -> Result<String, Option<UnitError>> {
    use longwire_units::{
        Bytes, Correlation, Nanos, Packets, Probability, parse_count, parse_ratio, parse_real,
        parse_signed,
    };
    fn text_of<T: FromStr<Err = UnitError> + ToString>(value: &str) -> Result<String, UnitError> {
        T::from_str(value).map(|value| value.to_string())
    }
    let printed = match unit {
        Unit::Time => text_of::<Nanos>(value),
        Unit::Rate => text_of::<BitRate>(value),
        Unit::Size => text_of::<Bytes>(value),
        Unit::Packets => text_of::<Packets>(value),
        Unit::Probability => text_of::<Probability>(value),
        Unit::Correlation => text_of::<Correlation>(value),
        Unit::Ratio => parse_ratio(value).map(|ratio| format!("{ratio:e}")),
        Unit::Count => parse_count(value).map(|count| count.to_string()),
        Unit::Signed => parse_signed(value).map(|number| number.to_string()),
        Unit::Real => parse_real(value).map(|number| number.to_string()),
        Unit::File(_) | Unit::Text(_) if !value.is_empty() => Ok(value.to_owned()),
        Unit::Choice(words) if words.contains(&value) => Ok(value.to_owned()),
        // Accepted only with a key.
        Unit::File(_) | Unit::Text(_) | Unit::Choice(_) | Unit::Rest => return Err(None),
    };
    printed.map_err(Some)
}

fn known_params(model: &ModelInfo) -> String {
    if model.params.is_empty() {
        return "no parameters".to_owned();
    }
    let names: Vec<&str> = model.params.iter().map(|param| param.name).collect();
    names.join(", ")
}

/// Returns a warning about rates such as `10Mbps` and `0s/10Mbps;5s/2Mbps`.
fn capital_rates(unit: Unit, value: &str) -> Option<String> {
    if !matches!(unit, Unit::Rate | Unit::Text(_)) {
        return None;
    }
    let mut tokens = value.split(['/', ';']).map(str::trim);
    tokens.find_map(BitRate::doubt)
}
