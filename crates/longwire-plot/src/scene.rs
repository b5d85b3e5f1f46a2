//! Drawing items and colours, independent of the output format.
//!
//! Lengths and positions are in *units*: pixels of an SVG at its native size. The origin is at the
//! top left, and y points down.

use crate::font::Font;

/// A position, as x and y.
pub type Point = (f64, f64);

/// A colour, as red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// Fill of an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Colour.
    pub colour: Colour,
    /// Opacity from 0 (invisible) to 1.
    pub opacity: f64,
}

impl Fill {
    /// Returns an opaque fill.
    pub fn solid(colour: Colour) -> Fill {
        let opacity = 1.0;
        Fill { colour, opacity }
    }

    /// Returns a translucent fill.
    pub fn faded(self, opacity: f64) -> Fill {
        Fill { opacity, ..self }
    }
}

/// Stroke of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Colour.
    pub colour: Colour,
    /// Width in units.
    pub width: f64,
    /// Opacity from 0 (invisible) to 1.
    pub opacity: f64,
    /// Lengths of dashes and gaps in units.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// Returns a solid stroke.
    pub fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            opacity: 1.0,
            dash: None,
        }
    }

    /// Returns a translucent stroke.
    pub fn faded(self, opacity: f64) -> Stroke {
        Stroke { opacity, ..self }
    }

    /// Returns a stroke with dashes and gaps of these lengths, if any.
    pub fn dashed(self, dash: Option<(f64, f64)>) -> Stroke {
        Stroke { dash, ..self }
    }
}

/// Point of a text that lies at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at its position.
    Start,
    /// The text is centred on its position.
    Middle,
    /// The text ends at its position.
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Position of its anchor, on the baseline.
    pub at: Point,
    /// Characters.
    pub text: String,
    /// Font size in units.
    pub size: f64,
    /// Whether the text is bold.
    pub bold: bool,
    /// Colour.
    pub colour: Colour,
    /// Point of the text that lies at `at`.
    pub anchor: Anchor,
    /// Whether the text runs upwards.
    pub upwards: bool,
}

impl Text {
    /// Returns the text in this font size.
    pub fn sized(self, size: f64) -> Text {
        Text { size, ..self }
    }

    /// Returns the text in bold.
    pub fn bold(self) -> Text {
        let bold = true;
        Text { bold, ..self }
    }

    /// Returns the text in the colour of remarks.
    pub fn faint(self) -> Text {
        let colour = FAINT_INK;
        Text { colour, ..self }
    }

    /// Returns the text running upwards, if set.
    pub fn turned(self, upwards: bool) -> Text {
        Text { upwards, ..self }
    }

    /// Returns the width of the text before its anchor, in a font.
    pub fn before_anchor(&self, font: &Font) -> f64 {
        let share = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        };
        font.width(&self.text, self.size) * share
    }
}

/// A drawing item.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A line through points.
    Line {
        /// At least two points.
        points: Vec<Point>,
        /// Stroke.
        stroke: Stroke,
    },
    /// Many line segments with the same stroke.
    Segments {
        /// Start and end of each segment.
        segments: Vec<(Point, Point)>,
        /// Stroke.
        stroke: Stroke,
    },
    /// A closed area.
    Area {
        /// Corners, at least three.
        points: Vec<Point>,
        /// Fill.
        fill: Fill,
    },
    /// Many dots of the same size.
    Dots {
        /// Centres.
        centres: Vec<Point>,
        /// Radius in units.
        radius: f64,
        /// Fill.
        fill: Fill,
    },
    /// A text.
    Text(Text),
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width in units.
    pub width: f64,
    /// Height in units.
    pub height: f64,
    /// Title, which also describes the figure to screen readers.
    pub title: String,
    /// Items, from the bottom up.
    pub items: Vec<Item>,
}

impl Scene {
    /// Creates an empty figure.
    pub fn new(width: f64, height: f64, title: &str) -> Scene {
        Scene {
            width,
            height,
            title: title.to_owned(),
            items: Vec::new(),
        }
    }

    /// Adds a line through at least two points; ignores fewer.
    pub fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        if points.len() > 1 {
            self.items.push(Item::Line { points, stroke });
        }
    }

    /// Adds line segments, if there are any.
    pub fn segments(&mut self, segments: Vec<(Point, Point)>, stroke: Stroke) {
        if !segments.is_empty() {
            self.items.push(Item::Segments { segments, stroke });
        }
    }

    /// Adds a closed area with at least three corners; ignores fewer.
    pub fn area(&mut self, points: Vec<Point>, fill: Fill) {
        if points.len() > 2 {
            self.items.push(Item::Area { points, fill });
        }
    }

    /// Adds a rectangle with these opposite corners.
    pub fn rectangle(&mut self, (x0, y0): Point, (x1, y1): Point, fill: Fill) {
        self.area(vec![(x0, y0), (x1, y0), (x1, y1), (x0, y1)], fill);
    }

    /// Adds dots, if there are any.
    pub fn dots(&mut self, centres: Vec<Point>, radius: f64, fill: Fill) {
        if !centres.is_empty() {
            self.items.push(Item::Dots {
                centres,
                radius,
                fill,
            });
        }
    }

    /// Adds a text.
    pub fn text(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }
}

