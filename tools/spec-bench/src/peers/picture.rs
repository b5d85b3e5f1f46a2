//! The comparison as a picture: one row per figure, and how many times better Longwire is.

use longwire_plot::scene::{
    Anchor, Colour, Fill, GRID, INK, Look, PAPER, Point, Scene, Stroke, Text,
};
use longwire_plot::{Axis, Units};

use super::comparison::{ComparisonRow, PeersFindings};
use super::programs::Peer;

const WIDTH: f64 = 800.0;
const MARGIN: f64 = 16.0;
/// Edges of the plot, between the names of the figures and Longwire's values.
const LEFT: f64 = 226.0;
const RIGHT: f64 = 680.0;
/// Space above the first row, and below the last.
const HEAD: f64 = 110.0;
const FOOT: f64 = 50.0;
const ROW: f64 = 20.0;
/// Height of a table's name above its rows.
const NAME: f64 = 32.0;

const TITLE_SIZE: f64 = 16.0;
const SIZE: f64 = 12.0;
/// Distance from the middle of a line of text to its baseline.
const BASE: f64 = 4.3;

/// Limits of the axis. Ratios beyond are drawn at its end, with a remark: next to a value close to 0,
/// they mean little, and they would compress the other rows.
const RATIO_MIN: f64 = 0.01;
const RATIO_MAX: f64 = 100.0;
/// Space at both ends of the axis, as a factor.
const SPARE: f64 = 1.3;

/// Half the side of a square marker.
const SIDE: f64 = 5.5;

/// Background of the side where the other program is better.
const BEHIND: Colour = Colour(0xf3, 0xf3, 0xf3);

const PEERS: [Peer; 4] = [Peer::Mahimahi, Peer::Rattan, Peer::Tcpreplay, Peer::Tlem];

/// Draws the rows of all tables below one another.
pub fn draw(findings: &PeersFindings) -> Scene {
    let tables = [
        ("Live links", &findings.live),
        ("Replay", &findings.replay),
        ("Memory to memory", &findings.memory),
    ];
    let tables: Vec<_> = tables
        .into_iter()
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let all: Vec<&ComparisonRow> = tables.iter().flat_map(|(_, rows)| *rows).collect();
    let mut figures: Vec<(&[ComparisonRow], f64)> = Vec::new();
    let mut names = Vec::new();
    let mut bottom = HEAD;
    for (name, rows) in tables {
        names.push(text(name, (MARGIN, bottom + NAME - ROW / 2.0), Anchor::Start).bold());
        bottom += NAME;
        for figure in rows.chunk_by(|one, other| one.figure == other.figure) {
            figures.push((figure, bottom + ROW / 2.0));
            bottom += ROW;
        }
    }
    let title = "Longwire next to other programs: times better (medians)";
    let mut picture = Picture {
        scene: Scene::new(WIDTH, bottom + FOOT, title),
        axis: axis(&all),
    };
    picture.background(bottom, figures.iter().map(|(_, middle)| *middle));
    picture.head(title, &all);
    for name in names {
        picture.scene.text(name);
    }
    for (rows, middle) in figures {
        picture.row(rows, middle);
    }
    picture.scene
}

/// Returns an axis that spans all ratios, and at least half to twice as good.
fn axis(rows: &[&ComparisonRow]) -> Axis {
    let ratios = rows.iter().filter_map(|row| row.times_better);
    let ratios = ratios.map(|ratio| ratio.clamp(RATIO_MIN, RATIO_MAX));
    let (low, high) = ratios.fold((0.5, 2.0), |(low, high), ratio: f64| {
        (ratio.min(low), ratio.max(high))
    });
    Axis::logarithmic(low / SPARE, high * SPARE, Units::BARE)
}

struct Picture {
    scene: Scene,
    axis: Axis,
}

impl Picture {
    fn x(&self, ratio: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.axis.place(ratio)
    }

    /// Draws the axis from the head to the bottom of the last row, and a guide per row.
    fn background(&mut self, bottom: f64, middles: impl Iterator<Item = f64>) {
        let one = self.x(1.0);
        let upright = |x: f64| ((x, HEAD), (x, bottom));
        let fill = Fill::solid(BEHIND);
        self.scene.rectangle((LEFT, HEAD), (one, bottom), fill);
        let ticks = self.axis.ticks.clone();
        let grid = ticks.iter().map(|(ratio, _)| upright(self.x(*ratio)));
        let guides = middles.map(|middle| ((LEFT, middle), (RIGHT, middle)));
        let grid = grid.chain(guides).collect();
        self.scene.segments(grid, Stroke::solid(GRID, 1.0));
        let (from, to) = upright(one);
        self.scene.line(vec![from, to], Stroke::solid(INK, 2.0));
        for (ratio, label) in ticks {
            for middle in [HEAD - 10.0, bottom + 12.0] {
                let at = (self.x(ratio), middle);
                self.scene.text(text(&label, at, Anchor::Middle));
            }
        }
        let at = (f64::midpoint(LEFT, RIGHT), bottom + 32.0);
        let caption = "times better than the other program, logarithmic";
        self.scene.text(text(caption, at, Anchor::Middle));
    }

