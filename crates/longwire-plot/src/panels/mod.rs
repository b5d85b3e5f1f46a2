//! Panels of a figure.

mod bars;
mod delay_cdf;
mod time;

use super::frame::{Frame, notes_height};
use super::page::PartDocument;
use super::scene::Scene;
use super::series::{LogSeries, Window};
use crate::scene::Look;

/// A panel of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    /// Offered and delivered bit/s over time.
    Throughput,
    /// Queue length over time.
    Queue,
    /// One-way delay over time, with drop marks.
    Delay,
    /// Cumulative distribution of the delay.
    DelayCdf,
    /// Frequency of loss runs by length.
    LossRuns,
    /// Drops by reason.
    Drops,
    /// Lateness at handover, from reports.
    Lateness,
    /// Frames in, out and dropped, and artifacts, from reports.
    Counts,
}

/// Unit of queue lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueUnit {
    /// Packets.
    #[default]
    Packets,
    /// Bytes.
    Bytes,
}

/// Data with a legend entry.
#[derive(Debug)]
pub struct LegendEntry<T> {
    /// Name in the legend.
    pub label: String,
    /// Look, which is the same in all panels.
    pub look: Look,
    /// Index of the cell, in a figure of small multiples.
    pub cell: usize,
    /// Data of the link.
    pub data: T,
}

/// Data for all panels.
#[derive(Debug)]
pub struct Data {
    /// Links from logs.
    pub logs: Vec<LegendEntry<LogSeries>>,
    /// Links from reports.
    pub reports: Vec<LegendEntry<PartDocument>>,
    /// Time range and resolution of the logs that are drawn.
    pub window: Window,
    /// Times of the run's changes, in nanoseconds after the zero of the time axis.
    pub changes: Vec<i64>,
    /// Unit of queue lengths.
    pub queue_unit: QueueUnit,
    /// Cell to draw; all data still determines the axes. `None` draws all cells.
    pub cell: Option<usize>,
}

impl Data {
    /// Returns the legend entries of all links.
    pub fn legend(&self) -> impl Iterator<Item = (Look, &String)> {
        let logs = self.logs.iter().map(|of| (of.look, &of.label));
        logs.chain(self.reports.iter().map(|of| (of.look, &of.label)))
    }

    /// Returns the links from logs that are drawn in the current cell.
    fn shown(&self) -> impl Iterator<Item = &LegendEntry<LogSeries>> {
        let is_shown = |of: &&LegendEntry<_>| self.cell.is_none_or(|cell| of.cell == cell);
        self.logs.iter().filter(is_shown)
    }
}

impl Panel {
    /// All panels, in figure order.
    pub const ALL: [Panel; 8] = [
        Panel::Throughput,
        Panel::Queue,
        Panel::Delay,
        Panel::DelayCdf,
        Panel::LossRuns,
        Panel::Counts,
        Panel::Drops,
        Panel::Lateness,
    ];

    /// Returns the panel's name, such as `delay-cdf`.
    pub fn name(self) -> &'static str {
        match self {
            Panel::Throughput => "throughput",
            Panel::Queue => "queue",
            Panel::Delay => "delay",
            Panel::DelayCdf => "delay-cdf",
            Panel::LossRuns => "loss-runs",
            Panel::Drops => "drops",
            Panel::Lateness => "lateness",
            Panel::Counts => "counts",
        }
    }

    /// Whether the panel is drawn from logs.
    pub fn is_of_logs(self) -> bool {
        !matches!(self, Panel::Lateness | Panel::Counts)
    }

    /// Whether the panel can be drawn as small multiples.
    pub fn has_cells(self) -> bool {
        use Panel::{Delay, DelayCdf, Queue, Throughput};
        matches!(self, Throughput | Queue | Delay | DelayCdf)
    }

    /// Whether the panel is drawn from reports.
    pub fn is_of_reports(self) -> bool {
        matches!(self, Panel::Drops | Panel::Lateness | Panel::Counts)
    }

    /// Whether the panel is drawn by default for logs, reports or both.
    pub fn is_usual(self, has_logs: bool, has_reports: bool) -> bool {
        // `Drops` is not drawn for logs alone, whose other panels show drops over time.
        self != Panel::Drops && self.is_of_logs() && has_logs || self.is_of_reports() && has_reports
    }

    /// Returns the frame height in units, for figures without a specified height.
    pub fn height(self, data: &Data) -> f64 {
        match self {
            Panel::Throughput | Panel::Queue | Panel::LossRuns => 150.0,
            Panel::Delay | Panel::DelayCdf => 180.0,
            Panel::Drops | Panel::Lateness | Panel::Counts => bars::height(self, data),
        }
    }

    /// Returns the height needed above a frame of this width, for heading and notes.
    pub fn head(self, data: &Data, width: f64) -> f64 {
        const HEADING: f64 = 30.0;
        HEADING
            + match self {
                Panel::Delay => time::rug_height(data),
                Panel::DelayCdf => notes_height(&delay_cdf::notes(data), width),
                Panel::LossRuns => notes_height(&bars::run_notes(data), width),
                _ => 0.0,
            }
    }

    /// Draws the panel.
    pub fn draw(self, scene: &mut Scene, frame: &Frame, data: &Data) {
        match self {
            Panel::Throughput => time::draw_throughput(scene, frame, data),
            Panel::Queue => time::draw_queue(scene, frame, data),
            Panel::Delay => time::draw_delay(scene, frame, data),
            Panel::DelayCdf => delay_cdf::draw(scene, frame, data),
            Panel::LossRuns => bars::draw_loss_runs(scene, frame, data),
            Panel::Drops => bars::draw_drops(scene, frame, data),
            Panel::Lateness => bars::draw_lateness(scene, frame, data),
            Panel::Counts => bars::draw_counts(scene, frame, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_is_drawn_from_something() {
        for panel in Panel::ALL {
            assert!(panel.is_of_logs() || panel.is_of_reports(), "{panel:?}");
        }
    }
}
