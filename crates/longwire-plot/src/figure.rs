//! A figure: title, legend, and panels one below the other.

use super::PlotError;
use super::frame::{Frame, LABEL_SIZE, Note, draw_flow, flow};
use super::palette;
use super::panels::{Data, Panel};
use super::scene::{Anchor, Scene, Text};

/// Size of the title.
const TITLE_SIZE: f64 = 16.0;
/// Room to the left of the panels, for the captions of the vertical axes.
pub(super) const LEFT: f64 = 84.0;
pub(super) const RIGHT: f64 = 22.0;
/// Room above everything.
const TOP: f64 = 14.0;
/// Room below a panel, for the captions of its horizontal axis.
const BELOW: f64 = 44.0;
/// The lowest readable frame.
const FRAME_MIN: f64 = 40.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 20.0;

/// Draws a figure of these panels.
///
/// # Errors
/// If the given height is too little for the panels.
pub(super) fn draw(
    data: &Data,
    panels: &[Panel],
    title: &str,
    width: f64,
    height: Option<f64>,
) -> Result<Scene, PlotError> {
    let logs = data.logs.iter().map(|of| (of.colour, of.label.clone()));
    let reports = data.reports.iter().map(|of| (of.colour, of.label.clone()));
    let names: Vec<Note> = logs.chain(reports).collect();
    let frame_width = width - LEFT - RIGHT;
    let legend = flow(&names, frame_width);
    let head = TOP + TITLE_SIZE + 12.0 + LEGEND_LINE * legend.len() as f64;
    let around = panels
        .iter()
        .map(|panel| panel.head(data, frame_width) + BELOW);
    let fixed = head + around.sum::<f64>();
    let natural: f64 = panels.iter().map(|panel| panel.height(data)).sum();
    let stretch = match height {
        None => 1.0,
        Some(height) => (height - fixed) / natural,
    };
    let least = panels
        .iter()
        .map(|panel| panel.height(data))
        .fold(natural, f64::min);
    if least * stretch < FRAME_MIN {
        let needed = (fixed + natural * FRAME_MIN / least).ceil();
        let count = panels.len();
        return Err(PlotError::Usage(format!(
            "--height is too little for {count} panels: they need {needed}; \
             or choose fewer with --panel"
        )));
    }
    let mut scene = Scene::new(width, fixed + natural * stretch, title);
    scene.text(Text {
        at: (LEFT, TOP + TITLE_SIZE * 0.8),
        text: title.to_owned(),
        size: TITLE_SIZE,
        bold: true,
        colour: palette::INK,
        anchor: Anchor::Start,
        upwards: false,
    });
    let place = (LEFT, TOP + TITLE_SIZE + 10.0);
    draw_flow(&mut scene, &legend, place, LEGEND_LINE, LABEL_SIZE);
    let mut top = head;
    for panel in panels {
        let frame = Frame {
            left: LEFT,
            top: top + panel.head(data, frame_width),
            width: frame_width,
            height: panel.height(data) * stretch,
        };
        panel.draw(&mut scene, &frame, data);
        top = frame.bottom() + BELOW;
    }
    Ok(scene)
}
