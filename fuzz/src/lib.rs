//! Bodies of the fuzz targets. Each takes arbitrary bytes and panics if an invariant does not hold.
//! libFuzzer calls them, as does the seed test (`crates/longwire/tests/it/fuzz_seeds.rs`); they can
//! also be called from a debugger.

use std::fmt::Display;

use longwire_engine::{Loader, TakePiece};

pub mod alter;
pub mod capture;
pub mod composition;
pub mod control;
pub mod feed;
pub mod frame;
pub mod options;
pub mod topology;
pub mod trace;

/// Splits an input into the options and the bytes after the line that ends them.
fn parts(data: &[u8]) -> Option<(&str, &[u8])> {
    const END: &[u8] = b"\n---\n";
    let at = data.windows(END.len()).position(|window| window == END)?;
    let text = std::str::from_utf8(&data[..at]).ok()?;
    Some((text, &data[at + END.len()..]))
}

/// Splits an input before the end of its first line.
fn head_line(data: &[u8]) -> Option<(&str, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (head, rest) = data.split_at(end.unwrap_or(data.len()));
    Some((std::str::from_utf8(head).ok()?, rest))
}

/// A loader whose files all have the same contents.
struct OneFile<'a>(&'a [u8]);

impl Loader for OneFile<'_> {
    fn read(&self, _path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.0.chunks(11).try_for_each(take)
    }
}

/// Returns the parsed value, if any; checks that an error has a message.
fn accepted<T, E: Display>(read: Result<T, E>) -> Option<T> {
    read.inspect_err(|error| assert!(!error.to_string().is_empty()))
        .ok()
}

fn set<T, E: Display>(field: &mut Option<T>, read: Result<T, E>) {
    *field = accepted(read).or(field.take());
}
