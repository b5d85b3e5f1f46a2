//! Figures as SVG 1.1, in a self-contained file.
//!
//! Text is kept as text, so that it can be searched and edited. The viewer selects one of the
//! listed fonts, whose widths are similar.

use std::fmt::Write;

use super::page::html;
use super::scene::{Anchor, Colour, Fill, Item, Point, Scene, Stroke, Text};

const FONTS: &str = "'Noto Sans','Open Sans','DejaVu Sans',Verdana,Helvetica,Arial,sans-serif";

/// Renders a figure as SVG.
pub fn render(scene: &Scene) -> String {
    let mut out = String::new();
    let (width, height) = (number(scene.width), number(scene.height));
    out += "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += &format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\">\n"
    );
    out += &format!("<title>{}</title>\n", escaped(&scene.title));
    out += &format!(
        "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        colour(crate::scene::PAPER)
    );
    for item in &scene.items {
        self::item(&mut out, item);
    }
    out += "</svg>\n";
    out
}

fn item(out: &mut String, item: &Item) {
    match item {
        Item::Line { points, stroke } => {
            let joins = " stroke-linejoin=\"round\"";
            path(out, &polyline(points), &stroked(stroke), joins);
        }
        Item::Segments { segments, stroke } => {
            let mut data = String::new();
            for (from, to) in segments {
                data += &polyline(&[*from, *to]);
            }
            path(out, &data, &stroked(stroke), "");
        }
        Item::Area { points, fill } => {
            let data = polyline(points) + "z";
            path(out, &data, &filled(fill), "");
        }
        Item::Dots {
            centres,
            radius,
            fill,
        } => {
            // A zero-length line with round caps is a dot, in far fewer bytes than a circle.
            let mut data = String::new();
            for (x, y) in centres {
                let _ = write!(data, "M{} {}h0", number(*x), number(*y));
            }
            let stroke = Stroke::solid(fill.colour, radius * 2.0).faded(fill.opacity);
            path(out, &data, &stroked(&stroke), " stroke-linecap=\"round\"");
        }
        Item::Text(text) => self::text(out, text),
    }
}

fn path(out: &mut String, data: &str, paint: &str, more: &str) {
    let _ = writeln!(out, "<path d=\"{data}\"{paint}{more}/>");
}

fn polyline(points: &[Point]) -> String {
    let mut data = String::with_capacity(points.len() * 12);
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(data, "{command}{} {}", number(*x), number(*y));
    }
    data
}

fn stroked(stroke: &Stroke) -> String {
    let mut paint = format!(
        " fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"",
        colour(stroke.colour),
        number(stroke.width)
    );
    if stroke.opacity < 1.0 {
        paint += &format!(" stroke-opacity=\"{}\"", number(stroke.opacity));
    }
    if let Some((on, off)) = stroke.dash {
        paint += &format!(" stroke-dasharray=\"{} {}\"", number(on), number(off));
    }
    paint
}

fn filled(fill: &Fill) -> String {
    let mut paint = format!(" fill=\"{}\"", colour(fill.colour));
    if fill.opacity < 1.0 {
        paint += &format!(" fill-opacity=\"{}\"", number(fill.opacity));
    }
    paint
}

fn text(out: &mut String, text: &Text) {
    let (x, y) = (number(text.at.0), number(text.at.1));
    let mut style = String::from(match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    });
    if text.bold {
        style += " font-weight=\"bold\"";
    }
    if text.upwards {
        let _ = write!(style, " transform=\"rotate(-90 {x} {y})\"");
    }
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{style}>{}</text>",
        number(text.size),
        colour(text.colour),
        escaped(&text.text)
    );
}

fn colour(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Formats a number to hundredths of a unit, which is finer than any display.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// Escapes text; whitespace becomes plain spaces, because viewers treat line breaks differently.
fn escaped(text: &str) -> String {
    html::escaped(&text.replace(['\t', '\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, -0.001, 1.0, 1.25, -3.5, 100.0, 0.006].map(number);
        assert_eq!(numbers, ["0", "0", "1", "1.25", "-3.5", "100", "0.01"]);
    }

    #[test]
    fn characters_invalid_in_xml_are_escaped_or_replaced() {
        assert_eq!(
            escaped("<a href=\"x\">&'\u{1}\n</a>"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd} &lt;/a&gt;"
        );
    }
}
