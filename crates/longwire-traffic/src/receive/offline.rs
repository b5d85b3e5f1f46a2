//! Receiving from a capture made elsewhere, by its own stamps.

use longwire_capture::CaptureReader;
use longwire_engine::Nanos;
use longwire_io::PortError;
use longwire_runtime::record::Epoch;

use super::account::Account;
use super::{ReceiveConfig, ReceiveReport};

/// Frames between two looks at whether to go on.
const BURST: usize = 1024;

/// A receiver that reads a capture, as fast as it can.
pub struct CaptureReceiver {
    name: String,
    reader: CaptureReader,
    account: Account,
    over: bool,
}

impl CaptureReceiver {
    /// Opens the capture, and what `config` names. Of `config`, what is about
    /// a live port (idle, witness, core) does not apply.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn open(capture: &str, config: ReceiveConfig) -> Result<CaptureReceiver, PortError> {
        // Stamps are times since 1970 already.
        let epoch = Epoch {
            monotonic: Nanos::ZERO,
            wall: Nanos::ZERO,
        };
        Ok(CaptureReceiver {
            name: format!("pcap:{capture}"),
            reader: CaptureReader::open(capture)?,
            account: Account::open(config, epoch)?,
            over: false,
        })
    }

    /// Reads on for a moment. Returns whether there is more to read.
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

    /// How many bytes of the file have been read, and how many it has, where
    /// that is known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.reader.offset(), self.reader.size())
    }

    /// The report on what was read.
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