/// Colour of text.
pub const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Colour of remarks.
pub const FAINT_INK: Colour = Colour(0x66, 0x66, 0x66);
/// Colour of axes.
pub const AXIS: Colour = Colour(0x88, 0x88, 0x88);
/// Colour of grid lines.
pub const GRID: Colour = Colour(0xe4, 0xe4, 0xe4);
/// Colour of the background.
pub const PAPER: Colour = Colour(0xff, 0xff, 0xff);

/// Data colours, distinguishable with any kind of colour vision: those of M. Okabe and K. Ito,
/// "Color Universal Design" (2008), without yellow, which is too pale on white; a violet; and eight
/// found by maximising the minimum distance to all previous ones.
const SERIES: [Colour; 16] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x00, 0x00, 0x00),
    Colour(0x77, 0x00, 0xdd),
    Colour(0x5a, 0x2d, 0x00),
    Colour(0x3c, 0x4b, 0x4b),
    Colour(0x96, 0x78, 0xff),
    Colour(0x4b, 0x0f, 0x69),
    Colour(0xb4, 0xa5, 0x5a),
    Colour(0x3c, 0x00, 0x96),
    Colour(0xa5, 0x4b, 0x3c),
    Colour(0x69, 0x4b, 0x78),
];

/// Dash patterns (dash and gap length), used in rotation from the ninth series on, because some of
/// the 16 colours look alike in thin lines.
const DASHES: [(f64, f64); 3] = [(7.0, 3.0), (3.0, 2.0), (12.0, 4.0)];

/// Number of series that are distinguished by colour alone.
const SOLID: usize = 8;

/// Maximum number of series that a figure can distinguish.
pub const SERIES_MAX: usize = SERIES.len() * 2;

/// Look of a series in all panels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Colour.
    pub colour: Colour,
    /// Dash and gap length of its lines.
    pub dash: Option<(f64, f64)>,
}

impl Look {
    /// Returns the look of the series with this index, or `None` if there are too many.
    pub fn of(index: usize) -> Option<Look> {
        let (round, colour) = (index / SERIES.len(), index % SERIES.len());
        // In the second round, each colour gets a different pattern.
        let dash = DASHES[(index + round) % DASHES.len()];
        (index < SERIES_MAX).then_some(Look {
            colour: SERIES[colour],
            dash: (index >= SOLID).then_some(dash),
        })
    }

    /// Returns the stroke of the series' lines.
    pub fn stroke(self, width: f64) -> Stroke {
        Stroke::solid(self.colour, width).dashed(self.dash)
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use crate::scene::{INK, Scene, Stroke};

    /// Returns a figure with a dashed line.
    pub(crate) fn dashed() -> Scene {
        let mut scene = Scene::new(40.0, 10.0, "");
        let stroke = Stroke::solid(INK, 2.0).dashed(Some((7.0, 3.0)));
        scene.line(vec![(0.0, 5.0), (40.0, 5.0)], stroke);
        scene
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appearance of colours in linear light: with normal vision, and without one kind of cone
    /// cells (G. Machado, M. Oliveira, L. Fernandes, "A Physiologically-based Model for Simulation
    /// of Color Vision Deficiency", 2009, severity 1).
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// Converts a colour to CIELAB, in which distances correspond to perception.
    fn lab(Colour(red, green, blue): Colour, vision: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [red, green, blue].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        let [r, g, b] = vision.map(|row| {
            let parts = row.iter().zip(linear).map(|(weight, part)| weight * part);
            parts.sum::<f64>().clamp(0.0, 1.0)
        });
        let white = [0.9505, 1.0, 1.089];
        let xyz = [
            0.4124 * r + 0.3576 * g + 0.1805 * b,
            0.2126 * r + 0.7152 * g + 0.0722 * b,
            0.0193 * r + 0.1192 * g + 0.9505 * b,
        ];
        let root = |index: usize| {
            let share: f64 = xyz[index] / white[index];
            if share > 0.008856 {
                share.cbrt()
            } else {
                7.787 * share + 16.0 / 116.0
            }
        };
        let (x, y, z) = (root(0), root(1), root(2));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// A distance of 2.3 is just noticeable; 15 is distinct even in thin lines.
    #[test]
    fn colours_differ_with_any_kind_of_colour_vision() {
        for vision in &VISIONS {
            for (index, one) in SERIES.iter().enumerate() {
                for other in &SERIES[index + 1..] {
                    let (a, b) = (lab(*one, vision), lab(*other, vision));
                    let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(distance.sqrt() > 15.0, "{one:?} {other:?} {distance}");
                }
            }
        }
    }

    #[test]
    fn no_two_series_look_the_same() {
        let looks: Vec<Look> = (0..).map_while(Look::of).collect();
        assert_eq!(looks.len(), SERIES_MAX);
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[index + 1..].contains(look));
            assert_eq!(look.dash.is_some(), index >= 8, "docs/howto/figures.md");
        }
    }
}
