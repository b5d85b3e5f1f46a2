//! Traces read from text.

use longwire_engine::trace::{Contents, Format, Mapping, Quantity, Series, TraceReader};

/// Reads a trace in pieces of this size.
pub fn read_pieces(
    format: Option<Format>,
    mapping: &Mapping,
    text: &[u8],
    piece: usize,
) -> Result<Contents, String> {
    let mut reader = TraceReader::new(format, mapping.clone(), false);
    let mut pieces = text.chunks(piece);
    pieces.try_for_each(|piece| reader.feed(piece))?;
    reader.finish()
}

/// Reads a trace and checks that the result does not depend on the piece size.
pub fn read(format: Option<Format>, mapping: &Mapping, text: &str) -> Result<Contents, String> {
    let whole = read_pieces(format, mapping, text.as_bytes(), usize::MAX);
    for piece in [1, 2, 7, 64] {
        let in_pieces = read_pieces(format, mapping, text.as_bytes(), piece);
        assert_eq!(in_pieces, whole, "{text}");
    }
    whole
}

/// Reads a trace, detecting its format.
pub fn read_usual(quantity: Quantity, text: &str) -> Result<Contents, String> {
    read(None, &Mapping::usual(quantity), text)
}

/// Returns each value with its duration in nanoseconds.
pub fn stretches(series: &Series) -> Vec<(u64, u64)> {
    series.stretches().collect()
}
