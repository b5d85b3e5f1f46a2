//! The parts of a figure, before it is written as SVG or PNG.
//!
//! Lengths and places are in *units*: pixels of an SVG at its own size. The
//! origin is the top left corner, and y grows downwards.

/// A place: x and y.
pub type Point = (f64, f64);

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// How an area is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Its colour.
    pub colour: Colour,
    /// From 0, not seen, to 1.
    pub opacity: f64,
}

impl Fill {
    /// Covers what lies below.
    pub fn solid(colour: Colour) -> Fill {
        let opacity = 1.0;
        Fill { colour, opacity }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub colour: Colour,
    /// Its width in units.
    pub width: f64,
    /// From 0, not seen, to 1.
    pub opacity: f64,
    /// Units drawn and units left out.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// A continuous line.
    pub fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            opacity: 1.0,
            dash: None,
        }
    }
}

/// Which part of a text is at its place.
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
    /// Where its anchor is, on the line that letters stand on.
    pub at: Point,
    /// What it says.
    pub text: String,
    /// Height of its letters' body, in units.
    pub size: f64,
    /// Whether its letters are bold.
    pub bold: bool,
    /// Its colour.
    pub colour: Colour,
    /// What is at its place.
    pub anchor: Anchor,
    /// Whether it runs upwards.
    pub upwards: bool,
}

/// A part of the figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A line through points.
    Line {
        /// At least two.
        points: Vec<Point>,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// Many short lines, drawn the same.
    Segments {
        /// Beginnings and ends.
        segments: Vec<(Point, Point)>,
        /// How they are drawn.
        stroke: Stroke,
    },
    /// A closed area.
    Area {
        /// Its corners, at least three.
        points: Vec<Point>,
        /// How it is filled.
        fill: Fill,
    },
    /// Many dots of one size.
    Dots {
        /// Their centres.
        centres: Vec<Point>,
        /// Their radius.
        radius: f64,
        /// How they are filled.
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
    /// The title, which also describes the figure to those who cannot see it.
    pub title: String,
    /// Its parts, the lowest first.
    pub items: Vec<Item>,
}

impl Scene {
    /// An empty figure.
    pub fn new(width: f64, height: f64, title: &str) -> Scene {
        Scene {
            width,
            height,
            title: title.to_owned(),
            items: Vec::new(),
        }
    }

    /// A line through points; fewer than two are no line.
    pub fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        if points.len() > 1 {
            self.items.push(Item::Line { points, stroke });
        }
    }

    /// Short lines, if any.
    pub fn segments(&mut self, segments: Vec<(Point, Point)>, stroke: Stroke) {
        if !segments.is_empty() {
            self.items.push(Item::Segments { segments, stroke });
        }
    }

    /// A closed area; fewer than three corners are none.
    pub fn area(&mut self, points: Vec<Point>, fill: Fill) {
        if points.len() > 2 {
            self.items.push(Item::Area { points, fill });
        }
    }

    /// A rectangle by two opposite corners.
    pub fn rectangle(&mut self, (x0, y0): Point, (x1, y1): Point, fill: Fill) {
        self.area(vec![(x0, y0), (x1, y0), (x1, y1), (x0, y1)], fill);
    }

    /// Dots, if any.
    pub fn dots(&mut self, centres: Vec<Point>, radius: f64, fill: Fill) {
        if !centres.is_empty() {
            self.items.push(Item::Dots {
                centres,
                radius,
                fill,
            });
        }
    }

    /// A text.
    pub fn text(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }
}