    /// Writes the title, a legend of the compared programs, and the meaning of both sides.
    fn head(&mut self, title: &str, rows: &[&ComparisonRow]) {
        let heading = text(title, (MARGIN, 22.0), Anchor::Start);
        self.scene.text(heading.sized(TITLE_SIZE).bold());
        let is_shown = |peer: &Peer| {
            let mut of_peer = rows.iter().filter(|row| row.peer == Some(*peer));
            of_peer.any(|row| row.times_better.is_some())
        };
        let mut left = LEFT;
        for peer in PEERS.into_iter().filter(is_shown) {
            self.marker(peer, (left + 6.0, 50.0));
            let name = text(peer.name(), (left + 18.0, 50.0), Anchor::Start);
            self.scene.text(name);
            left += 110.0;
        }
        let (one, middle) = (self.x(1.0), HEAD - 30.0);
        let sides = [
            ("other program better", one - 10.0, Anchor::End),
            ("Longwire better", one + 10.0, Anchor::Start),
            ("Longwire", WIDTH - MARGIN, Anchor::End),
        ];
        for (side, x, anchor) in sides {
            self.scene.text(text(side, (x, middle), anchor).bold());
        }
    }

    /// Draws a figure: its name, a marker per program, and Longwire's median.
    fn row(&mut self, rows: &[ComparisonRow], middle: f64) {
        let Some(first) = rows.first() else { return };
        let name = text(&first.figure, (LEFT - 10.0, middle), Anchor::End);
        self.scene.text(name);
        let value = format!("{} {}", short(first.longwire), first.unit);
        let at = (WIDTH - MARGIN, middle);
        self.scene.text(text(&value, at, Anchor::End));
        let mut without = Vec::new();
        for row in rows {
            match (row.peer, row.times_better) {
                (Some(peer), Some(ratio)) => self.ratio(peer, ratio, middle),
                (Some(peer), None) => {
                    let value = row.peer_median.map_or("unknown".to_owned(), short);
                    without.push(format!("{} {value} {}", peer.name(), row.unit));
                }
                (None, _) => {}
            }
        }
        if !without.is_empty() {
            let remark = format!("no ratio: {}", without.join(", "));
            self.remark(&remark, (self.x(1.0) + 10.0, middle), Anchor::Start);
        }
    }

    fn ratio(&mut self, peer: Peer, ratio: f64, middle: f64) {
        let x = self.x(ratio);
        if ratio > RATIO_MAX {
            self.remark("over 100", (x - 12.0, middle), Anchor::End);
        }
        if ratio < RATIO_MIN {
            self.remark("under 0.01", (x + 12.0, middle), Anchor::Start);
        }
        self.marker(peer, (x, middle));
    }

    /// Writes a remark in place of the grid.
    fn remark(&mut self, remark: &str, (x, middle): Point, anchor: Anchor) {
        let width = remark.len() as f64 * SIZE * 0.6;
        let from = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let corners = [
            (from, middle - SIZE / 2.0),
            (from + width, middle + SIZE / 2.0),
        ];
        let paper = Fill::solid(PAPER);
        self.scene.rectangle(corners[0], corners[1], paper);
        let remark = text(remark, (x, middle), anchor);
        self.scene.text(remark.faint());
    }

    /// Draws a program's marker. Programs of the same row remain visible on top of each other: a
    /// disc within a square.
    fn marker(&mut self, peer: Peer, (x, y): Point) {
        let colour = colour(peer);
        let fill = Fill::solid(colour);
        let around = |corners: &[Point]| corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        match peer {
            Peer::Mahimahi => self.scene.dots(vec![(x, y)], 4.5, fill),
            Peer::Rattan => {
                let square = [(-SIDE, -SIDE), (SIDE, -SIDE), (SIDE, SIDE), (-SIDE, SIDE)];
                let mut outline: Vec<Point> = around(&square);
                // The last side overlaps the first, so that the joint is closed.
                outline.extend_from_within(..2);
                self.scene.line(outline, Stroke::solid(colour, 2.0));
            }
            Peer::Tcpreplay => {
                let triangle = around(&[(0.0, -6.0), (6.0, 5.0), (-6.0, 5.0)]);
                self.scene.area(triangle, fill);
            }
            Peer::Tlem => {
                let diamond = around(&[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)]);
                self.scene.area(diamond, fill);
            }
        }
    }
}

fn colour(peer: Peer) -> Colour {
    Look::of(peer as usize).map_or(INK, |look| look.colour)
}

/// Returns a text whose middle has this height.
fn text(text: &str, (x, middle): Point, anchor: Anchor) -> Text {
    Text {
        at: (x, middle + BASE),
        text: text.to_owned(),
        size: SIZE,
        bold: false,
        colour: INK,
        anchor,
        upwards: false,
    }
}

