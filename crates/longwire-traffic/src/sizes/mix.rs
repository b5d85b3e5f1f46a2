//! A mix of sizes.

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

use super::weighted::{ORDER, Weighted, read_weighted};
use super::{FCS, SizeModel};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "mix",
    summary: "several sizes with weights",
    params: &[
        Param::new("sizes", Unit::Text("60/7;590/4;1514/1"))
            .help("SIZE/WEIGHT;SIZE/WEIGHT…, quoted for the shell; the default weight is 1"),
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
    let shown: Vec<String> = written
        .iter()
        .map(|(size, weight)| format!("{size}/{weight}"))
        .collect();
    let head = format!("mix:sizes={},", shown.join(";"));
    Weighted::build(&head, written, arguments)
}
