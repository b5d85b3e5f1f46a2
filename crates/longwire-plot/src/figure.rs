//! A figure: title, legend and stacked panels.

use crate::PlotError;
use crate::frame::{CellPlace, Frame, LABEL_SIZE, Note, draw_flow, flow, small};
use crate::panels::{Data, Panel};
use crate::scene::{Anchor, Scene, Text};

const TITLE_SIZE: f64 = 16.0;
/// Space left of the panels, for the captions of vertical axes.
pub(super) const LEFT: f64 = 84.0;
pub(super) const RIGHT: f64 = 22.0;
/// Margin at the top.
const TOP: f64 = 14.0;
/// Space below a panel, for the caption of its horizontal axis.
const BELOW: f64 = 44.0;
/// Minimum readable height of a frame.
const FRAME_MIN: f64 = 40.0;
const LEGEND_LINE: f64 = 20.0;
/// Height of a cell, and space between cells.
const CELL: f64 = 96.0;
const CELL_GAP: f64 = 16.0;
/// Space above cells, for their names.
const CELL_NAME: f64 = 16.0;

/// Draws a figure with these panels, as small multiples if there are any.
///
/// # Errors
/// If the specified height is too small for the panels.
pub(super) fn draw(
    data: &mut Data,
    panels: &[Panel],
    multiples: Option<&Multiples>,
    title: &str,
    (width, height): (f64, Option<f64>),
) -> Result<Scene, PlotError> {
    // Cells have neither notes nor drop lanes.
    data.cell = multiples.map(|_| 0);
    let legend = names(data);
    let frame_width = width - LEFT - RIGHT;
    let legend = flow(&legend, frame_width);
    let head = TOP + TITLE_SIZE + 12.0 + LEGEND_LINE * legend.len() as f64;
    let blocks = panels.iter();
    let blocks = blocks.map(|panel| block(*panel, data, multiples, frame_width));
    let blocks: Vec<Block> = blocks.collect();
    let between = blocks.iter().map(|block| block.head + block.fixed + BELOW);
    let fixed = head + between.sum::<f64>();
    let natural: f64 = blocks.iter().map(|block| block.frame * block.rows).sum();
    let stretch = height.map_or(1.0, |height| (height - fixed) / natural);
    let frames = blocks.iter().map(|block| block.frame);
    let least = frames.fold(natural, f64::min);
    if least * stretch < FRAME_MIN {
        let needed = (fixed + natural * FRAME_MIN / least).ceil();
        let count = panels.len();
        return Err(PlotError::Usage(format!(
            "--height is too small for {count} panels, which need {needed}; raise it, or select \
             fewer with --panel"
        )));
    }
    let mut scene = Scene::new(width, fixed + natural * stretch, title);
    let place = (LEFT, TOP + TITLE_SIZE * 0.8);
    let heading = small(title, place, Anchor::Start).sized(TITLE_SIZE);
    scene.text(heading.bold());
    let place = (LEFT, TOP + TITLE_SIZE + 10.0);
    draw_flow(&mut scene, &legend, place, LEGEND_LINE, LABEL_SIZE);
    let mut top = head;
    for (panel, block) in panels.iter().zip(&blocks) {
        let frame = Frame {
            left: LEFT,
            top: top + block.head,
            width: frame_width,
            height: block.frame * block.rows * stretch + block.fixed,
            cell: None,
        };
        match multiples {
            None => panel.draw(&mut scene, &frame, data),
            Some(multiples) => cells(&mut scene, &frame, *panel, data, multiples),
        }
        top = frame.bottom() + BELOW;
    }
    Ok(scene)
}

/// Heights of a panel.
struct Block {
    /// Height above the frame.
    head: f64,
    /// Height of a frame.
    frame: f64,
    /// Number of frames stacked vertically.
    rows: f64,
    /// Total space between rows.
    fixed: f64,
}

fn block(panel: Panel, data: &Data, multiples: Option<&Multiples>, width: f64) -> Block {
    let Some(multiples) = multiples else {
        return Block {
            head: panel.head(data, width),
            frame: panel.height(data),
            rows: 1.0,
            fixed: 0.0,
        };
    };
    let rows = multiples.rows() as f64;
    Block {
        head: panel.head(data, width) + CELL_NAME,
        frame: CELL,
        rows,
        fixed: (rows - 1.0) * multiples.space().1,
    }
}

impl Multiples {
    /// Returns the space to the right of all cells, where a table has the names of its rows, and
    /// the space between rows, where other cells have their names.
    fn space(&self) -> (f64, f64) {
        if self.are_crossed() {
            (CELL_NAME, CELL_GAP)
        } else {
            (0.0, CELL_GAP + CELL_NAME)
        }
    }
}

