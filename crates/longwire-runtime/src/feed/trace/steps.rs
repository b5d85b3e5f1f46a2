//! Results of the steps that read a trace.

/// The result of searching for the next frame.
pub(super) enum Selection {
    Frame,
    /// No frame yet.
    Nothing,
    End,
}

/// Whether to send a record.
pub(super) enum RecordChoice {
    Yes,
    No,
    /// Skip this record and all later ones.
    NoMore,
}
