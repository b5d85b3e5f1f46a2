//! The parts of a figure, before it is written as SVG or PNG.
//!
//! Lengths and positions are in *units*: pixels of an SVG at its own size. The
//! origin is the top left corner, and y grows downwards.

/// A position: x and y.
pub type Point = (f64, f64);

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// The fill of an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Its colour.
    pub colour: Colour,
    /// From 0, invisible, to 1.
    pub opacity: f64,
}

impl Fill {
    /// Returns an opaque fill.
    pub fn solid(colour: Colour) -> Fill {
        let opacity = 1.0;
        Fill { colour, opacity }
    }
}

/// The stroke of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub colour: Colour,
    /// Its width in units.
    pub width: f64,
    /// From 0, invisible, to 1.
    pub opacity: f64,
    /// Lengths of dashes and gaps in units.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// Returns the stroke of a continuous line.
    pub fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            opacity: 1.0,
            dash: None,
        }
    }
}

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Position of its anchor, on the baseline.
    pub at: Point,
    /// Its characters.
    pub text: String,
    /// Size of the font, in units.
    pub size: f64,
    /// Whether its letters are bold.
    pub bold: bool,
    /// Its colour.
    pub colour: Colour,
    /// The part of the text that is at `at`.
    pub anchor: Anchor,
    /// Whether the text runs upwards.
    pub upwards: bool,
}

/// An item of the figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A line through points.
    Line {
        /// At least two points.
        points: Vec<Point>,
        /// Its stroke.
        stroke: Stroke,
    },
    /// Many short lines with one stroke.
    Segments {
        /// Starts and ends.
        segments: Vec<(Point, Point)>,
        /// Their stroke.
        stroke: Stroke,
    },
    /// A closed area.
    Area {
        /// Its corners, at least three.
        points: Vec<Point>,
        /// Its fill.
        fill: Fill,
    },
    /// Many dots of one size.
    Dots {
        /// Their centres.
        centres: Vec<Point>,
        /// Their radius.
        radius: f64,
        /// Their fill.
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
    /// The title, which also describes the figure to a screen reader.
    pub title: String,
    /// Its items, the lowest first.
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

    /// Adds a line through points; ignores fewer than two.
    pub fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        if points.len() > 1 {
            self.items.push(Item::Line { points, stroke });
        }
    }

    /// Adds short lines, if there are any.
    pub fn segments(&mut self, segments: Vec<(Point, Point)>, stroke: Stroke) {
        if !segments.is_empty() {
            self.items.push(Item::Segments { segments, stroke });
        }
    }

    /// Adds a closed area; ignores fewer than three corners.
    pub fn area(&mut self, points: Vec<Point>, fill: Fill) {
        if points.len() > 2 {
            self.items.push(Item::Area { points, fill });
        }
    }

    /// Adds a rectangle by two opposite corners.
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
