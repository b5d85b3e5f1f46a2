//! Link configuration as text: the common form of the command line, the configuration
//! file and HTTP.

mod table;
mod text;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use crate::link::{Doubt, LinkChange, LinkConfig};
use crate::loader::{Loader, NoLoader};
use crate::models::{self, Kind};
use crate::spec::SpecError;

pub use table::{LINK_OPTIONS, LinkOption};
pub use text::LineError;

/// Options of one direction, as the user wrote them. An absent option is `None`, absent
/// loss is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// Rate model, `10mbit` or `unlimited`.
    pub rate: Option<String>,
    /// Framing profile, `ethernet`.
    pub framing: Option<String>,
    /// Queue discipline, `100p` or `unlimited`; `derived` is tail drop with a limit
    /// derived from rate and delay.
    pub queue: Option<String>,
    /// Loss models, each `1%` or similar; `none` alone is no loss.
    pub loss: Vec<String>,
    /// Corruption model, `0.1%`, or `none`.
    pub corrupt: Option<String>,
    /// Duplication model, `1%`, or `none`.
    pub duplicate: Option<String>,
    /// Delay model, `20ms`, or `none`.
    pub delay: Option<String>,
    /// Reordering model, `hold:1%,5ms`, or `none`.
    pub reorder: Option<String>,
    /// Order policy, `reorder`.
    pub order: Option<String>,
    /// Maximum payload after the MAC header: a plain number of bytes, `fragment:1400`,
    /// or `none`.
    pub mtu: Option<String>,
    /// Rewriting models, each `ip:ttl=1` or similar; `none` alone is none.
    pub rewrite: Vec<String>,
}

/// Refusal of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {source}")]
pub struct OptionError {
    /// The option's name: `rate`, `framing`, `queue`, …
    pub option: &'static str,
    /// The fault of its value.
    pub source: Box<SpecError>,
}

/// Notation for the absence of a limit or of losses.
const NONE: &str = "none";

/// Notation for a queue whose limit follows from rate and delay.
const DERIVED: &str = "derived";

impl LinkOptions {
    /// Parses every option. Absent options are as in [`LinkConfig::default`]. Models
    /// that need files or plugins are refused.
    pub fn parse(&self) -> Result<LinkConfig, OptionError> {
        self.parse_with(&NoLoader)
    }

    /// Parses every option; files and plugins come from `loader`.
    pub fn parse_with(&self, loader: &dyn Loader) -> Result<LinkConfig, OptionError> {
        let mut config = LinkConfig::default();
        let mut reader = OptionReader {
            loader,
            doubts: Vec::new(),
        };
        if let Some(rate) = reader.read(&models::RATE, &self.rate)? {
            config.rate = rate;
        }
        if let Some(framing) = reader.read(&models::FRAMING, &self.framing)? {
            config.framing = framing;
        }
        config.queue = reader.read_unless(DERIVED, &models::QUEUE, &self.queue)?;
        config.loss = reader.read_list(&models::LOSS, &self.loss)?;
        config.corruption = reader.read_unless(NONE, &models::CORRUPTION, &self.corrupt)?;
        config.duplication = reader.read_unless(NONE, &models::DUPLICATION, &self.duplicate)?;
        if let Some(delay) = reader.read_unless(NONE, &models::DELAY, &self.delay)? {
            config.delay = delay;
        }
        config.reordering = reader.read_unless(NONE, &models::REORDERING, &self.reorder)?;
        if let Some(order) = reader.read(&models::ORDER, &self.order)? {
            config.order = order;
        }
        if let Some(mtu) = reader.read(&models::MTU, &self.mtu)? {
            config.mtu = mtu;
        }
        config.rewrite = reader.read_list(&models::REWRITE, &self.rewrite)?;
        config.doubts = reader.doubts;
        config.doubts.extend(self.pair_doubt());
        Ok(config)
    }

    /// Returns a doubt about options that are valid one by one and probably not
    /// intended together: a CellReplay trace whose base delay is taken from its file by
    /// the delay.
    pub fn pair_doubt(&self) -> Option<Doubt> {
        let (rate, delay) = (self.rate.as_deref()?, self.delay.as_deref()?);
        let rate = models::RATE.arguments("cellreplay", rate)?;
        let delay = models::DELAY.arguments("trace", delay)?;
        if rate.word("trains") != delay.word("file") {
            return None;
        }
        let message = match rate.word("base-delay") {
            Some("included") => {
                "the base delay of its trains is included already, and the delay's trace adds it \
                 again: leave out the delay"
            }
            _ => {
                "the delay's trace changes the base delay within a train, where CellReplay keeps \
                 that of its first packet; write base-delay=included here and leave out the \
                 delay, and packets arrive as CellReplay delivers them"
            }
        };
        Some(Doubt {
            option: models::RATE.name,
            message: message.to_string(),
        })
    }

