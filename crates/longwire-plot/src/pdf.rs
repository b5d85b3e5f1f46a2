//! Figures as PDF 1.7, with searchable text in embedded font subsets.

use std::collections::BTreeMap;

use pdf_writer::types::{
    CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap,
};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use subsetter::GlyphRemapper;

use super::font::Font;
use super::scene::{Colour, Item, Point, Scene, Stroke, Text};

/// Points per unit: 72 per inch, for units of 1/96 inch.
const POINTS: f32 = 0.75;

/// Compression level, 0 to 10.
const COMPRESSION: u8 = 6;

const ADOBE: SystemInfo<'_> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

/// Renders a figure as PDF.
///
/// # Errors
/// If the font cannot be embedded.
pub fn render(scene: &Scene) -> Result<Vec<u8>, String> {
    let mut drawing = PdfPage {
        content: Content::new(),
        fonts: [TextFont::new(false), TextFont::new(true)],
        opacities: Vec::new(),
    };
    let (width, height) = (scene.width as f32 * POINTS, scene.height as f32 * POINTS);
    let matrix = [POINTS, 0.0, 0.0, -POINTS, 0.0, height];
    drawing.content.transform(matrix);
    drawing.fill_colour(crate::scene::PAPER);
    let corner = (scene.width as f32, scene.height as f32);
    let paper = drawing.content.rect(0.0, 0.0, corner.0, corner.1);
    paper.fill_nonzero();
    for item in &scene.items {
        drawing.item(item);
    }
    drawing.finish(&scene.title, (width, height))
}

/// A PDF page under construction.
struct PdfPage {
    content: Content,
    fonts: [TextFont; 2],
    /// Opacities in use, in thousandths.
    opacities: Vec<u16>,
}

/// Glyphs of a font that are used in texts.
struct TextFont {
    font: Font,
    used: GlyphRemapper,
    /// Character and width, in thousandths of the font size, by new glyph number.
    glyphs: BTreeMap<u16, (char, f32)>,
}

impl TextFont {
    fn new(bold: bool) -> TextFont {
        TextFont {
            font: Font::of_weight(bold),
            used: GlyphRemapper::new(),
            glyphs: BTreeMap::new(),
        }
    }

    /// Encodes a text as two-byte glyph numbers.
    fn encode(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len() * 2);
        for (c, (glyph, advance)) in text.chars().zip(self.font.glyphs(text, 1_000.0)) {
            // The font has fewer than 65,536 glyphs.
            let glyph = self.used.remap(glyph.to_u32() as u16);
            self.glyphs.insert(glyph, (c, advance as f32));
            bytes.extend(glyph.to_be_bytes());
        }
        bytes
    }
}

impl PdfPage {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Line { points, stroke } => {
                self.pen(stroke, LineCapStyle::ButtCap);
                self.polyline(points);
                self.content.stroke();
            }
            Item::Segments { segments, stroke } => {
                self.pen(stroke, LineCapStyle::ButtCap);
                for (from, to) in segments {
                    self.polyline(&[*from, *to]);
                }
                self.content.stroke();
            }
            Item::Area { points, fill } => {
                self.opacity(fill.opacity);
                self.fill_colour(fill.colour);
                self.polyline(points);
                self.content.close_path().fill_nonzero();
            }
            Item::Dots {
                centres,
                radius,
                fill,
            } => {
                let stroke = Stroke::solid(fill.colour, radius * 2.0).faded(fill.opacity);
                self.pen(&stroke, LineCapStyle::RoundCap);
                // A zero-length line with round caps is a dot.
                for centre in centres {
                    self.polyline(&[*centre, *centre]);
                }
                self.content.stroke();
            }
            Item::Text(text) => self.text(text),
        }
    }

    fn polyline(&mut self, points: &[Point]) {
        for (index, (x, y)) in points.iter().enumerate() {
            let (x, y) = (round(*x), round(*y));
            if index == 0 {
                self.content.move_to(x, y);
            } else {
                self.content.line_to(x, y);
            }
        }
    }

    /// Sets the pen. Call it before the start of a path.
    fn pen(&mut self, stroke: &Stroke, cap: LineCapStyle) {
        self.opacity(stroke.opacity);
        let [red, green, blue] = rgb(stroke.colour);
        self.content.set_stroke_rgb(red, green, blue);
        self.content.set_line_width(stroke.width as f32);
        self.content.set_line_join(LineJoinStyle::RoundJoin);
        self.content.set_line_cap(cap);
        let dash = stroke.dash.map(|(on, off)| [on as f32, off as f32]);
        self.content
            .set_dash_pattern(dash.iter().flatten().copied(), 0.0);
    }

    fn fill_colour(&mut self, colour: Colour) {
        let [red, green, blue] = rgb(colour);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn opacity(&mut self, opacity: f64) {
        let opacity = (opacity.clamp(0.0, 1.0) * 1e3).round() as u16;
        let index = self.opacities.iter().position(|known| *known == opacity);
        let index = index.unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        self.content
            .set_parameters(Name(name('g', index).as_bytes()));
    }

    fn text(&mut self, text: &Text) {
        let index = usize::from(text.bold);
        let back = text.before_anchor(&self.fonts[index].font);
        let bytes = self.fonts[index].encode(&text.text);
        let (x, y) = text.at;
        // y points down on the page and up in glyphs.
        let matrix = if text.upwards {
            [0.0, -1.0, -1.0, 0.0, round(x), round(y + back)]
        } else {
            [1.0, 0.0, 0.0, -1.0, round(x - back), round(y)]
        };
        self.opacity(1.0);
        self.fill_colour(text.colour);
        self.content
            .begin_text()
            .set_font(Name(name('f', index).as_bytes()), text.size as f32)
            .set_text_matrix(matrix)
            .show(Str(&bytes))
            .end_text();
    }

    fn finish(self, title: &str, (width, height): (f32, f32)) -> Result<Vec<u8>, String> {
        let mut number = 0;
        let mut next = || {
            number += 1;
            Ref::new(number)
        };
        let (catalog, pages, page_id, content_id, info) = (next(), next(), next(), next(), next());
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(pages);
        pdf.document_info(info)
            .title(TextStr(title))
            .producer(TextStr("Longwire"));
        pdf.pages(pages).kids([page_id]).count(1);
        let content = compressed(&self.content.finish());
        pdf.stream(content_id, &content).filter(Filter::FlateDecode);
        let font_ids = self.fonts.iter().map(|_| next()).collect::<Vec<Ref>>();
        let state_ids = self.opacities.iter().map(|_| next()).collect::<Vec<Ref>>();
        let mut page = pdf.page(page_id);
        page.parent(pages).contents(content_id);
        page.media_box(Rect::new(0.0, 0.0, width, height));
        let mut resources = page.resources();
        let mut fonts = resources.fonts();
        let used = font_ids.iter().zip(&self.fonts).enumerate();
        let used = used.filter(|(_, (_, font))| !font.glyphs.is_empty());
        for (index, (id, _)) in used.clone() {
            fonts.pair(Name(name('f', index).as_bytes()), *id);
        }
        fonts.finish();
        let mut states = resources.ext_g_states();
        for (index, id) in state_ids.iter().enumerate() {
            states.pair(Name(name('g', index).as_bytes()), *id);
        }
        states.finish();
        resources.finish();
        page.finish();
        for (id, opacity) in state_ids.iter().zip(&self.opacities) {
            let opacity = f32::from(*opacity) / 1e3;
            pdf.ext_graphics(*id)
                .stroking_alpha(opacity)
                .non_stroking_alpha(opacity);
        }
        for (_, (id, font)) in used {
            embed(&mut pdf, *id, font, &mut next)?;
        }
        Ok(pdf.finish())
    }
}

