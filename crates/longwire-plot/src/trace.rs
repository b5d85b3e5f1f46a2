//! Values over time, downsampled without losing extremes.
//!
//! The time axis has a fixed number of columns, regardless of the number of values. Each column
//! records minimum, maximum and mean. While there are few values, they are also kept individually
//! and drawn as dots.

/// Maximum number of values per series that are drawn individually.
pub const POINTS_MAX: usize = 2_000;

/// Values in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Minimum.
    pub least: u64,
    /// Maximum.
    pub most: u64,
    sum: u128,
    count: u64,
}

impl Column {
    /// Returns the mean value.
    pub fn mean(&self) -> f64 {
        match self.count {
            // All values held for zero time.
            0 => self.most as f64,
            count => self.sum as f64 / count as f64,
        }
    }
}

/// A time span divided into columns of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Start of the first column, in nanoseconds.
    pub from: i64,
    /// Total length of all columns, in nanoseconds; not 0.
    pub span: u64,
    /// Number of columns; not 0.
    pub count: usize,
}

impl Columns {
    /// Returns the index of the column for a time. Times outside count in the first or last column.
    pub fn index(&self, at: i64) -> usize {
        let since = at.saturating_sub(self.from).max(0).cast_unsigned();
        let index = u128::from(since) * self.count as u128 / u128::from(self.span);
        (index as usize).min(self.count - 1)
    }
}

/// A series of values over time.
#[derive(Clone, Debug)]
pub struct Trace {
    columns: Columns,
    values: Vec<Option<Column>>,
    points: Option<Vec<(i64, u64)>>,
    held: bool,
}

impl Trace {
    /// Creates a trace without values.
    pub fn new(columns: Columns) -> Trace {
        Trace {
            columns,
            values: vec![None; columns.count],
            points: Some(Vec::new()),
            held: false,
        }
    }

    /// Adds a value at a time, in any order.
    pub fn add(&mut self, at: i64, value: u64) {
        self.weigh(self.columns.index(at), value, 1);
        self.point(at, value);
    }

    /// Adds a value that holds during an interval. Column means are then weighted by time.
    pub fn hold(&mut self, from: i64, until: i64, value: u64) {
        self.held = true;
        let columns = self.columns;
        let last = columns.from.saturating_add_unsigned(columns.span);
        let (from, until) = (from.max(columns.from), until.min(last));
        if from > until || from == last {
            return;
        }
        let begin = |index: usize| {
            let since = index as u128 * u128::from(columns.span) / columns.count as u128;
            columns.from.saturating_add_unsigned(since as u64)
        };
        let end = until.saturating_sub(1).max(from);
        for index in self.columns.index(from)..=self.columns.index(end) {
            let nanos = until.min(begin(index + 1)) - from.max(begin(index));
            self.weigh(index, value, nanos.max(0).cast_unsigned());
        }
        self.point(from, value);
    }

    fn weigh(&mut self, index: usize, value: u64, weight: u64) {
        let column = self.values[index].get_or_insert(Column {
            least: value,
            most: value,
            sum: 0,
            count: 0,
        });
        column.least = column.least.min(value);
        column.most = column.most.max(value);
        column.sum += u128::from(value) * u128::from(weight);
        column.count += weight;
    }

    fn point(&mut self, at: i64, value: u64) {
        if let Some(points) = &mut self.points {
            points.push((at, value));
            if points.len() > POINTS_MAX {
                self.points = None;
            }
        }
    }

    /// Returns the individual values, if there are few.
    pub fn points(&self) -> Option<&[(i64, u64)]> {
        self.points.as_deref()
    }

    /// Whether values hold until the next value.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Returns the columns with values, with their indices.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Column)> {
        let values = self.values.iter().enumerate();
        values.filter_map(|(index, column)| Some((index, column.as_ref()?)))
    }

    /// Returns the overall minimum and maximum.
    pub fn range(&self) -> Option<(u64, u64)> {
        let columns = || self.values.iter().flatten();
        let least = columns().map(|column| column.least).min()?;
        let most = columns().map(|column| column.most).max()?;
        Some((least, most))
    }
}

