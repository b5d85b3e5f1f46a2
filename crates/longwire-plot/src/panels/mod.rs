//! The panels, one file each.

mod bars;
mod delay;
mod delay_cdf;
mod loss_runs;
mod queue;
mod report;
mod throughput;
mod time;

use super::frame::{Frame, notes_height};
use super::input::ReportLink;
use super::scene::{Colour, Scene};
use super::series::{LogSeries, Window};

/// A panel of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    /// Bits a second offered and delivered, over time.
    Throughput,
    /// Queue length over time.
    Queue,
    /// One-way delay over time, with drops marked.
    Delay,
    /// The share of frames that had at most a delay, by delay.
    DelayCdf,
    /// Lengths of loss runs, and how often each occurred.
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

/// Data with a place in the legend.
#[derive(Debug)]
pub struct Drawn<T> {
    /// What the legend calls it.
    pub label: String,
    /// Its colour everywhere.
    pub colour: Colour,
    /// The data.
    pub data: T,
}

/// All that panels are drawn from.
#[derive(Debug)]
pub struct Data {
    /// Links of logs.
    pub logs: Vec<Drawn<LogSeries>>,
    /// Links of reports.
    pub reports: Vec<Drawn<ReportLink>>,
    /// The part of the logs that is drawn.
    pub window: Window,
    /// The unit of queue lengths.
    pub queue_unit: QueueUnit,
}

impl Panel {
    /// Every panel, in the order in which they stand in a figure.
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

    /// Its name, as in `delay-cdf`.
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

    /// Returns whether it can be drawn from logs.
    pub fn is_of_logs(self) -> bool {
        !matches!(self, Panel::Lateness | Panel::Counts)
    }

    /// Returns whether it can be drawn from reports.
    pub fn is_of_reports(self) -> bool {
        matches!(self, Panel::Drops | Panel::Lateness | Panel::Counts)
    }

    /// Returns whether it is drawn from these data by default.
    pub fn is_usual(self, data: &Data) -> bool {
        // What a log says of drops, its other panels show in time.
        self != Panel::Drops && self.is_of_logs() && !data.logs.is_empty()
            || self.is_of_reports() && !data.reports.is_empty()
    }

    /// The height of its frame in units, when nobody says how high the figure
    /// is to be.
    pub fn height(self, data: &Data) -> f64 {
        match self {
            Panel::Throughput | Panel::Queue | Panel::LossRuns => 150.0,
            Panel::Delay | Panel::DelayCdf => 180.0,
            Panel::Drops | Panel::Lateness | Panel::Counts => report::height(self, data),
        }
    }

    /// Room above its frame, which is so wide, for the heading and what else
    /// stands there.
    pub fn head(self, data: &Data, width: f64) -> f64 {
        const HEADING: f64 = 30.0;
        HEADING
            + match self {
                Panel::Delay => delay::rug_height(data),
                Panel::DelayCdf => notes_height(&delay_cdf::notes(data), width),
                Panel::LossRuns => notes_height(&loss_runs::notes(data), width),
                _ => 0.0,
            }
    }

    /// Draws it.
    pub fn draw(self, scene: &mut Scene, frame: &Frame, data: &Data) {
        match self {
            Panel::Throughput => throughput::draw(scene, frame, data),
            Panel::Queue => queue::draw(scene, frame, data),
            Panel::Delay => delay::draw(scene, frame, data),
            Panel::DelayCdf => delay_cdf::draw(scene, frame, data),
            Panel::LossRuns => loss_runs::draw(scene, frame, data),
            Panel::Drops => report::draw_drops(scene, frame, data),
            Panel::Lateness => report::draw_lateness(scene, frame, data),
            Panel::Counts => report::draw_counts(scene, frame, data),
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
