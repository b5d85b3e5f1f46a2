//! Pensieve traces (Mao et al., SIGCOMM 2017): each line has a time in seconds and a rate in
//! Mbit/s.
//!
//! Following Pensieve's simulator, a line's rate applies from the previous line's time to its own;
//! the first line only sets the start.

use super::quantity::Quantity;
use super::series::{Series, SeriesBuilder};
use crate::prelude::*;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const BITS_PER_MBIT: u64 = 1_000_000;

/// Reads a Pensieve trace line by line.
#[derive(Clone, Debug, Default)]
pub struct PensieveReader {
    rows: SeriesBuilder,
    /// Times of the first and last lines.
    times: Option<(u64, u64)>,
}

impl PensieveReader {
    /// Reads the next line.
    ///
    /// # Errors
    /// If the line is invalid.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_whitespace();
        let (time, rate) = match (words.next(), words.next(), words.next()) {
            (None, ..) => return Ok(()),
            (Some(time), Some(rate), None) => (time, rate),
            _ => return Err("expected two numbers: seconds and Mbit/s".to_string()),
        };
        let time = Quantity::Time.read(time, Some(NANOS_PER_SEC))?;
        let rate = Quantity::Rate.read(rate, Some(BITS_PER_MBIT))?;
        let Some((first, last)) = self.times else {
            self.times = Some((time, time));
            return Ok(());
        };
        if time < last {
            return Err("time is before the previous line's; sort the lines".to_string());
        }
        if time > last {
            self.rows.push(last, rate)?;
        }
        self.times = Some((first, time));
        Ok(())
    }

    /// Returns the series.
    ///
    /// # Errors
    /// If there are fewer than two distinct times.
    pub fn finish(self) -> Result<Series, String> {
        match self.times {
            Some((first, last)) if last > first => self.rows.finish_at(last - first),
            _ => Err("fewer than two lines with different times".to_string()),
        }
    }
}
