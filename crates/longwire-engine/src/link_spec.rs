//! Link specifications, shared by the command line, configuration files, the HTTP API and library
//! users.

mod joint;
mod text;

use longwire_units::{BitRate, Nanos, Probability};

use crate::loader::Loader;
use crate::models::delay::DelayModel;
use crate::models::loss::PlacedLoss;
use crate::models::queue::{Queue, QueueLimit};
use crate::models::rate::Rate;
use crate::models::reordering::delay_least;
use crate::models::{self, Described, Kind};
use crate::parts::{Doubt, Held, LinkConfig, LinkSpec, PARTS, Part};
use crate::prelude::*;
use crate::spec::{ModelSpec, SpecError};

pub use text::LinkSpecError;

/// An error in one option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {source}")]
pub struct OptionError {
    /// Option name, such as `rate`, `framing` or `queue`.
    pub option: &'static str,
    /// Error in the option's value.
    pub source: Box<SpecError>,
}

/// Models specified for one part; empty for `none` and for a `derived` queue.
#[derive(Clone, Debug)]
pub struct Setting<M>(Vec<ModelSpec<M>>);

impl<M> PartialEq for Setting<M> {
    fn eq(&self, other: &Setting<M>) -> bool {
        self.0 == other.0
    }
}

impl<M> Eq for Setting<M> {}

impl<M: Clone> Setting<M> {
    /// Returns the models, in the given order.
    pub fn models(&self) -> &[ModelSpec<M>] {
        &self.0
    }

    /// Returns the first model of a part, if any.
    pub(crate) fn first(setting: &Option<Setting<M>>) -> Option<&ModelSpec<M>> {
        setting.as_ref()?.models().first()
    }

    /// Returns the text of each model.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(ModelSpec::to_string).collect()
    }

    /// Returns warnings about the values.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let doubts = self.0.iter().flat_map(ModelSpec::doubts);
        doubts.cloned().collect()
    }

    /// Returns the paths of the files and plugins used.
    pub(crate) fn files(&self) -> Vec<String> {
        let files = self.0.iter().flat_map(ModelSpec::files);
        files.cloned().collect()
    }

    /// Sets a part to a model; if the part is a list, appends the model.
    pub(crate) fn push(setting: &mut Option<Setting<M>>, model: ModelSpec<M>, is_list: bool) {
        match setting {
            Some(Setting(models)) if is_list => models.push(model),
            setting => *setting = Some(Setting(Vec::from([model]))),
        }
    }

    /// Parses a value and sets a part to it; if the part is a list, appends it. `absent` is the
    /// keyword for "no model", which cannot be combined with models.
    pub(crate) fn add(
        setting: &mut Option<Setting<M>>,
        kind: &Kind<M>,
        (absent, is_list): (Option<&str>, bool),
        text: &str,
        loader: &dyn Loader,
    ) -> Result<(), OptionError> {
        let alone = !is_list || setting.is_none();
        if alone && absent == Some(text.trim()) {
            *setting = Some(Setting(Vec::new()));
            return Ok(());
        }
        let model = ModelSpec::parse(kind, text, loader);
        let model = model.map_err(|source| OptionError::new(kind, source))?;
        let given = Setting(Vec::from([model]));
        Setting::append(setting, &given, kind, (absent, is_list))
    }

    /// Sets a part to the models of `other`; if the part is a list, appends them.
    pub(crate) fn append(
        setting: &mut Option<Setting<M>>,
        other: &Setting<M>,
        kind: &Kind<M>,
        (absent, is_list): (Option<&str>, bool),
    ) -> Result<(), OptionError> {
        match setting {
            Some(Setting(models)) if is_list => {
                if models.is_empty() || other.0.is_empty() {
                    // A list accepts only model names, so the keyword is an unknown model.
                    let unknown = kind.unknown(absent.unwrap_or_default());
                    return Err(OptionError::new(kind, unknown));
                }
                models.extend_from_slice(&other.0);
            }
            setting => *setting = Some(other.clone()),
        }
        Ok(())
    }

    /// Builds the models as stored in a link; `None` if the part is not specified.
    pub(crate) fn build<H: Held<M>>(
        setting: &Option<Setting<M>>,
        kind: &Kind<M>,
        loader: &dyn Loader,
    ) -> Result<Option<H>, OptionError> {
        let Some(Setting(models)) = setting else {
            return Ok(None);
        };
        let built = models.iter().map(|model| model.build(kind, loader));
        let built: Result<Vec<M>, SpecError> = built.collect();
        let built = built.map_err(|source| OptionError::new(kind, source))?;
        Ok(Some(H::from_models(built)))
    }
}

impl OptionError {
    fn new<M>(kind: &Kind<M>, source: SpecError) -> OptionError {
        OptionError {
            option: kind.name,
            source: Box::new(source),
        }
    }
}

