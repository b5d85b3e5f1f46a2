//! The models a link is made of, and their registry.
//!
//! A model is one file and one line in its kind's table below. Names, help,
//! defaults, the documentation and the conformance tests follow from the
//! tables.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

pub mod delay;
pub mod framing;
pub mod loss;
pub mod order;
pub mod queue;
pub mod rate;
mod tail_drop;

use crate::spec::{Arguments, ModelInfo, SpecError};
use crate::verdict::DropReason;

/// One line of a kind's table: what a model is called, and how it is made.
#[derive(Debug)]
pub struct Entry<M> {
    /// Name, parameters and help.
    pub info: &'static ModelInfo,
    /// Makes the model from checked arguments.
    pub build: fn(&Arguments) -> Result<M, SpecError>,
}

/// The models of one kind.
#[derive(Debug)]
pub struct Kind<M: 'static> {
    /// The option's name: `rate`, `delay`, …
    pub name: &'static str,
    /// A bare value that the default model takes.
    pub example: &'static str,
    /// The models; the first one takes bare values.
    pub entries: &'static [Entry<M>],
}

impl<M> Kind<M> {
    /// Makes a model from its text.
    pub fn parse(&self, text: &str) -> Result<M, SpecError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SpecError::Empty {
                expected: self.example.to_owned(),
            });
        }
        let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if let Some(entry) = self.entries.iter().find(|entry| entry.info.name == name) {
            return (entry.build)(&Arguments::parse(entry.info, arguments)?);
        }
        let default = &self.entries[0];
        // A word that is no number was meant as a name.
        let is_value = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if !is_value || text.contains(':') || default.info.params.is_empty() {
            return Err(self.unknown(name));
        }
        let arguments = Arguments::parse(default.info, text)?;
        (default.build)(&arguments).map_err(|error| match error {
            // Whoever wrote a plain value need not know its parameter.
            SpecError::Value { source, .. } => SpecError::Plain(source),
            other => other,
        })
    }

    fn unknown(&self, name: &str) -> SpecError {
        let known: Vec<&str> = self.entries.iter().map(|entry| entry.info.name).collect();
        SpecError::UnknownModel {
            kind: self.name,
            name: name.to_string(),
            known: known.join(", "),
            example: self.example,
        }
    }
}

/// Delay models.
pub static DELAY: Kind<Box<dyn delay::DelayModel>> = Kind {
    name: "delay",
    example: "20ms",
    entries: &[
        delay::constant::ENTRY,
        delay::uniform::ENTRY,
        delay::exponential::ENTRY,
    ],
};

/// Loss models.
pub static LOSS: Kind<loss::PlacedLoss> = Kind {
    name: "loss",
    example: "1%",
    entries: &[loss::packet::ENTRY, loss::bit_error::ENTRY],
};

/// Rate models.
pub static RATE: Kind<rate::Rate> = Kind {
    name: "rate",
    example: "10mbit",
    entries: &[rate::FIXED_ENTRY, rate::UNLIMITED_ENTRY],
};

/// Queue disciplines.
pub static QUEUE: Kind<queue::QueueLimit> = Kind {
    name: "queue",
    example: "100p",
    entries: &[queue::ENTRY, queue::UNLIMITED_ENTRY],
};

/// Framing profiles.
pub static FRAMING: Kind<framing::Framing> = Kind {
    name: "framing",
    example: "ethernet",
    entries: &[
        framing::NONE_ENTRY,
        framing::ETHERNET_ENTRY,
        framing::BYTES_ENTRY,
    ],
};

/// Order policies.
pub static ORDER: Kind<order::OrderPolicy> = Kind {
    name: "order",
    example: "in-order",
    entries: &[order::IN_ORDER_ENTRY, order::REORDER_ENTRY],
};

/// Every registered model: the name of its kind and its description.
pub fn all() -> Vec<(&'static str, &'static ModelInfo)> {
    fn list<M>(kind: &Kind<M>) -> impl Iterator<Item = (&'static str, &'static ModelInfo)> {
        kind.entries.iter().map(|entry| (kind.name, entry.info))
    }
    list(&RATE)
        .chain(list(&FRAMING))
        .chain(list(&QUEUE))
        .chain(list(&LOSS))
        .chain(list(&DELAY))
        .chain(list(&ORDER))
        .collect()
}

/// What a loss model says of one frame.
pub type Lost = Option<DropReason>;
