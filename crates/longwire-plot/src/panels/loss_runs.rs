//! Loss runs: frequency of losses of consecutive frames, by length.

use super::bars::{Group, vertical};
use super::{Data, LegendEntry};
use crate::axis::{Axis, SHARE, Units, grouped};
use crate::frame::{Captions, Frame, Note, notes_height};
use crate::scene::Scene;
use crate::series::LogSeries;

/// Up to this length, each length has separate bars.
const LENGTHS_MAX: u64 = 16;

/// The scale is logarithmic if counts exceed this multiple of the least.
const SPREAD_MAX: u64 = 50;

pub(super) fn draw(scene: &mut Scene, frame: &Frame, data: &Data) {
    let lengths = data.logs.iter().flat_map(|of| of.data.runs.runs().keys());
    let classes = classes(lengths.copied().max().unwrap_or(1));
    let groups: Vec<Group> = classes.iter().map(|class| group(*class, data)).collect();
    let y = axis(&groups);
    let notes = notes(data);
    let captions = Captions {
        heading: "Loss runs",
        lift: notes_height(&notes, frame.width),
        remark: "number of loss runs by length".to_owned(),
        x: "Frames lost in a row".to_owned(),
        y: match y.unit {
            "" => "Runs (logarithmic)".to_owned(),
            _ => "Runs".to_owned(),
        },
    };
    let empty = Axis::linear(0.0, 1.0, 1, Units::FRAMES).without_ticks();
    frame.axes(scene, &empty, &y, &captions);
    frame.notes(scene, &notes);
    let looks: Vec<_> = data.logs.iter().map(|of| of.look).collect();
    vertical(scene, frame, &y, &groups, &looks);
    if groups
        .iter()
        .all(|group| group.values.iter().all(|n| *n == 0))
    {
        frame.nothing(scene, "no frame was lost");
    }
}

/// Returns the number of lost frames per link as notes.
pub(super) fn notes(data: &Data) -> Vec<Note> {
    data.logs.iter().map(|of| (of.look, note(of))).collect()
}

/// Lengths that share bars: the first and the last.
type Class = (u64, u64);

/// Returns one class per length if there are few; else 1, 2, and then classes up
/// to twice the length before.
fn classes(longest: u64) -> Vec<Class> {
    if longest <= LENGTHS_MAX {
        return (1..=longest.max(4))
            .map(|length| (length, length))
            .collect();
    }
    let mut classes = vec![(1, 1)];
    let mut last = 1u64;
    while last < longest {
        let next = last.saturating_mul(2);
        classes.push((last + 1, next));
        last = next;
    }
    classes
}

fn group((from, to): Class, data: &Data) -> Group {
    let label = if from == to {
        grouped(from as f64, 0)
    } else {
        format!("{}–{}", grouped(from as f64, 0), grouped(to as f64, 0))
    };
    let count =
        |of: &LegendEntry<LogSeries>| of.data.runs.runs().range(from..=to).map(|(_, n)| n).sum();
    Group {
        label,
        values: data.logs.iter().map(count).collect(),
    }
}

fn axis(groups: &[Group]) -> Axis {
    let counts = groups.iter().flat_map(|group| &group.values);
    let counts = counts.copied().filter(|count| *count > 0);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    // The margin holds the numbers above the bars.
    if most > least.saturating_mul(SPREAD_MAX) {
        return Axis::logarithmic(0.5, most as f64 * 2.5, Units::BARE);
    }
    Axis::linear(0.0, most.max(1) as f64 * 1.15, 4, Units::RUNS)
}

fn note(of: &LegendEntry<LogSeries>) -> String {
    let (lost, frames) = of.data.runs.lost();
    let longest = of.data.runs.runs().last_key_value();
    let longest = longest.map_or(0, |(length, _)| *length);
    let share = match frames {
        0 => 0.0,
        _ => lost as f64 / frames as f64,
    };
    format!(
        "{}: {} of {} lost ({}), longest run {}",
        of.label,
        grouped(lost as f64, 0),
        grouped(frames as f64, 0),
        SHARE.write(share),
        grouped(longest as f64, 0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_one_another_and_hold_every_length() {
        for longest in [1, 4, 16, 17, 100, 1 << 40] {
            let classes = classes(longest);
            assert_eq!(classes.first().map(|class| class.0), Some(1));
            assert!(classes.last().is_some_and(|class| class.1 >= longest));
            assert!(classes.windows(2).all(|two| two[0].1 + 1 == two[1].0));
        }
        assert_eq!(classes(20)[..4], [(1, 1), (2, 2), (3, 4), (5, 8)]);
    }
}