    /// Parses a change of a running link. Absent options keep their values; defaults
    /// are restored explicitly: `unlimited`, `none`, `in-order`, or `derived` for the
    /// queue. Losses and rewriting models replace all previous ones. Files and plugins
    /// come from `loader`.
    ///
    /// # Errors
    /// The first option that is refused, and why.
    pub fn parse_change_with(&self, loader: &dyn Loader) -> Result<LinkChange, OptionError> {
        let LinkConfig {
            rate,
            framing,
            queue,
            loss,
            corruption,
            duplication,
            delay,
            reordering,
            order,
            mtu,
            rewrite,
            epoch: _,
            doubts: _,
        } = self.parse_with(loader)?;
        Ok(LinkChange {
            rate: self.rate.as_ref().map(|_| rate),
            framing: self.framing.as_ref().map(|_| framing),
            queue: self.queue.as_ref().map(|_| queue),
            loss: (!self.loss.is_empty()).then_some(loss),
            corruption: self.corrupt.as_ref().map(|_| corruption),
            duplication: self.duplicate.as_ref().map(|_| duplication),
            delay: self.delay.as_ref().map(|_| delay),
            reordering: self.reorder.as_ref().map(|_| reordering),
            order: self.order.as_ref().map(|_| order),
            mtu: self.mtu.as_ref().map(|_| mtu),
            rewrite: (!self.rewrite.is_empty()).then_some(rewrite),
            state: None,
        })
    }

    /// Returns these options overridden by `over`: `--delay` by `--up-delay`. Options
    /// absent in `over` stay; its losses replace all of these.
    pub fn overlay(&self, over: &LinkOptions) -> LinkOptions {
        let lay = |under: &Option<String>, over: &Option<String>| {
            over.as_ref().or(under.as_ref()).cloned()
        };
        let lay_list = |under: &Vec<String>, over: &Vec<String>| {
            if over.is_empty() {
                under.clone()
            } else {
                over.clone()
            }
        };
        LinkOptions {
            rate: lay(&self.rate, &over.rate),
            framing: lay(&self.framing, &over.framing),
            queue: lay(&self.queue, &over.queue),
            loss: lay_list(&self.loss, &over.loss),
            corrupt: lay(&self.corrupt, &over.corrupt),
            duplicate: lay(&self.duplicate, &over.duplicate),
            delay: lay(&self.delay, &over.delay),
            reorder: lay(&self.reorder, &over.reorder),
            order: lay(&self.order, &over.order),
            mtu: lay(&self.mtu, &over.mtu),
            rewrite: lay_list(&self.rewrite, &over.rewrite),
        }
    }
}

impl LinkConfig {
    /// Returns every part and its text, which [`LinkOptions::parse`] reads back to the
    /// same link. The queue is the effective one, given or derived. Each loss model is
    /// a separate part.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        parts.push((models::RATE.name, self.rate.to_string()));
        parts.push((models::FRAMING.name, self.framing.to_string()));
        let queue = match &self.queue {
            Some(queue) => queue.to_string(),
            None => self.queue_limit().to_string(),
        };
        parts.push((models::QUEUE.name, queue));
        push_list(&mut parts, models::LOSS.name, &self.loss);
        push_option(&mut parts, models::CORRUPTION.name, &self.corruption);
        push_option(&mut parts, models::DUPLICATION.name, &self.duplication);
        parts.push((models::DELAY.name, self.delay.to_string()));
        push_option(&mut parts, models::REORDERING.name, &self.reordering);
        parts.push((models::ORDER.name, self.order.to_string()));
        parts.push((models::MTU.name, self.mtu.to_string()));
        push_list(&mut parts, models::REWRITE.name, &self.rewrite);
        parts
    }
}

/// Parts of a link and their texts.
type Parts = Vec<(&'static str, String)>;

fn push_list<M: Display>(parts: &mut Parts, name: &'static str, models: &[M]) {
    if models.is_empty() {
        parts.push((name, NONE.to_string()));
    }
    parts.extend(models.iter().map(|model| (name, model.to_string())));
}

fn push_option<M: Display>(parts: &mut Parts, name: &'static str, model: &Option<M>) {
    let text = model.as_ref().map_or(NONE.to_string(), M::to_string);
    parts.push((name, text));
}

fn refused(option: &'static str, source: SpecError) -> OptionError {
    OptionError {
        option,
        source: Box::new(source),
    }
}

/// Parses options and collects doubts about them.
struct OptionReader<'a> {
    loader: &'a dyn Loader,
    doubts: Vec<Doubt>,
}

impl OptionReader<'_> {
    fn parse<M>(&mut self, kind: &Kind<M>, text: &str) -> Result<M, OptionError> {
        let mut doubts = Vec::new();
        let model = kind.parse_noting(text, self.loader, &mut doubts);
        let option = kind.name;
        let doubts = doubts.into_iter().map(|message| Doubt { option, message });
        self.doubts.extend(doubts);
        model.map_err(|source| refused(kind.name, source))
    }

    fn read<M>(&mut self, kind: &Kind<M>, text: &Option<String>) -> Result<Option<M>, OptionError> {
        let text = text.as_deref();
        text.map(|text| self.parse(kind, text)).transpose()
    }

    fn read_unless<M>(
        &mut self,
        default: &str,
        kind: &Kind<M>,
        text: &Option<String>,
    ) -> Result<Option<M>, OptionError> {
        match text {
            Some(text) if text.trim() == default => Ok(None),
            text => self.read(kind, text),
        }
    }

    fn read_list<M>(&mut self, kind: &Kind<M>, texts: &[String]) -> Result<Vec<M>, OptionError> {
        if let [only] = texts
            && only.trim() == NONE
        {
            return Ok(Vec::new());
        }
        texts.iter().map(|text| self.parse(kind, text)).collect()
    }
}
