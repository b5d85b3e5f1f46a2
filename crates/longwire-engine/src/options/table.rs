//! The table of link options: the name of each and the field of its text.

use alloc::string::String;
use alloc::vec::Vec;

use super::LinkOptions;

/// One link option.
#[derive(Debug)]
pub struct LinkOption {
    /// Its name, which is also the name of its kind of models if it has one.
    pub name: &'static str,
    /// The placeholder of its value in help texts.
    pub value_name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    field: fn(&mut LinkOptions) -> Field<'_>,
}

impl LinkOption {
    /// Whether it may be given several times.
    pub fn is_repeated(&self) -> bool {
        let mut options = LinkOptions::default();
        matches!((self.field)(&mut options), Field::Repeated(_))
    }
}

/// The field that holds an option's text.
enum Field<'a> {
    Once(&'a mut Option<String>),
    Repeated(&'a mut Vec<String>),
}

/// Every link option, in the order of the help.
pub static LINK_OPTIONS: [LinkOption; 11] = [
    LinkOption {
        name: "rate",
        value_name: "RATE",
        summary: "Rate of the link, as in 10mbit; default: unlimited",
        field: |options| Field::Once(&mut options.rate),
    },
    LinkOption {
        name: "framing",
        value_name: "FRAMING",
        summary: "Bytes that the wire adds to each frame, as in ethernet; default: none",
        field: |options| Field::Once(&mut options.framing),
    },
    LinkOption {
        name: "queue",
        value_name: "QUEUE",
        summary: "Limit or discipline of the queue, as in 100p or 64kb; default: what the link \
                  sends in two delays or 100 ms",
        field: |options| Field::Once(&mut options.queue),
    },
    LinkOption {
        name: "loss",
        value_name: "LOSS",
        summary: "Loss of frames, as in 1%; may be given several times",
        field: |options| Field::Repeated(&mut options.loss),
    },
    LinkOption {
        name: "corrupt",
        value_name: "CORRUPTION",
        summary: "Corruption of frames, as in 0.1%",
        field: |options| Field::Once(&mut options.corrupt),
    },
    LinkOption {
        name: "duplicate",
        value_name: "DUPLICATION",
        summary: "Duplication of frames, as in 1%",
        field: |options| Field::Once(&mut options.duplicate),
    },
    LinkOption {
        name: "delay",
        value_name: "DELAY",
        summary: "One-way propagation delay, as in 20ms, and its jitter",
        field: |options| Field::Once(&mut options.delay),
    },
    LinkOption {
        name: "reorder",
        value_name: "REORDERING",
        summary: "Reordering on purpose: frames held back or sent ahead, as in 1%,5ms",
        field: |options| Field::Once(&mut options.reorder),
    },
    LinkOption {
        name: "order",
        value_name: "ORDER",
        summary: "Whether jitter may reorder frames: in-order or reorder",
        field: |options| Field::Once(&mut options.order),
    },
    LinkOption {
        name: "mtu",
        value_name: "BYTES",
        summary: "Maximum payload after the Ethernet header, as in 1500; longer frames are \
                  dropped or fragmented",
        field: |options| Field::Once(&mut options.mtu),
    },
    LinkOption {
        name: "rewrite",
        value_name: "REWRITING",
        summary: "Header fields changed in every frame, as in ip:ttl=1; may be given several \
                  times",
        field: |options| Field::Repeated(&mut options.rewrite),
    },
];

impl LinkOptions {
    /// Sets one option by its name, or adds a value to a repeatable one. Returns
    /// `false` if there is no such option.
    pub fn set(&mut self, option: &str, text: String) -> bool {
        let Some(option) = LINK_OPTIONS.iter().find(|known| known.name == option) else {
            return false;
        };
        match (option.field)(self) {
            Field::Once(field) => *field = Some(text),
            Field::Repeated(field) => field.push(text),
        }
        true
    }

    /// Returns every option that is given, by name, in the order of the help.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        let mut options = self.clone();
        let mut given = Vec::new();
        for option in &LINK_OPTIONS {
            let texts = match (option.field)(&mut options) {
                Field::Once(text) => text.take().into_iter().collect(),
                Field::Repeated(texts) => core::mem::take(texts),
            };
            given.extend(texts.into_iter().map(|text| (option.name, text)));
        }
        given
    }
}