/// Number of events in each column.
#[derive(Clone, Debug)]
pub struct Marks {
    columns: Columns,
    counts: Vec<u64>,
}

impl Marks {
    /// Creates marks without events.
    pub fn new(columns: Columns) -> Marks {
        Marks {
            columns,
            counts: vec![0; columns.count],
        }
    }

    /// Adds an event at this time.
    pub fn add(&mut self, at: i64) {
        self.counts[self.columns.index(at)] += 1;
    }

    /// Returns the columns with events, with the number of events in each.
    pub fn columns(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_extreme_is_lost_and_none_invented(
            values in proptest::collection::vec((0..10_000i64, any::<u64>()), 1..500),
            count in 1..50usize,
        ) {
            let columns = Columns { from: 0, span: 10_000, count };
            let mut trace = Trace::new(columns);
            for (at, value) in &values {
                trace.add(*at, *value);
            }
            for (index, column) in trace.columns() {
                let of = values.iter().filter(|(at, _)| columns.index(*at) == index);
                let of: Vec<u64> = of.map(|(_, value)| *value).collect();
                prop_assert_eq!(Some(column.least), of.iter().copied().min());
                prop_assert_eq!(Some(column.most), of.iter().copied().max());
                let sum: u128 = of.iter().map(|value| u128::from(*value)).sum();
                let mean = sum as f64 / of.len() as f64;
                prop_assert!((column.mean() - mean).abs() <= mean * 1e-12);
            }
            let all = || values.iter().map(|(_, value)| *value);
            prop_assert_eq!(trace.range(), all().min().zip(all().max()));
        }

        #[test]
        fn every_time_has_its_column(at in any::<i64>(), count in 1..2_000usize) {
            let columns = Columns { from: -50, span: 100, count };
            let index = columns.index(at);
            prop_assert!(index < count);
            if (-50..50).contains(&at) {
                prop_assert_eq!(index as i64, (at + 50) * count as i64 / 100);
            }
        }
    }

    fn columns(from: i64, span: u64, count: usize) -> Columns {
        Columns { from, span, count }
    }

    #[test]
    fn held_values_are_weighted_by_time() {
        let mut trace = Trace::new(columns(0, 100, 10));
        for (from, until, value) in [(-50, 5, 4), (5, 5, 9), (5, 25, 0), (25, 400, 2)] {
            trace.hold(from, until, value);
        }
        let found = trace.columns();
        let found: Vec<_> = found
            .map(|(_, of)| (of.least, of.most, of.mean()))
            .collect();
        assert_eq!(found.len(), 10);
        let some = [0, 1, 2, 9].map(|index| found[index]);
        let expected = [(0, 9, 2.0), (0, 0, 0.0), (0, 2, 1.0), (2, 2, 2.0)];
        assert_eq!(some, expected);
    }

    #[test]
    fn many_values_are_kept_as_columns_only() {
        let mut trace = Trace::new(columns(0, 1_000_000, 100));
        for at in 0..POINTS_MAX as i64 {
            trace.add(at, 5);
        }
        assert_eq!(trace.points().map(<[_]>::len), Some(POINTS_MAX));
        trace.add(999_999, 7);
        assert_eq!(trace.points(), None);
        assert_eq!(trace.columns().count(), 2);
        assert_eq!(trace.range(), Some((5, 7)));
    }

    #[test]
    fn marks_stay_where_they_were_made() {
        let mut marks = Marks::new(columns(100, 10, 5));
        for at in [100, 101, 107, 3, 1_000] {
            marks.add(at);
        }
        let found: Vec<_> = marks.columns().collect();
        assert_eq!(found, [(0, 3), (3, 1), (4, 1)]);
    }
}
