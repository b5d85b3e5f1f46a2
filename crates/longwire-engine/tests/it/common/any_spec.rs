//! Arbitrary link specifications, from bytes.

use longwire_engine::models::{self, Entry, Kind};
use longwire_engine::spec::{ModelInfo, Param, Unit};
use longwire_engine::{DropReason, FrameContext, Hook, LinkSpec, Loader, Nanos, Plugin, TakePiece};
use longwire_units::random::Stream;

/// Choices read from bytes; after the last byte, all choices are zero.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    /// Returns a number below `end`, which is at most 65,536.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) | usize::from(self.byte()) << 8;
        number % end.max(1)
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Provides the example for every file parameter, and simple plugins.
pub struct Examples;

impl Loader for Examples {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let contents = longwire_engine::all_models()
            .into_iter()
            .find_map(|(kind, info)| {
                info.params.iter().find_map(|param| match param.unit {
                    Unit::File(contents) if file_name(kind, info, param) == path => Some(contents),
                    _ => None,
                })
            });
        take(contents.ok_or("no such file")?.as_bytes())
    }

    fn plugin(&self, _: &str, _: Hook, _: &[(String, String)]) -> Result<Box<dyn Plugin>, String> {
        Ok(Box::new(Random))
    }
}

fn file_name(kind: &str, info: &ModelInfo, param: &Param) -> String {
    format!("{kind}.{}.{}", info.name, param.name)
}

/// A plugin that draws random values.
#[derive(Debug)]
struct Random;

impl Plugin for Random {
    fn lose(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Option<DropReason> {
        (stream.up_to(9) == 0).then_some(DropReason::Loss)
    }

    fn delay(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        Nanos::from_nanos(stream.up_to(5_000_000))
    }

    fn depart(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let time = Nanos::from_nanos(wire_bits + stream.up_to(1_000));
        frame.at.saturating_add(time)
    }

    fn rewrite(&mut self, _at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        if let Some(last) = bytes.last_mut() {
            *last = stream.up_to(255) as u8;
        }
    }
}

/// Returns an arbitrary value for a parameter; `file` if it is a file.
fn value(choices: &mut Choices<'_>, param: &Param, file: String) -> String {
    let some: &[&str] = match param.unit {
        Unit::Time => &["0ns", "1ns", "10us", "1ms", "20ms", "1s"],
        Unit::Rate => &["1kbit", "64kbit", "10mbit", "999mbit", "100gbit"],
        Unit::Size => &["64b", "1514b", "3kb", "64kb", "10mb"],
        Unit::Packets => &["1p", "2p", "10p", "1000p"],
        Unit::Probability => &["0%", "0.1%", "10%", "50%", "100%"],
        Unit::Correlation => &["0%", "25%", "-25%", "90%"],
        Unit::Ratio => &["0", "1e-6", "0.01", "0.5", "1"],
        Unit::Count => &["0", "1", "2", "7", "68", "1500"],
        Unit::Signed => &["-20", "-4", "0", "4", "1000"],
        Unit::Real => &["0.1", "0.5", "1", "2.5", "10"],
        Unit::Choice(words) => words,
        Unit::File(_) => return file,
        Unit::Text(example) => return example.to_owned(),
        Unit::Rest => &["1"],
    };
    choices.pick(some).to_owned()
}

/// Returns an arbitrary model of this kind. Each parameter is omitted or arbitrary; if the
/// combination is invalid, parameters without a default take their example values.
fn model<M>(choices: &mut Choices<'_>, kind: &Kind<M>) -> String {
    let Entry { info, .. } = &kind.entries[choices.below(kind.entries.len())];
    let plain = info.params.iter().filter(|param| param.default.is_none());
    let plain: Vec<String> = plain
        .map(|param| match param.unit {
            Unit::File(_) => format!("{}={}", param.name, file_name(kind.name, info, param)),
            unit => format!("{}={}", param.name, unit.example()),
        })
        .collect();
    let any: Vec<String> = info
        .params
        .iter()
        .filter_map(|param| {
            let wanted = !choices.one_in(3);
            let value = value(choices, param, file_name(kind.name, info, param));
            wanted.then(|| format!("{}={value}", param.name))
        })
        .collect();
    let text = format!("{}:{}", info.name, any.join(","));
    // Most parameter combinations are valid; otherwise, use the example.
    match kind.parse_with(&text, &Examples) {
        Ok(_) => text,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            format!("{}:{}", info.name, plain.join(","))
        }
    }
}

/// Sets a part to an arbitrary model, or leaves it out with probability 1/`times`.
fn maybe<M>(spec: &mut LinkSpec, choices: &mut Choices<'_>, kind: &Kind<M>, times: usize) {
    let given = !choices.one_in(times);
    let text = model(choices, kind);
    if given {
        set(spec, kind, &text);
    }
}

fn set<M>(spec: &mut LinkSpec, kind: &Kind<M>, text: &str) {
    let set = spec.set(kind.name, text, &Examples);
    set.unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// Returns an arbitrary specification.
pub fn any_spec(choices: &mut Choices<'_>) -> LinkSpec {
    let mut spec = LinkSpec::new();
    maybe(&mut spec, choices, &models::RATE, 6);
    maybe(&mut spec, choices, &models::FRAMING, 2);
    maybe(&mut spec, choices, &models::QUEUE, 4);
    maybe(&mut spec, choices, &models::CORRUPTION, 2);
    maybe(&mut spec, choices, &models::DUPLICATION, 2);
    maybe(&mut spec, choices, &models::DELAY, 6);
    maybe(&mut spec, choices, &models::REORDERING, 2);
    maybe(&mut spec, choices, &models::ORDER, 2);
    maybe(&mut spec, choices, &models::MTU, 2);
    for _ in 0..choices.below(3) {
        set(&mut spec, &models::LOSS, &model(choices, &models::LOSS));
    }
    for _ in 0..choices.below(2) {
        set(
            &mut spec,
            &models::REWRITE,
            &model(choices, &models::REWRITE),
        );
    }
    maybe(&mut spec, choices, &models::ROUTER, 2);
    spec
}
