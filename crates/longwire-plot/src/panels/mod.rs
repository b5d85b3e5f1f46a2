//! The panels.

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
    /// Bits per second offered and delivered, over time.
    Throughput,
    /// Queue length over time.
    Queue,
    /// One-way delay over time, with drops marked.
    Delay,
    /// The share of frames with at most a delay, by delay.
    DelayCdf,
    /// Lengths of loss runs, and their frequencies.
    LossRuns,
    /// Drops by reason.
    Drops,
    /// Lateness of frames at their handover, from reports.
    Lateness,
    /// Frames in, out, dropped, and artifacts, from reports.
    Counts,
}

/// The unit of queue lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueUnit {
    /// In packets.
    #[default]
    Packets,
    /// In bytes.
    Bytes,
}

/// Data with an entry in the legend.
#[derive(Debug)]
pub struct LegendEntry<T> {
    /// Its name in the legend.
    pub label: String,
    /// Its look in all panels.
    pub look: Look,
    /// The number of its cell, in a figure of small multiples.
    pub cell: usize,
    /// The data.
    pub data: T,
}

/// The data of all panels.
#[derive(Debug)]
pub struct Data {
    /// Links of logs.
    pub logs: Vec<LegendEntry<LogSeries>>,
    /// Links of reports.
    pub reports: Vec<LegendEntry<PartDocument>>,
    /// The part of the logs that is drawn.
    pub window: Window,
    /// Times of changes of the run, in nanoseconds after the zero of the time axis.
    pub changes: Vec<i64>,
    /// The unit of queue lengths.
    pub queue_unit: QueueUnit,
    /// The cell that is drawn; all data determine the axes. Without it, all are drawn.
    pub cell: Option<usize>,
}

impl Data {
    /// Returns the links of logs that are drawn.
    fn shown(&self) -> impl Iterator<Item = &LegendEntry<LogSeries>> {
        let cell = self.cell;
        self.logs
            .iter()
            .filter(move |of| cell.is_none_or(|cell| of.cell == cell))
    }
}

impl Panel {
    /// All panels, in the order of a figure.
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

    /// Returns the panel's name, e.g. `delay-cdf`.
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

    /// Returns whether the panel is drawn from logs.
    pub fn is_of_logs(self) -> bool {
        !matches!(self, Panel::Lateness | Panel::Counts)
    }

    /// Returns whether the panel can be drawn as small multiples.
    pub fn has_cells(self) -> bool {
        matches!(
            self,
            Panel::Throughput | Panel::Queue | Panel::Delay | Panel::DelayCdf
        )
    }

    /// Returns whether the panel is drawn from reports.
    pub fn is_of_reports(self) -> bool {
        matches!(self, Panel::Drops | Panel::Lateness | Panel::Counts)
    }

    /// Returns whether the panel is drawn by default from logs, reports or both.
    pub fn is_usual(self, has_logs: bool, has_reports: bool) -> bool {
        // The other panels of a log already show its drops over time.
        self != Panel::Drops && self.is_of_logs() && has_logs || self.is_of_reports() && has_reports
    }

    /// Returns the height of its frame in units, if the options have no height of
    /// the figure.
    pub fn height(self, data: &Data) -> f64 {
        match self {
            Panel::Throughput | Panel::Queue | Panel::LossRuns => 150.0,
            Panel::Delay | Panel::DelayCdf => 180.0,
            Panel::Drops | Panel::Lateness | Panel::Counts => {
                crate::panels::bars::height(self, data)
            }
        }
    }

    /// Returns the room above its frame of this width, for the heading and the
    /// notes.
    pub fn head(self, data: &Data, width: f64) -> f64 {
        const HEADING: f64 = 30.0;
        HEADING
            + match self {
                Panel::Delay => crate::panels::time::rug_height(data),
                Panel::DelayCdf => notes_height(&delay_cdf::notes(data), width),
                Panel::LossRuns => notes_height(&crate::panels::bars::run_notes(data), width),
                _ => 0.0,
            }
    }

    /// Draws the panel.
    pub fn draw(self, scene: &mut Scene, frame: &Frame, data: &Data) {
        match self {
            Panel::Throughput => crate::panels::time::draw_throughput(scene, frame, data),
            Panel::Queue => crate::panels::time::draw_queue(scene, frame, data),
            Panel::Delay => crate::panels::time::draw_delay(scene, frame, data),
            Panel::DelayCdf => delay_cdf::draw(scene, frame, data),
            Panel::LossRuns => crate::panels::bars::draw_loss_runs(scene, frame, data),
            Panel::Drops => crate::panels::bars::draw_drops(scene, frame, data),
            Panel::Lateness => crate::panels::bars::draw_lateness(scene, frame, data),
            Panel::Counts => crate::panels::bars::draw_counts(scene, frame, data),
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
