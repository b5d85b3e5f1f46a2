//! The log of a run or simulation, which joins each verdict with its frame's arrival data.

use std::collections::BTreeMap;

use longwire_engine::{Bytes, Delivery, DropReason, FrameMeta, Nanos, Packets, Verdict};

use super::{Fate, LogError, Name, Row, RowSink};

/// Writes a run's verdict log. Keeps a frame's arrival data until its last verdict.
#[derive(Debug)]
pub struct VerdictLog {
    sinks: Vec<Box<dyn RowSink>>,
    /// Each link's name, and its frames that await a verdict.
    links: Vec<(Name, BTreeMap<Number, OpenFrame>)>,
    reasons: [Name; DropReason::ALL.len()],
}

/// A frame's arrival data and its deliveries so far.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    frame: FrameMeta,
    queue: (Packets, Bytes),
    /// Number of deliveries written. The first determines the marks below, which apply to all
    /// copies.
    copies: u16,
    ecn_marked: bool,
    corrupted: bool,
}

/// A frame's number in order of arrival at its link, from 0.
pub type Number = u64;

impl VerdictLog {
    /// Creates the log for links with these names; each sink receives every row.
    pub fn new<'a>(
        sinks: Vec<Box<dyn RowSink>>,
        links: impl IntoIterator<Item = &'a str>,
    ) -> VerdictLog {
        let links = links.into_iter();
        VerdictLog {
            sinks,
            links: links.map(|link| (link.into(), BTreeMap::new())).collect(),
            reasons: DropReason::ALL.map(|reason| Name::from(reason.name())),
        }
    }

    /// Sets the origin of arrivals in all sinks. Call it before the first row.
    pub fn set_epoch(&mut self, epoch: Nanos) {
        for sink in &mut self.sinks {
            sink.set_epoch(signed(epoch));
        }
    }

    /// Records that a frame was offered to a link, and the link's queue length at that time.
    /// Numbers increase; frames whose numbers are skipped are not logged.
    pub fn offered(
        &mut self,
        link: usize,
        number: Number,
        frame: FrameMeta,
        queue: (Packets, Bytes),
    ) {
        // Links added during the run have numbers instead of names.
        while self.links.len() <= link {
            let name = format!("link-{}", self.links.len());
            self.links.push((name.as_str().into(), BTreeMap::new()));
        }
        let open = OpenFrame {
            frame,
            queue,
            copies: 0,
            ecn_marked: false,
            corrupted: false,
        };
        self.links[link].1.insert(number, open);
    }

    /// Writes the row for a verdict on an offered frame.
    ///
    /// # Errors
    /// The errors of [`RowSink::write`].
    pub fn decided(
        &mut self,
        link: usize,
        number: Number,
        verdict: &Verdict,
    ) -> Result<(), LogError> {
        let Some((name, frames)) = self.links.get_mut(link) else {
            return Ok(());
        };
        let Some(open) = frames.get_mut(&number) else {
            return Ok(());
        };
        let mut more = false;
        let (delivery, reason) = match verdict {
            Verdict::Queued => return Ok(()),
            Verdict::Drop(reason) => (None, Some(self.reasons[reason.index()].clone())),
            Verdict::Deliver(delivery) => {
                more = delivery.more;
                if open.copies == 0 {
                    open.ecn_marked = delivery.edits.mark;
                    open.corrupted = delivery.edits.corrupt;
                }
                (Some(delivery), None)
            }
        };
        let row = row(number, name.clone(), open, delivery, reason);
        open.copies = open.copies.saturating_add(1);
        if !more {
            frames.remove(&number);
        }
        self.sinks.iter_mut().try_for_each(|sink| sink.write(&row))
    }

    /// Writes a row for each frame still in a queue, and ends the log.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(), LogError> {
        for (name, frames) in &self.links {
            for (number, open) in frames {
                let row = row(*number, name.clone(), open, None, None);
                let mut sinks = self.sinks.iter_mut();
                sinks.try_for_each(|sink| sink.write(&row))?;
            }
        }
        self.sinks.into_iter().try_for_each(|sink| sink.finish())
    }
}

/// Returns the row for a frame that was delivered, dropped for a reason, or held.
fn row(
    frame: Number,
    link: Name,
    open: &OpenFrame,
    delivery: Option<&Delivery>,
    reason: Option<Name>,
) -> Row {
    // `Nanos::MAX` means never: the link has stopped.
    let delivery = delivery.filter(|delivery| delivery.release < Nanos::MAX);
    let verdict = match (delivery, &reason) {
        (Some(_), _) => Fate::Deliver,
        (None, Some(_)) => Fate::Drop,
        (None, None) => Fate::Held,
    };
    let (packets, bytes) = open.queue;
    Row {
        frame,
        link,
        arrival_ns: signed(open.frame.arrival),
        length: open.frame.len,
        verdict,
        departure_ns: delivery.map(|delivery| signed(delivery.departure)),
        release_ns: delivery.map(|delivery| signed(delivery.release)),
        reason,
        ecn_marked: open.ecn_marked,
        corrupted: open.corrupted,
        copy: open.copies,
        queue_packets: u32::try_from(packets.0).unwrap_or(u32::MAX),
        queue_bytes: bytes.0,
    }
}

/// Clamps times to the year 2262, the maximum of `i64` nanoseconds. Classic pcap timestamps end
/// earlier.
fn signed(at: Nanos) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Folder;

    use super::*;
    use crate::log::{LogReader, LogWriter};

    fn delivery(release: Nanos, more: bool) -> Verdict {
        Verdict::Deliver(Delivery {
            departure: release,
            release,
            raised: false,
            edits: longwire_engine::Edits {
                mark: !more,
                ..longwire_engine::Edits::NONE
            },
            more,
        })
    }

    #[test]
    fn undecided_frames_are_logged_as_held() {
        let folder = Folder::new();
        let path = folder.path().join("verdicts.csv");
        let writer = LogWriter::create(&path).expect("a log");
        let mut log = VerdictLog::new(vec![Box::new(writer)], ["up", "down"]);
        for number in 0..5 {
            let frame = FrameMeta::new(Nanos::from_nanos(number), 100);
            log.offered(1, number, frame, (Packets(3), Bytes(300)));
        }
        let verdicts = [
            (3, delivery(Nanos::from_nanos(50), true)),
            (3, delivery(Nanos::from_nanos(60), false)),
            (0, Verdict::Drop(DropReason::Aqm)),
            (2, delivery(Nanos::MAX, false)),
        ];
        for (number, verdict) in &verdicts {
            assert!(log.decided(1, *number, verdict).is_ok());
        }
        assert!(log.finish().is_ok());
        let rows = LogReader::open(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let rows = rows.expect("a log");
        let seen = rows.iter();
        let seen = seen.map(|row| (row.frame, row.copy, row.verdict, row.release_ns));
        let expected = [
            (3, 0, Fate::Deliver, Some(50)),
            (3, 1, Fate::Deliver, Some(60)),
            (0, 0, Fate::Drop, None),
            (2, 0, Fate::Held, None),
            (1, 0, Fate::Held, None),
            (4, 0, Fate::Held, None),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        // Copies have the marks of the frame's first delivery.
        assert!(!rows[1].ecn_marked);
        let mut rows = rows.iter();
        assert!(rows.all(|row| &*row.link == "down" && row.queue_packets == 3));
    }
}
