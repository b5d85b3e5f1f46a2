//! One direction's configuration as text: what the command line, the
//! configuration file and HTTP all read.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::link::LinkConfig;
use crate::models::rate::Rate;
use crate::models::{self, Kind};
use crate::spec::SpecError;
use crate::units::{UnitError, parse_count};

/// The options of one direction, as their user wrote them. What is `None`,
/// and an empty `loss`, was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// A rate model, `10mbit` or `unlimited`.
    pub rate: Option<String>,
    /// A framing profile, `ethernet`.
    pub framing: Option<String>,
    /// A queue discipline, `100p` or `unlimited`.
    pub queue: Option<String>,
    /// Loss models, each `1%` or the like; `none` alone is no loss.
    pub loss: Vec<String>,
    /// A delay model, `20ms`.
    pub delay: Option<String>,
    /// An order policy, `reorder`.
    pub order: Option<String>,
    /// The largest payload behind the MAC header: a plain count of bytes, or
    /// `none`.
    pub mtu: Option<String>,
}

/// Why an option was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {source}")]
pub struct OptionError {
    /// The option's name: `rate`, `framing`, `queue`, `loss`, `delay`,
    /// `order` or `mtu`.
    pub option: &'static str,
    /// What was wrong with its value.
    pub source: Box<SpecError>,
}

/// Every IPv4 link carries at least this much (RFC 791, section 3.2).
const MTU_MIN: u64 = 68;

/// The longest IP packet.
const MTU_MAX: u64 = 65_535;

/// How the absence of a limit or of losses is written.
const NONE: &str = "none";

impl LinkOptions {
    /// Reads every option. What was left out is as in
    /// [`LinkConfig::default`].
    pub fn parse(&self) -> Result<LinkConfig, OptionError> {
        let mut config = LinkConfig::default();
        if let Some(rate) = read(&models::RATE, &self.rate)? {
            config.rate = rate.bit_rate();
        }
        if let Some(framing) = read(&models::FRAMING, &self.framing)? {
            config.framing = framing;
        }
        config.queue = read(&models::QUEUE, &self.queue)?;
        config.loss = read_loss(&self.loss)?;
        if let Some(delay) = read(&models::DELAY, &self.delay)? {
            config.delay = delay;
        }
        if let Some(order) = read(&models::ORDER, &self.order)? {
            config.order = order;
        }
        if let Some(mtu) = &self.mtu {
            config.mtu = read_mtu(mtu.trim()).map_err(|source| refused("mtu", source.into()))?;
        }
        Ok(config)
    }

    /// These options with `over` laid over them: `--delay` with
    /// `--up-delay`. What `over` leaves out stays; losses it gives replace
    /// all of these.
    pub fn overlay(&self, over: &LinkOptions) -> LinkOptions {
        let lay = |under: &Option<String>, over: &Option<String>| {
            over.as_ref().or(under.as_ref()).cloned()
        };
        let loss = if over.loss.is_empty() {
            &self.loss
        } else {
            &over.loss
        };
        LinkOptions {
            rate: lay(&self.rate, &over.rate),
            framing: lay(&self.framing, &over.framing),
            queue: lay(&self.queue, &over.queue),
            loss: loss.clone(),
            delay: lay(&self.delay, &over.delay),
            order: lay(&self.order, &over.order),
            mtu: lay(&self.mtu, &over.mtu),
        }
    }
}

impl LinkConfig {
    /// Every part and its text, which [`LinkOptions::parse`] reads back to
    /// the same link. The queue is the one in force, given or derived. Each
    /// loss model is a part of its own.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        parts.push((models::RATE.name, Rate::from(self.rate).to_string()));
        parts.push((models::FRAMING.name, self.framing.to_string()));
        parts.push((models::QUEUE.name, self.queue_limit().to_string()));
        if self.loss.is_empty() {
            parts.push((models::LOSS.name, NONE.to_string()));
        }
        for loss in &self.loss {
            parts.push((models::LOSS.name, loss.to_string()));
        }
        parts.push((models::DELAY.name, self.delay.to_string()));
        parts.push((models::ORDER.name, self.order.to_string()));
        let mtu = self
            .mtu
            .map_or_else(|| NONE.to_string(), |mtu| mtu.to_string());
        parts.push(("mtu", mtu));
        parts
    }
}

fn refused(option: &'static str, source: SpecError) -> OptionError {
    OptionError {
        option,
        source: Box::new(source),
    }
}

fn read<M>(kind: &Kind<M>, text: &Option<String>) -> Result<Option<M>, OptionError> {
    let parse = |text| {
        kind.parse(text)
            .map_err(|source| refused(kind.name, source))
    };
    text.as_deref().map(parse).transpose()
}

fn read_loss(texts: &[String]) -> Result<Vec<models::loss::PlacedLoss>, OptionError> {
    if let [only] = texts
        && only.trim() == NONE
    {
        return Ok(Vec::new());
    }
    let kind = &models::LOSS;
    let parse = |text: &String| {
        kind.parse(text)
            .map_err(|source| refused(kind.name, source))
    };
    texts.iter().map(parse).collect()
}

fn read_mtu(text: &str) -> Result<Option<u32>, UnitError> {
    if text == NONE {
        return Ok(None);
    }
    match parse_count(text)? {
        mtu @ MTU_MIN..=MTU_MAX => Ok(Some(mtu as u32)),
        _ => Err(UnitError::OutOfRange {
            text: text.to_string(),
            range: "68 to 65535 bytes behind the MAC header; write 'none' for no limit",
        }),
    }
}
