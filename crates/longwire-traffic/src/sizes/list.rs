//! Sizes from a file.

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

use super::weighted::{ORDER, Weighted, read_weighted};
use super::{FCS, SizeModel};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn SizeModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "list",
    summary: "sizes and weights from a file",
    params: &[
        Param::new("file", Unit::File("# size, weight\n60 7\n590 4\n1514\n")).help(
            "file with one size per line, followed by its weight (default 1); # starts a \
             comment",
        ),
        ORDER,
        FCS,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let file = arguments.word("file").unwrap_or_default().to_string();
    let mut written: Vec<(u64, u64)> = Vec::new();
    arguments.lines("file", &mut |_, line| {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let Some(size) = words.next() else {
            return Ok(());
        };
        let (size, mut weight) = read_weighted(size)?;
        if let Some(word) = words.next() {
            weight = read_weighted(word)?.0;
        }
        // Add up the weights of repeated sizes, so that a list of recorded frame sizes works too.
        match written.iter_mut().find(|(known, _)| *known == size) {
            Some((_, known)) => *known = known.saturating_add(weight),
            None => written.push((size, weight)),
        }
        match words.next() {
            Some(word) => Err(format!("unexpected '{word}' after size and weight")),
            None => Ok(()),
        }
    })?;
    if written.is_empty() {
        return Err(arguments.file_error("file", "no sizes"));
    }
    Weighted::build(&format!("list:file={file},"), written, arguments)
}
