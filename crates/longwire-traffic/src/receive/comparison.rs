//! Compares arrivals with a trace that is read along with them.

use longwire_capture::{CaptureReader, RecordCounts};
use longwire_engine::Nanos;
use longwire_engine::replay::{Pace, ReplaySchedule};
use longwire_io::PortError;
use longwire_runtime::sent::{IgnoredFields, digest};

use super::matching::{Expected, Matching};
use super::report::TraceReport;

/// The trace with which arrivals are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgainstTrace {
    /// File name of the trace.
    pub trace: String,
    /// Pace of the sender.
    pub pace: Pace,
    /// Maximum gap between frames of the sender.
    pub gap_cap: Option<Nanos>,
    /// Number of rounds; 0 means unlimited.
    pub rounds: u64,
    /// Fields that may change in transit.
    pub ignored: IgnoredFields,
}

/// Compares arrivals with a trace that is read along with them.
pub(super) struct Comparison {
    config: AgainstTrace,
    reader: Option<CaptureReader>,
    schedule: ReplaySchedule,
    rounds_left: u64,
    frames_of_round: u64,
    cut: u64,
    matching: Matching,
    /// Record counts over all rounds.
    records: RecordCounts,
    error: Option<PortError>,
}

impl Comparison {
    /// Opens the trace and reads its beginning.
    ///
    /// # Errors
    /// If the trace cannot be opened.
    pub(super) fn open(config: AgainstTrace) -> Result<Comparison, PortError> {
        let reader = CaptureReader::open(&config.trace)?;
        let mut comparison = Comparison {
            schedule: ReplaySchedule::new(config.pace, config.gap_cap),
            rounds_left: match config.rounds {
                0 => u64::MAX,
                rounds => rounds,
            },
            config,
            reader: Some(reader),
            frames_of_round: 0,
            cut: 0,
            matching: Matching::new(),
            records: RecordCounts::default(),
            error: None,
        };
        comparison.read_ahead();
        Ok(comparison)
    }

    /// Returns the number of frames that may arrive before more of the trace must be read.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.matching.room()
    }

    /// Reads ahead in the trace while there is room.
    pub(super) fn read_ahead(&mut self) {
        while self.matching.room() > 0 {
            match self.next_expected() {
                Ok(Some(expected)) => self.matching.expect(expected),
                Ok(None) => return,
                Err(error) => {
                    self.close();
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    fn next_expected(&mut self) -> Result<Option<Expected>, PortError> {
        loop {
            let Some(reader) = &mut self.reader else {
                return Ok(None);
            };
            if let Some(record) = reader.next()? {
                self.frames_of_round += 1;
                self.cut += u64::from((record.bytes.len() as u64) < u64::from(record.wire_len));
                return Ok(Some(Expected {
                    digest: digest(record.bytes, record.wire_len, &self.config.ignored),
                    due: self.schedule.due(record.stamp, record.wire_len),
                    wire_len: record.wire_len,
                    late: 0,
                }));
            }
            self.rounds_left -= 1;
            self.close();
            // Do not repeat an empty trace, which would loop forever.
            if self.rounds_left > 0 && self.frames_of_round > 0 {
                self.reader = Some(CaptureReader::open(&self.config.trace)?);
                self.schedule.next_round(None);
                self.frames_of_round = 0;
            }
        }
    }

    fn close(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.records.add(reader.counts());
        }
    }

    /// Returns notes about records that were converted or omitted.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut records = self.records.clone();
        if let Some(reader) = &self.reader {
            records.add(reader.counts());
        }
        let notes = records.notes().into_iter();
        let trace = &self.config.trace;
        notes.map(|note| format!("{trace}: {note}")).collect()
    }

    /// Matches a received frame with the trace.
    #[inline]
    pub(super) fn record(&mut self, bytes: &[u8], wire_len: u32, arrival: Nanos) {
        let digest = digest(bytes, wire_len, &self.config.ignored);
        self.matching.match_frame(digest, wire_len, arrival);
    }

    pub(super) fn report(&self) -> TraceReport {
        TraceReport {
            trace: self.config.trace.clone(),
            goes_on: self.reader.is_some(),
            cut: self.cut,
            ..self.matching.report()
        }
    }

    /// Returns the error from reading the trace, if any.
    pub(super) fn error(&self) -> Option<String> {
        self.error.as_ref().map(ToString::to_string)
    }
}
