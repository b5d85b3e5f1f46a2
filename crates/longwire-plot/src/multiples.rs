//! Small multiples: the same panel several times, in cells that share their axes.

use super::PlotError;

/// The most columns if their number is not given.
const COLUMNS_MAX: usize = 4;

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its name; of crossed cells, that of its row and that of its column.
    pub names: (String, Option<String>),
    /// Its row, from the top.
    pub row: usize,
    /// Its column, from the left.
    pub column: usize,
}

impl Cell {
    /// Returns the name as it was given.
    pub fn name(&self) -> String {
        match &self.names {
            (name, None) => name.clone(),
            (row, Some(column)) => format!("{row}/{column}"),
        }
    }
}

/// The cells of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiples {
    cells: Vec<Cell>,
    /// The cell of each input.
    of_inputs: Vec<usize>,
}

impl Multiples {
    /// Arranges cells by their names, one for each input: inputs with the same name share
    /// a cell. Names of the form `ROW/COLUMN` make a table.
    ///
    /// # Errors
    /// If the number of columns contradicts the names.
    pub fn arrange(names: &[String], columns: Option<usize>) -> Result<Multiples, PlotError> {
        let mut unique: Vec<&String> = Vec::new();
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        let crossed: Option<Vec<_>> = unique.iter().map(|name| name.split_once('/')).collect();
        let cells = match crossed {
            Some(_) if columns.is_some() => {
                let message = "--columns conflicts with --cell ROW/COLUMN";
                return Err(PlotError::Usage(message.to_owned()));
            }
            Some(crossed) => table(&crossed),
            None => in_turn(&unique, columns),
        };
        let place = |name: &String| unique.iter().position(|known| *known == name).unwrap_or(0);
        Ok(Multiples {
            of_inputs: names.iter().map(place).collect(),
            cells,
        })
    }

    /// Returns the cells.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the number of an input's cell.
    pub fn of_input(&self, index: usize) -> usize {
        self.of_inputs.get(index).copied().unwrap_or(0)
    }

    /// Returns whether cells are named by row and column.
    pub fn are_crossed(&self) -> bool {
        self.cells.iter().any(|cell| cell.names.1.is_some())
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.row + 1)
            .max()
            .unwrap_or(1)
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.column + 1)
            .max()
            .unwrap_or(1)
    }
}

/// Returns cells in a table of rows and columns, each in the order of their first names.
fn table(names: &[(&str, &str)]) -> Vec<Cell> {
    let place = |of: fn(&(&str, &str)) -> String, name: String| {
        let mut known: Vec<String> = Vec::new();
        for other in names.iter().map(of) {
            if !known.contains(&other) {
                known.push(other);
            }
        }
        known.iter().position(|other| *other == name).unwrap_or(0)
    };
    let cells = names.iter().map(|(row, column)| Cell {
        names: ((*row).to_owned(), Some((*column).to_owned())),
        row: place(|(row, _)| (*row).to_owned(), (*row).to_owned()),
        column: place(|(_, column)| (*column).to_owned(), (*column).to_owned()),
    });
    cells.collect()
}

/// Returns cells one after the other, in rows.
fn in_turn(names: &[&String], columns: Option<usize>) -> Vec<Cell> {
    let square = (names.len() as f64).sqrt().ceil() as usize;
    // Of the numbers of columns from a square on, the one with the fewest holes.
    let holes = |columns: &usize| names.len().next_multiple_of(*columns) - names.len();
    let full = (square.clamp(1, COLUMNS_MAX)..=COLUMNS_MAX).min_by_key(holes);
    let columns = columns.or(full).unwrap_or(1).max(1);
    let cells = names.iter().enumerate().map(|(index, name)| Cell {
        names: ((*name).clone(), None),
        row: index / columns,
        column: index % columns,
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrange(names: &[&str], columns: Option<usize>) -> Vec<(usize, usize)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let multiples = Multiples::arrange(&names, columns).expect("they fit");
        let cells = multiples.cells();
        let of = (0..names.len()).map(|index| &cells[multiples.of_input(index)]);
        of.map(|cell| (cell.row, cell.column)).collect()
    }

    #[test]
    fn names_make_a_table_or_rows() {
        let crossed = ["cubic/lte", "cubic/wifi", "bbr/wifi", "bbr/lte", "bbr/lte"];
        assert_eq!(
            arrange(&crossed, None),
            [(0, 0), (0, 1), (1, 1), (1, 0), (1, 0)]
        );
        assert_eq!(
            arrange(&["a", "b", "a", "c"], Some(2)),
            [(0, 0), (0, 1), (0, 0), (1, 0)]
        );
        assert_eq!(arrange(&["a", "b", "c", "d", "e"], None)[4], (1, 1));
        assert_eq!(arrange(&["a", "b", "c"], None)[2], (0, 2), "no hole");
        assert_eq!(arrange(&["a", "b", "c", "d"], None)[3], (1, 1));
        let names = vec!["a/b".to_owned()];
        assert!(Multiples::arrange(&names, Some(2)).is_err());
    }
}
