//! Checks of SVGs: well-formedness and positions of content.

/// Asserts that an SVG is well-formed XML without external references, NaN or infinity.
pub fn check_form(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = svg.split_once("?>").map_or("", |(_, body)| body);
    for piece in body.split('<').skip(1) {
        let Some((tag, text)) = piece.split_once('>') else {
            panic!("a tag without an end: {piece}");
        };
        assert!(!text.contains('>') && !tag.contains('&'), "{piece}");
        for entity in text.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
            assert!(known.iter().any(|name| entity.starts_with(name)), "{text}");
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        // Quotes are balanced, and attribute names are outside of quotes.
        let quotes = tag.matches('"').count();
        assert_eq!(quotes % 2, 0, "{tag}");
        let outside = tag.split('"').step_by(2).collect::<String>();
        assert_eq!(outside.matches('=').count() * 2, quotes, "{tag}");
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(!svg.contains("href") && !svg.contains("url("));
}

/// Returns the coordinates of all paths of a colour.
pub fn coordinates(svg: &str, colour: &str) -> Vec<(f64, f64)> {
    let paths = svg.lines().filter(|line| line.starts_with("<path"));
    let paths = paths.filter(|line| line.contains(colour));
    let data = paths.filter_map(|line| line.split('"').nth(1));
    let points = data.flat_map(|data| data.split(['M', 'L', 'z', 'h']));
    let points = points.filter_map(|point| point.trim().split_once(' '));
    let points = points.filter_map(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)));
    points.collect()
}

/// Colours of the first and second link.
pub const BLUE: &str = "#0072b2";
pub const RED: &str = "#d55e00";

/// Returns the number of labels with this text in a figure.
pub fn labels(svg: &str, label: &str) -> usize {
    svg.matches(&format!(">{label}</text>")).count()
}

/// Asserts that a figure has these labels, separated by bars.
#[track_caller]
pub fn assert_labels(svg: &str, expected: &str) {
    for label in expected.split('|').map(str::trim) {
        assert!(labels(svg, label) > 0, "no label '{label}'");
    }
}

/// Returns the position of a tick on the horizontal axis.
pub fn tick(svg: &str, label: &str) -> f64 {
    let end = format!("text-anchor=\"middle\">{label}</text>");
    let line = svg.lines().find(|line| line.ends_with(&end));
    let x = line.and_then(|line| line.split("x=\"").nth(1)?.split('"').next());
    x.and_then(|x| x.parse().ok()).unwrap_or(f64::NAN)
}

/// Vertical scale of a single-panel figure.
pub struct Scale {
    zero: f64,
    unit: f64,
}

impl Scale {
    /// Returns the scale from the positions of the ticks 0 and `tick`.
    pub fn of(svg: &str, tick: f64) -> Scale {
        let place = |tick: f64| {
            let label = format!("text-anchor=\"end\">{tick}<");
            let line = svg.lines().find(|line| line.contains(&label));
            let y = line.and_then(|line| line.split("y=\"").nth(1)?.split('"').next());
            // Labels are slightly below their ticks.
            y.and_then(|y| y.parse().ok()).unwrap_or(f64::NAN) - 3.7
        };
        let zero = place(0.0);
        let unit = (zero - place(tick)) / tick;
        Scale { zero, unit }
    }

    /// Returns the value at a position.
    pub fn value(&self, place: f64) -> f64 {
        (self.zero - place) / self.unit
    }
}
