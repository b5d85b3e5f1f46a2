//! Results of the steps of reading a trace.

/// The result of searching for the next frame.
pub(super) enum Selection {
    Frame,
    /// No frame for the moment.
    Nothing,
    End,
}

/// Whether a record is sent.
pub(super) enum RecordChoice {
    Yes,
    No,
    /// Neither this record nor any later one.
    NoMore,
}
