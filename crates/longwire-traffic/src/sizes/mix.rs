//! A mix of sizes.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::random::Stream;

use super::weighted::{ORDER, Weighted, read_weighted};
use super::{FCS, Fcs, SizeModel};

/// The registry line.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "mix",
    summary: "several sizes with weights",
    params: &[
        Param::new("sizes", Unit::Text("60/7;590/4;1514/1"))
            .help("SIZE/WEIGHT;SIZE/WEIGHT; the default weight is 1. Quote it in a shell"),
        ORDER,
        FCS,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let text = arguments.read("sizes", |text| Ok(text.to_string()))?;
    let items = text
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    let written: Result<Vec<(u64, u64)>, String> = items.map(read_weighted).collect();
    let written = written.map_err(|message| arguments.invalid(message))?;
    let weighted = Weighted::new(written, Fcs::read(arguments)?, arguments)?;
    Ok(Box::new(Mix(weighted)))
}

#[derive(Clone, Debug)]
struct Mix(Weighted);

impl SizeModel for Mix {
    fn draw(&self, number: u64, stream: &mut Stream) -> u32 {
        self.0.draw(number, stream)
    }

    fn each(&self, take: &mut dyn FnMut(u32, f64)) {
        self.0.each(take);
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mix:sizes=")?;
        for (index, (size, weight)) in self.0.written().iter().enumerate() {
            let mark = if index == 0 { "" } else { ";" };
            write!(f, "{mark}{size}/{weight}")?;
        }
        f.write_str(",")?;
        self.0.describe_rest(f)
    }
}
