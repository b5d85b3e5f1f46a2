//! The colours of figures.

use super::scene::Colour;

/// Texts.
pub const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Remarks.
pub const FAINT_INK: Colour = Colour(0x66, 0x66, 0x66);
/// Axes.
pub const AXIS: Colour = Colour(0x88, 0x88, 0x88);
/// The lines of the grid, below the data.
pub const GRID: Colour = Colour(0xe4, 0xe4, 0xe4);
/// The background.
pub const PAPER: Colour = Colour(0xff, 0xff, 0xff);

/// Colours of data, each distinguishable from any other with any kind of colour
/// vision: those of M. Okabe and K. Ito, "Color Universal Design" (2008), without
/// the yellow, which is too pale on white.
pub const SERIES: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x00, 0x00, 0x00),
];
