//! Incremental decompression of one zstd frame (RFC 8878).

use std::io::Read;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::raw::Raw;

/// An empty last block, and space for a checksum.
const CLOSING: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Maximum supported window in bytes, the same as that of the tool `zstd`, with and without
/// `--long=27`.
const WINDOW_MAX: u64 = 128 * 1024 * 1024;

/// A frame being decompressed.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    pub(super) raw: Raw,
    begun: bool,
    /// Whether decoding has ended, at the end of the frame or with an error.
    closed: bool,
    fault: Option<String>,
}

impl Zstd {
    pub(super) fn new(raw: Raw) -> Zstd {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX);
        Zstd {
            decoder,
            raw,
            begun: false,
            closed: false,
            fault: None,
        }
    }

    /// Reads some bytes; returns 0 at the frame's end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        loop {
            if self.closed || self.decoder.can_collect() > 0 {
                let count = self.decoder.read(buffer).map_err(|e| e.to_string())?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
            }
            if self.closed {
                return match self.fault.take() {
                    Some(fault) => Err(fault),
                    None => self.check().map(|()| 0),
                };
            }
            match self.decode() {
                Ok(()) => self.closed = self.decoder.is_finished(),
                Err(error) => self.close(&error),
            }
        }
    }

    fn decode(&mut self) -> Result<(), FrameDecoderError> {
        if !self.begun {
            self.begun = true;
            self.decoder.reset(&mut self.raw)?;
        }
        let step = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder.decode_blocks(&mut self.raw, step).map(drop)
    }

    /// Ends the frame, so that a truncated file yields all its bytes: the decoder holds back the
    /// last window until the frame ends.
    fn close(&mut self, error: &FrameDecoderError) {
        self.fault = Some(explain(error));
        self.closed = true;
        let step = BlockDecodingStrategy::UptoBlocks(1);
        // Fails if the frame header was invalid; the decoder is empty in that case.
        let _ = self.decoder.decode_blocks(&CLOSING[..], step);
    }

    fn check(&self) -> Result<(), String> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if Some(sum) != self.decoder.get_calculated_checksum() => {
                Err("checksum mismatch".into())
            }
            _ => Ok(()),
        }
    }
}

fn explain(error: &FrameDecoderError) -> String {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => format!(
            "needs {} MiB of memory, above the limit of {}; recompress it without --long",
            requested >> 20,
            max >> 20
        ),
        FrameDecoderError::DictNotProvided { dict_id } => {
            format!("needs dictionary {dict_id}; recompress it without a dictionary")
        }
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) => {
            "not the start of a zstd frame".into()
        }
        error => error.to_string(),
    }
}
