//! Receives frames from a capture, by their timestamps.

use longwire_capture::CaptureReader;
use longwire_io::PortError;
use longwire_runtime::record::Epoch;

use super::account::Account;
use super::{ReceiveConfig, ReceiveReport};

/// Frames per step.
const BURST: usize = 1024;

/// Receives frames from a capture at full speed.
pub struct CaptureReceiver {
    name: String,
    reader: CaptureReader,
    account: Account,
    over: bool,
}

impl CaptureReceiver {
    /// Opens the capture and the files named by `config`. Ignores the fields for live ports (idle,
    /// witness, core).
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn open(capture: &str, config: ReceiveConfig) -> Result<CaptureReceiver, PortError> {
        // Timestamps of captures are wall-clock times already.
        Ok(CaptureReceiver {
            name: format!("pcap:{capture}"),
            reader: CaptureReader::open(capture)?,
            account: Account::open(config, Epoch::ZERO)?,
            over: false,
        })
    }

    /// Reads some frames, and returns whether more remain.
    pub fn step(&mut self) -> bool {
        for _ in 0..BURST {
            if self.over || self.account.is_complete() {
                self.over = true;
                return false;
            }
            match self.reader.next() {
                Ok(Some(record)) => {
                    self.account
                        .frame(record.bytes, record.wire_len, record.stamp);
                }
                Ok(None) => self.over = true,
                Err(error) => {
                    self.account.fail(error.to_string());
                    self.over = true;
                }
            }
        }
        self.account.rest();
        !self.over
    }

    /// Returns the bytes read, and the file size if known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.reader.offset(), self.reader.size())
    }

    /// Returns the report.
    pub fn finish(mut self) -> ReceiveReport {
        self.account.finish();
        let mut report = self.account.report();
        report.port = self.name;
        let counts = self.reader.counts();
        report.unseen.too_long = counts.too_long();
        report.unseen.unusable = counts.unusable();
        report.notes.extend(counts.notes());
        report
    }
}
