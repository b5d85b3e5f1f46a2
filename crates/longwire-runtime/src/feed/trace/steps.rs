//! What reading a trace comes to, step by step.

/// What looking for the next frame found.
pub(super) enum Selected {
    Frame,
    /// Nothing for the moment.
    Nothing,
    End,
}

/// Whether a round has begun.
pub(super) enum Begun {
    Yes,
    /// Other feeds have not come to its beginning.
    Later,
    Never,
}

/// Whether a record is to be sent.
pub(super) enum Wanted {
    Yes,
    No,
    /// Nor any behind it.
    NoMore,
}