/// Formats a value with three significant digits, and at most four decimals.
fn short(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 4.0) as usize;
    let text = format!("{value:.decimals$}");
    match decimals {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longwire_plot::scene::Item;
    use longwire_plot::svg;

    use super::super::comparison::{Contender, Reading, rows};
    use super::*;

    /// Returns findings in which Longwire is behind mahimahi in one figure, and loses nothing.
    fn sample(peers: &[Peer]) -> PeersFindings {
        let mut contenders = vec![Contender::Longwire];
        contenders.extend(peers.iter().map(|peer| Contender::Peer(*peer)));
        let readings = |speed, cpu, lost| {
            vec![vec![
                Reading::more("TCP", "Gbit/s", speed),
                Reading::less("CPU", "%", cpu),
                Reading::less("losses", "%", lost),
            ]]
        };
        let mut found = vec![readings(12.0, 2.0, 0.0)];
        found.extend(peers.iter().map(|_| readings(3.0, 1.0, 80.8)));
        PeersFindings {
            live: rows(&contenders, &found),
            ..PeersFindings::default()
        }
    }

    fn texts(scene: &Scene) -> Vec<&str> {
        let texts = scene.items.iter().filter_map(|item| match item {
            Item::Text(text) => Some(&*text.text),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the middles of a program's markers below the head.
    fn markers(scene: &Scene, peer: Peer) -> Vec<Point> {
        let middles = scene.items.iter().filter_map(|item| match item {
            Item::Dots { centres, fill, .. } if fill.colour == colour(peer) => Some(centres[0]),
            Item::Line { points, stroke } if stroke.colour == colour(peer) => {
                Some((points[0].0 + SIDE, points[0].1 + SIDE))
            }
            _ => None,
        });
        middles.filter(|(_, y)| *y > HEAD).collect()
    }

    /// Returns the position of the line at 1.
    fn one(scene: &Scene) -> f64 {
        let mut lines = scene.items.iter().filter_map(|item| match item {
            Item::Line { points, stroke } if stroke.colour == INK => Some(points[0].0),
            _ => None,
        });
        lines.next().expect("there is a line at 1")
    }

    #[test]
    fn every_figure_has_a_row_and_worse_ones_are_left_of_the_line() {
        let scene = draw(&sample(&[Peer::Mahimahi, Peer::Rattan]));
        let texts = texts(&scene);
        for figure in ["TCP", "CPU", "losses"] {
            let count = texts.iter().filter(|text| **text == figure).count();
            assert_eq!(count, 1, "{figure}");
        }
        assert!(texts.contains(&"12 Gbit/s"), "{texts:?}");
        let remark = "no ratio: mahimahi 80.8 %, Rattan 80.8 %";
        assert!(texts.contains(&remark), "{texts:?}");

        let one = one(&scene);
        let label = format!("<text x=\"{one:.2}\"");
        let svg = svg::render(&scene);
        let label = svg.lines().find(|line| line.starts_with(&label));
        assert!(
            label.is_some_and(|line| line.ends_with(">1</text>")),
            "{svg}"
        );
        for peer in [Peer::Mahimahi, Peer::Rattan] {
            let markers = markers(&scene, peer);
            let [tcp, cpu] = markers[..] else {
                panic!("not one marker per ratio: {markers:?}");
            };
            assert!(tcp.0 > one && cpu.0 < one, "{markers:?}, {one}");
            assert!((cpu.1 - tcp.1 - ROW).abs() < 1e-9);
        }
    }

    #[test]
    fn missing_programs_have_no_markers() {
        let scene = draw(&sample(&[Peer::Mahimahi]));
        assert_eq!(markers(&scene, Peer::Mahimahi).len(), 2);
        assert_eq!(markers(&scene, Peer::Rattan), []);
        assert!(!texts(&scene).contains(&"Rattan"));
        let scene = draw(&sample(&[]));
        assert!(texts(&scene).contains(&"CPU"));
        assert_eq!(markers(&scene, Peer::Mahimahi), []);
    }

    #[test]
    fn ratios_beyond_the_axis_are_marked() {
        let mut findings = sample(&[Peer::Mahimahi]);
        findings.live[0].times_better = Some(9.5e6);
        let scene = draw(&findings);
        assert!(texts(&scene).contains(&"over 100"));
        let inside = markers(&scene, Peer::Mahimahi)
            .iter()
            .all(|(x, _)| *x <= RIGHT);
        assert!(inside);
    }

    #[test]
    fn the_picture_in_the_readme_is_that_of_its_figures() {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
        let findings = PeersFindings::read(&[images.join("peers.json")]).expect("figures");
        let picture = std::fs::read_to_string(images.join("peers.svg")).expect("a picture");
        assert_eq!(picture, svg::render(&draw(&findings)), "see README.md");
    }

    #[test]
    fn values_have_three_digits() {
        let shown = [12.69, 830.7, 19_856.0, 0.0022, 0.015, 0.0, 100.0].map(short);
        let expected = ["12.7", "831", "19856", "0.0022", "0.015", "0", "100"];
        assert_eq!(shown, expected);
    }
}
