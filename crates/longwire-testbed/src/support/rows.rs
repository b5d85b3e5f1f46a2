//! Test case tables as text.

/// Splits a command line into words. A word in single quotes may contain blanks.
pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 0 {
            words.extend(part.split_whitespace());
        } else {
            words.push(part);
        }
    }
    words
}

/// Returns the rows of a table: one per line, with cells separated by bars. Blanks around a
/// cell and empty lines are ignored.
///
/// ```
/// use longwire_testbed::support::rows;
///
/// let sums = rows("
///     1 + 1 | 2
///     2 + 2 | 4
/// ");
/// assert_eq!(sums.collect::<Vec<_>>(), [["1 + 1", "2"], ["2 + 2", "4"]]);
/// ```
///
/// # Panics
///
/// If a row has a different number of cells.
pub fn rows<const CELLS: usize>(table: &str) -> impl Iterator<Item = [&str; CELLS]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let row = cells.try_into();
        row.unwrap_or_else(|cells| panic!("expected {CELLS} cells, found {cells:?}"))
    })
}