/// Draws a panel as small multiples within a frame.
fn cells(scene: &mut Scene, all: &Frame, panel: Panel, data: &mut Data, multiples: &Multiples) {
    let (rows, columns) = (multiples.rows(), multiples.columns());
    let (right, gap) = multiples.space();
    let width = (all.width - right - CELL_GAP * (columns - 1) as f64) / columns as f64;
    let height = (all.height - gap * (rows - 1) as f64) / rows as f64;
    for (index, cell) in multiples.cells().iter().enumerate() {
        // Place captions outside the column names.
        let height_named = all.height + CELL_NAME;
        let block = (all.left, all.top - CELL_NAME, all.width, height_named);
        let is_below = |of: &Cell| of.column == cell.column && of.row > cell.row;
        let frame = Frame {
            left: all.left + (width + CELL_GAP) * cell.column as f64,
            top: all.top + (height + gap) * cell.row as f64,
            width,
            height,
            cell: Some(CellPlace {
                is_left: cell.column == 0,
                is_bottom: !multiples.cells().iter().any(is_below),
                captions: (index == 0).then_some(block),
            }),
        };
        data.cell = Some(index);
        panel.draw(scene, &frame, data);
        let above = (frame.left + width / 2.0, frame.top - 5.0);
        match &cell.names {
            (name, None) => scene.text(bold(name, above, false)),
            (row, Some(column)) => {
                if cell.row == 0 {
                    scene.text(bold(column, above, false));
                }
                if cell.column + 1 == columns {
                    let at = (frame.right() + 12.0, frame.top + height / 2.0);
                    scene.text(bold(row, at, true));
                }
            }
        }
    }
    data.cell = None;
}

fn bold(text: &str, at: (f64, f64), upwards: bool) -> Text {
    small(text, at, Anchor::Middle).bold().turned(upwards)
}

/// Returns the legend entries, with each name once.
fn names(data: &Data) -> Vec<Note> {
    unique(data.legend().map(|(look, label)| (look, label.clone())))
}

/// Returns the items without repetitions, in order of first appearance.
pub(super) fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

/// Maximum number of columns, unless specified.
const COLUMNS_MAX: usize = 4;

/// A cell: one of the small multiples, for the inputs with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Name of the cell or, for a table, of its row and column.
    pub names: (String, Option<String>),
    /// Row, from the top.
    pub row: usize,
    /// Column, from the left.
    pub column: usize,
}

impl Cell {
    /// Returns the name as specified.
    pub fn name(&self) -> String {
        match &self.names {
            (name, None) => name.clone(),
            (row, Some(column)) => format!("{row}/{column}"),
        }
    }
}

/// Arrangement of a figure's small multiples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiples {
    cells: Vec<Cell>,
    /// Cell index of each input.
    of_inputs: Vec<usize>,
}

impl Multiples {
    /// Arranges cells by name, with one name per input; inputs with the same name share a cell.
    /// Names of the form `ROW/COLUMN` form a table.
    ///
    /// # Errors
    /// If the number of columns contradicts the names.
    pub fn arrange(names: &[String], columns: Option<usize>) -> Result<Multiples, PlotError> {
        let unique = unique(names.iter().map(String::as_str));
        let crossed: Option<Vec<_>> = unique.iter().map(|name| name.split_once('/')).collect();
        let cells = match crossed {
            Some(_) if columns.is_some() => {
                let message = "--columns conflicts with --cell ROW/COLUMN";
                return Err(PlotError::Usage(message.to_owned()));
            }
            Some(crossed) => table(&crossed),
            None => in_turn(&unique, columns),
        };
        let of_inputs = names.iter().map(|name| place(&unique, name)).collect();
        Ok(Multiples { cells, of_inputs })
    }

    /// Returns the cells.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the index of an input's cell.
    pub fn of_input(&self, index: usize) -> usize {
        self.of_inputs.get(index).copied().unwrap_or(0)
    }

    /// Whether the cells form a table of rows and columns.
    pub fn are_crossed(&self) -> bool {
        self.cells.iter().any(|cell| cell.names.1.is_some())
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        let rows = self.cells.iter().map(|cell| cell.row + 1);
        rows.max().unwrap_or(1)
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        let columns = self.cells.iter().map(|cell| cell.column + 1);
        columns.max().unwrap_or(1)
    }
}

/// Returns the index of a name.
fn place(names: &[&str], name: &str) -> usize {
    names.iter().position(|other| *other == name).unwrap_or(0)
}

/// Returns cells in a table, with rows and columns in order of first appearance.
fn table(names: &[(&str, &str)]) -> Vec<Cell> {
    let rows = unique(names.iter().map(|(row, _)| *row));
    let columns = unique(names.iter().map(|(_, column)| *column));
    let cells = names.iter().map(|(row, column)| Cell {
        names: ((*row).to_owned(), Some((*column).to_owned())),
        row: place(&rows, row),
        column: place(&columns, column),
    });
    cells.collect()
}

/// Returns cells in sequence, row by row.
fn in_turn(names: &[&str], columns: Option<usize>) -> Vec<Cell> {
    let square = (names.len() as f64).sqrt().ceil() as usize;
    // The number of columns, from a square upwards, that leaves the fewest empty cells.
    let holes = |columns: &usize| names.len().next_multiple_of(*columns) - names.len();
    let full = (square.clamp(1, COLUMNS_MAX)..=COLUMNS_MAX).min_by_key(holes);
    let columns = columns.or(full).unwrap_or(1).max(1);
    let cells = names.iter().enumerate().map(|(index, name)| Cell {
        names: ((*name).to_owned(), None),
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
        let places = [(0, 0), (0, 1), (1, 1), (1, 0), (1, 0)];
        assert_eq!(arrange(&crossed, None), places);
        let places = [(0, 0), (0, 1), (0, 0), (1, 0)];
        assert_eq!(arrange(&["a", "b", "a", "c"], Some(2)), places);
        assert_eq!(arrange(&["a", "b", "c", "d", "e"], None)[4], (1, 1));
        assert_eq!(arrange(&["a", "b", "c"], None)[2], (0, 2), "no hole");
        assert_eq!(arrange(&["a", "b", "c", "d"], None)[3], (1, 1));
        let names = vec!["a/b".to_owned()];
        assert!(Multiples::arrange(&names, Some(2)).is_err());
    }
}
