//! A loader with in-memory files.

use longwire_engine::models::Kind;
use longwire_engine::{FrameContext, Loader, TakePiece};
use longwire_units::random::Stream;

/// Provides the same contents for every file, in pieces of this size.
pub struct Contents<'a> {
    pub text: &'a [u8],
    pub piece: usize,
}

/// Returns a loader that provides `text` for every file.
pub fn file(text: &str) -> Contents<'_> {
    Contents {
        text: text.as_bytes(),
        piece: 7,
    }
}

impl Loader for Contents<'_> {
    fn read(&self, _path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.text.chunks(self.piece).try_for_each(take)
    }
}

/// Parses a model; every file has these contents.
pub fn parse<M>(kind: &Kind<M>, text: &str, contents: &str) -> M {
    let model = kind.parse_with(text, &file(contents));
    model.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Like [`parse`], but returns the error.
pub fn parse_error<M>(kind: &Kind<M>, text: &str, contents: &str) -> String {
    let model = kind.parse_with(text, &file(contents));
    let error = model
        .err()
        .unwrap_or_else(|| panic!("{text} was read from {contents:?}"));
    error.to_string()
}

/// Files by name.
pub struct Files<'a>(pub &'a [(&'a str, String)]);

impl Loader for Files<'_> {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map_or(Err("no such file".to_owned()), |(_, text)| {
            take(text.as_bytes())
        })
    }
}

/// Returns the context of a frame without known bytes.
pub fn frame_context(at: u64, len: u32) -> FrameContext<'static> {
    use longwire_engine::{Bytes, Nanos, Packets};
    FrameContext {
        frame: super::frame(at, len),
        at: Nanos::from_nanos(at),
        bytes: &[],
        waiting: (Packets(0), Bytes(0)),
    }
}

/// Returns a stream, for models that never draw.
pub fn stream() -> Stream {
    Stream::of_seed(1)
}