/// Embeds the subset of a font that is used in texts.
fn embed(
    pdf: &mut Pdf,
    id: Ref,
    font: &TextFont,
    next: &mut impl FnMut() -> Ref,
) -> Result<(), String> {
    let (cid, descriptor, file, to_unicode) = (next(), next(), next(), next());
    let full = font.font.name;
    // Six letters mark a font subset; the full names of a figure's two fonts differ.
    let base = format!("LWFIGS+{full}");
    let base = Name(base.as_bytes());
    pdf.type0_font(id)
        .base_font(base)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(to_unicode);
    let mut cid_font = pdf.cid_font(cid);
    cid_font.subtype(CidFontType::Type2).base_font(base);
    cid_font.system_info(ADOBE).font_descriptor(descriptor);
    cid_font.default_width(0.0);
    cid_font.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid_font.widths();
    for (glyph, (_, width)) in &font.glyphs {
        widths.consecutive(*glyph, [*width]);
    }
    widths.finish();
    cid_font.finish();
    let [left, bottom, right, top, ascent, descent, capitals] = font.font.box_of_thousand();
    pdf.font_descriptor(descriptor)
        .name(base)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(ascent)
        .descent(descent)
        .cap_height(capitals)
        .stem_v(80.0)
        .font_file2(file);
    let mut unicode = UnicodeCmap::new(Name(b"Longwire"), ADOBE);
    for (glyph, (c, _)) in &font.glyphs {
        unicode.pair(*glyph, *c);
    }
    let unicode = compressed(&unicode.finish());
    pdf.stream(to_unicode, &unicode).filter(Filter::FlateDecode);
    let part = subsetter::subset(font.font.bytes, 0, &font.used);
    let part = part.map_err(|error| format!("the font cannot be embedded: {error}"))?;
    let length = i32::try_from(part.len()).unwrap_or(i32::MAX);
    let packed = compressed(&part);
    let mut stream = pdf.stream(file, &packed);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), length);
    Ok(())
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, COMPRESSION)
}

fn rgb(Colour(red, green, blue): Colour) -> [f32; 3] {
    [red, green, blue].map(|part| f32::from(part) / 255.0)
}

/// Returns a resource name.
fn name(kind: char, index: usize) -> String {
    format!("{kind}{index}")
}

/// Rounds to a hundredth of a unit, which is below the resolution of any printer.
fn round(value: f64) -> f32 {
    ((value * 100.0).round() / 100.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_have_gaps() {
        let pdf = render(&crate::scene::fixture::dashed()).expect("it has no texts");
        let starts = (0..pdf.len()).filter(|at| pdf[*at..].starts_with(b"stream\n"));
        let contents = starts
            .filter_map(|at| miniz_oxide::inflate::decompress_to_vec_zlib(&pdf[at + 7..]).ok());
        let contents: Vec<u8> = contents.flatten().collect();
        let contents = String::from_utf8_lossy(&contents);
        assert!(contents.contains("[7 3] 0 d\n"), "{contents}");
    }
}