impl LinkSpec {
    /// Returns an ideal wire: infinite rate, no delay, no loss.
    pub fn new() -> LinkSpec {
        LinkSpec::default()
    }

    /// Parses a line such as `rate=10mbit delay=20ms`; `loader` provides files and plugins.
    ///
    /// # Errors
    /// The first word or value that is rejected.
    pub fn parse(line: &str, loader: &dyn Loader) -> Result<LinkSpec, LinkSpecError> {
        text::read(line, loader)
    }

    /// Parses a value and sets the named part to it; if the part is a list, appends it. `loader`
    /// provides files and plugins.
    ///
    /// # Errors
    /// If the name is unknown or the value is rejected.
    pub fn set(
        &mut self,
        name: &str,
        text: &str,
        loader: &dyn Loader,
    ) -> Result<(), LinkSpecError> {
        Ok(text::part(name)?.add(self, text, loader)?)
    }

    /// Returns each specified value with its part's name, in help order.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        let given = PARTS.iter().flat_map(|part| {
            let texts = part.texts(self).unwrap_or_default();
            texts.into_iter().map(|text| (part.name, text))
        });
        given.collect()
    }

    /// Returns the specified values of the named part; empty for an unknown name.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let texts = Part::named(name).and_then(|part| part.texts(self));
        texts.unwrap_or_default()
    }

    /// Returns the paths of model files and plugins, as written.
    pub fn files(&self) -> impl Iterator<Item = String> {
        PARTS.iter().flat_map(|part| part.files(self))
    }

    /// Whether no part is specified.
    pub fn is_empty(&self) -> bool {
        *self == LinkSpec::default()
    }

    /// Returns warnings: values that are allowed but probably unintended.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = self.value_doubts();
        doubts.extend(self.joint_doubts());
        doubts
    }

    /// Like [`LinkSpec::doubts`], but judges each value in isolation.
    pub fn value_doubts(&self) -> Vec<Doubt> {
        let doubts = PARTS.iter().flat_map(|part| part.doubts(self));
        doubts.collect()
    }
}

impl LinkSpec {
    /// Returns the rate, or the mean of a varying rate; `None` if infinite or unknown.
    pub fn bit_rate(&self) -> Option<BitRate> {
        Setting::first(&self.rate)?.prototype().bit_rate()
    }

    /// Returns the mean delay.
    pub fn mean_delay(&self) -> Nanos {
        Setting::first(&self.delay).map_or(Nanos::ZERO, |delay| delay.prototype().mean())
    }

    /// Returns the [`LinkConfig::lookahead`] of the specified link.
    pub fn lookahead(&self) -> Nanos {
        let reordering = Setting::first(&self.reordering).map(|model| &**model.prototype());
        Setting::first(&self.delay).map_or(Nanos::ZERO, |delay| {
            delay_least(&**delay.prototype(), reordering)
        })
    }

    /// Whether any model is a plugin.
    pub fn has_plugins(&self) -> bool {
        let mut given = PARTS.iter().filter_map(|part| part.texts(self)).flatten();
        given.any(|text| models::is_plugin(&text))
    }

    /// Returns the queue's limit, specified or derived from rate and delay.
    pub fn queue_limit(&self) -> QueueLimit {
        match Setting::first(&self.queue) {
            Some(queue) => queue.prototype().limit(),
            None => QueueLimit::derived(self.bit_rate(), self.mean_delay()),
        }
    }

    /// Returns the maximum payload after the MAC header, if limited.
    pub fn mtu_bytes(&self) -> Option<u32> {
        Setting::first(&self.mtu)?.prototype().bytes()
    }
}

impl LinkConfig {
    /// Returns the text of a part for which no model is specified: the effective queue limit, or
    /// the keyword for "no model".
    pub(crate) fn effective(&self, part: &str, absent: &str) -> String {
        if part == models::QUEUE.name {
            return self.queue_limit().to_string();
        }
        absent.to_string()
    }
}

impl From<BitRate> for ModelSpec<Rate> {
    fn from(rate: BitRate) -> ModelSpec<Rate> {
        Rate::Fixed(rate).into()
    }
}

impl From<QueueLimit> for ModelSpec<Queue> {
    fn from(limit: QueueLimit) -> ModelSpec<Queue> {
        Queue::TailDrop(limit).into()
    }
}

impl From<Nanos> for ModelSpec<Described<dyn DelayModel>> {
    fn from(delay: Nanos) -> ModelSpec<Described<dyn DelayModel>> {
        Described::from(delay).into()
    }
}

impl From<Probability> for ModelSpec<PlacedLoss> {
    /// Returns independent loss on the medium.
    fn from(probability: Probability) -> ModelSpec<PlacedLoss> {
        models::loss::packet::independent(probability).into()
    }
}
