//! Font of the figures: Noto Sans, embedded in the program, so that figures are identical on
//! machines without fonts.

use notosans::{BOLD_TTF, REGULAR_TTF};
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};

/// One weight of the font.
pub struct Font {
    font: FontRef<'static>,
    /// Contents of the font file.
    pub bytes: &'static [u8],
    /// PostScript name.
    pub name: &'static str,
}

impl std::fmt::Debug for Font {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Font").finish_non_exhaustive()
    }
}

impl Font {
    /// Returns the font in bold or regular weight.
    pub fn of_weight(bold: bool) -> Font {
        let (bytes, name) = if bold {
            (BOLD_TTF, "NotoSans-Bold")
        } else {
            (REGULAR_TTF, "NotoSans-Regular")
        };
        let font = FontRef::new(bytes);
        let font = font.unwrap_or_else(|error| unreachable!("invalid embedded font: {error}"));
        Font { font, bytes, name }
    }

    /// Returns left, bottom, right and top of the bounding box of all glyphs, ascent, descent and
    /// cap height, in thousandths of the font size.
    pub fn box_of_thousand(&self) -> [f32; 7] {
        let (size, location) = (Size::new(1_000.0), LocationRef::default());
        let metrics = self.font.metrics(size, location);
        let bounds = metrics.bounds.unwrap_or_default();
        [
            bounds.x_min,
            bounds.y_min,
            bounds.x_max,
            bounds.y_max,
            metrics.ascent,
            metrics.descent,
            metrics.cap_height.unwrap_or(metrics.ascent),
        ]
    }

    /// Returns the width of a text, in the unit of its font size.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        self.glyphs(text, size).map(|(_, advance)| advance).sum()
    }

    /// Draws the outline of a glyph, with y pointing up.
    pub fn draw(&self, glyph: GlyphId, size: f64, pen: &mut impl OutlinePen) {
        if let Some(outline) = self.font.outline_glyphs().get(glyph) {
            let size = Size::new(size as f32);
            let settings = DrawSettings::unhinted(size, LocationRef::default());
            // Glyphs that cannot be drawn are skipped, like missing ones.
            let _ = outline.draw(settings, pen);
        }
    }

    /// Returns the glyphs of a text with their widths. Characters missing from the font are shown
    /// as its empty box.
    pub fn glyphs(&self, text: &str, size: f64) -> impl Iterator<Item = (GlyphId, f64)> {
        let characters = self.font.charmap();
        let (size, location) = (Size::new(size as f32), LocationRef::default());
        let metrics = self.font.glyph_metrics(size, location);
        text.chars().map(move |c| {
            let glyph = characters.map(c).unwrap_or(GlyphId::NOTDEF);
            let advance = metrics.advance_width(glyph).unwrap_or(0.0);
            (glyph, f64::from(advance))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_all_that_figures_write() {
        for bold in [false, true] {
            let characters = Font::of_weight(bold).font.charmap();
            for c in ('!'..='~').chain("−–…µ×·éßñ".chars()) {
                assert!(characters.map(c).is_some(), "{c}");
            }
        }
    }

    #[test]
    fn widths_add_up_and_grow_with_the_size() {
        let font = Font::of_weight(false);
        let width = font.width("delay", 12.0);
        assert!((20.0..60.0).contains(&width), "{width}");
        let parts = font.width("de", 12.0) + font.width("lay", 12.0);
        assert!((width - parts).abs() < 1e-9);
        assert!((font.width("delay", 24.0) - 2.0 * width).abs() < 0.1);
        assert!(Font::of_weight(true).width("delay", 12.0) > width);
    }
}
