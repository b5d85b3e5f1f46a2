//! Figures as PNG.

use skrifa::outline::OutlinePen;
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke as Pen, StrokeDash,
    Transform,
};

use super::font::Font;
use super::scene::{Colour, Fill, Item, Point, Scene, Stroke, Text};

/// Renders a figure as PNG, with `scale` pixels per unit.
///
/// # Errors
/// If the image would have too many pixels, or none.
pub fn render(scene: &Scene, scale: f64) -> Result<Vec<u8>, String> {
    let pixels = |units: f64| (units * scale).round() as u32;
    let (width, height) = (pixels(scene.width), pixels(scene.height));
    let pixmap = Pixmap::new(width, height);
    let mut pixmap = pixmap.ok_or_else(|| format!("invalid figure size {width} x {height}"))?;
    pixmap.fill(rgba(crate::scene::PAPER, 1.0));
    let mut canvas = Canvas {
        pixmap,
        scale: Transform::from_scale(scale as f32, scale as f32),
        fonts: [false, true].map(Font::of_weight),
    };
    for item in &scene.items {
        canvas.item(item);
    }
    let encoded = canvas.pixmap.encode_png();
    encoded.map_err(|error| error.to_string())
}

struct Canvas {
    pixmap: Pixmap,
    scale: Transform,
    /// Regular and bold.
    fonts: [Font; 2],
}

impl Canvas {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Line { points, stroke } => {
                let mut path = PathBuilder::new();
                polyline(&mut path, points);
                self.stroke(path, stroke);
            }
            Item::Segments { segments, stroke } => {
                let mut path = PathBuilder::new();
                for (from, to) in segments {
                    polyline(&mut path, &[*from, *to]);
                }
                self.stroke(path, stroke);
            }
            Item::Area { points, fill } => {
                let mut path = PathBuilder::new();
                polyline(&mut path, points);
                path.close();
                self.fill(path, fill);
            }
            Item::Dots {
                centres,
                radius,
                fill,
            } => {
                let mut path = PathBuilder::new();
                for (x, y) in centres {
                    path.push_circle(*x as f32, *y as f32, *radius as f32);
                }
                self.fill(path, fill);
            }
            Item::Text(text) => self.text(text),
        }
    }

    fn fill(&mut self, path: PathBuilder, fill: &Fill) {
        // A path of size zero has no area.
        if let Some(path) = path.finish() {
            let paint = paint(fill.colour, fill.opacity);
            let rule = FillRule::Winding;
            self.pixmap.fill_path(&path, &paint, rule, self.scale, None);
        }
    }

    fn stroke(&mut self, path: PathBuilder, stroke: &Stroke) {
        let Some(path) = path.finish() else { return };
        let dash = stroke.dash.map(|(on, off)| vec![on as f32, off as f32]);
        let dash = dash.and_then(|dash| StrokeDash::new(dash, 0.0));
        let pen = Pen {
            width: stroke.width as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash,
            ..Pen::default()
        };
        let paint = paint(stroke.colour, stroke.opacity);
        self.pixmap
            .stroke_path(&path, &paint, &pen, self.scale, None);
    }

    fn text(&mut self, text: &Text) {
        let font = &self.fonts[usize::from(text.bold)];
        let mut pen = GlyphPen {
            path: PathBuilder::new(),
            text,
            back: text.before_anchor(font),
            along: 0.0,
        };
        for (glyph, advance) in font.glyphs(&text.text, text.size) {
            font.draw(glyph, text.size, &mut pen);
            pen.along += advance;
        }
        self.fill(pen.path, &Fill::solid(text.colour));
    }
}

/// Adds the outlines of glyphs at the position of their text.
struct GlyphPen<'a> {
    path: PathBuilder,
    text: &'a Text,
    /// Distance from the start of the text to its anchor.
    back: f64,
    /// Distance from the start of the text to the glyph.
    along: f64,
}

impl GlyphPen<'_> {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (along, up) = ((self.along - self.back) as f32 + x, y);
        let (at_x, at_y) = (self.text.at.0 as f32, self.text.at.1 as f32);
        if self.text.upwards {
            (at_x - up, at_y - along)
        } else {
            (at_x + along, at_y - up)
        }
    }
}

impl OutlinePen for GlyphPen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let ((cx, cy), (x, y)) = (self.place(cx, cy), self.place(x, y));
        self.path.quad_to(cx, cy, x, y);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        let (cx0, cy0) = self.place(cx0, cy0);
        let (cx1, cy1) = self.place(cx1, cy1);
        let (x, y) = self.place(x, y);
        self.path.cubic_to(cx0, cy0, cx1, cy1, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn polyline(path: &mut PathBuilder, points: &[Point]) {
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if index == 0 {
            path.move_to(x, y);
        } else {
            path.line_to(x, y);
        }
    }
}

fn paint(colour: Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(rgba(colour, opacity));
    paint.anti_alias = true;
    paint
}

fn rgba(Colour(red, green, blue): Colour, opacity: f64) -> Color {
    let opacity = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    Color::from_rgba8(red, green, blue, opacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_have_gaps() {
        let picture = render(&crate::scene::fixture::dashed(), 1.0).expect("it is small");
        let picture = Pixmap::decode_png(&picture).expect("it is a PNG");
        let is_ink = |x: u32| picture.pixel(x, 5).is_some_and(|pixel| pixel.red() < 128);
        for x in 0..40 {
            assert_eq!(is_ink(x), x % 10 < 7, "{x}");
        }
    }
}
