//! Draws the screen.

use longwire_control::responses::TableRow;
use longwire_runtime::Grade;
use longwire_topology::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::detail;
use super::screen::{Lost, Prompt, Sort, TopScreen};
use super::source::Snapshot;
use crate::report::words::{count, micros, rate};

/// Maximum lines above and below the table rows; a message may use the lines below.
const ABOVE: u16 = FIXED + VERDICT_MAX + 2;
const BELOW: u16 = 1;

/// Header lines without the verdict.
const FIXED: u16 = 3;

/// Maximum lines of a verdict or a message.
const VERDICT_MAX: u16 = 3;
const MESSAGE_MAX: u16 = 6;

/// Width of a row's sparkline.
const SPARKS: usize = 10;

const HELP: [(&str, &str); 11] = [
    ("up, down, j, k", "select a direction"),
    ("PgUp, PgDn, Home, End", "scroll by page"),
    ("Enter, Esc", "show the direction; back"),
    ("s", "sort by rate, drops, queue, late frames, name"),
    ("/", "filter by part of a name, or a pattern with * and ?"),
    ("Esc", "clear the filter"),
    (
        "e",
        "set options, such as rate=5mbit delay=20ms; Ctrl-U clears",
    ),
    ("f, p, o", "turn the link off, pause it, turn it on"),
    ("z", "undo the last change"),
    ("?", "show this help"),
    ("q, Ctrl-C", "quit"),
];

/// Key hints for the most used keys.
const KEYS: &str = "Enter detail  s sort  / names  e set  f p o off, pause, on  z undo  ? keys  q";

/// Returns the number of table rows on a screen of this height.
pub fn rows_of(height: u16) -> usize {
    usize::from(height.saturating_sub(ABOVE + BELOW)).max(1)
}

/// Returns a coloured style, unless colour is disabled (no-color.org).
pub fn colour(colour: Color) -> Style {
    match std::env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => Style::new(),
        _ => Style::new().fg(colour),
    }
}

pub fn draw(frame: &mut Frame<'_>, screen: &TopScreen) {
    let foot = footer(screen);
    let width = frame.area().width;
    let below = height_of(&foot, width, MESSAGE_MAX);
    let lines = screen.shown.as_deref().map(|shown| header(shown, screen));
    let verdict = lines.as_ref().and_then(|lines| lines.last());
    let verdict = verdict.map_or(1, |line| height_of(line, width, VERDICT_MAX));
    let parts = [
        Constraint::Length(FIXED + verdict),
        Constraint::Min(1),
        Constraint::Length(below),
    ];
    let [head, body, foot_area] = Layout::vertical(parts).areas(frame.area());
    match &screen.shown {
        None => frame.render_widget(Paragraph::new("connecting …"), head),
        Some(shown) => {
            frame.render_widget(wrapped(lines.unwrap_or_default()), head);
            match (&screen.detail, &shown.detail) {
                (Some(name), Some(detail)) if *name == detail.name => {
                    detail::draw(frame, body, detail);
                }
                (Some(name), _) => {
                    frame.render_widget(Paragraph::new(format!("loading {name} …")), body);
                }
                (None, _) => frame.render_widget(Paragraph::new(table(shown, screen)), body),
            }
        }
    }
    frame.render_widget(wrapped(foot), foot_area);
    if screen.help {
        help(frame, body);
    }
}

/// Returns wrapped lines.
pub fn wrapped<'a>(lines: impl Into<Text<'a>>) -> Paragraph<'a> {
    Paragraph::new(lines).wrap(Wrap { trim: true })
}

/// Returns the number of lines that a text occupies at this width, at most `most`.
pub fn height_of(text: &Line<'_>, width: u16, most: u16) -> u16 {
    let (mut lines, mut used) = (1, 0);
    for word in text.to_string().split_whitespace() {
        let word = word.chars().count() as u16;
        if used > 0 && used + 1 + word > width {
            (lines, used) = (lines + 1, word);
        } else {
            used += word + u16::from(used > 0);
        }
    }
    lines.clamp(1, most)
}

/// Returns the run and its totals, followed by the fidelity, which is always visible.
fn header<'a>(shown: &'a Snapshot, screen: &'a TopScreen) -> Vec<Line<'a>> {
    let clock = clock(shown.overview.elapsed_s);
    let state = match &screen.lost {
        None => Span::styled("live", colour(Color::Green)),
        Some(Lost::Ended) => Span::styled("THE RUN HAS ENDED", colour(Color::Red).bold()),
        Some(Lost::NoAnswer(_)) => Span::styled("no response, retrying", colour(Color::Red)),
    };
    let directions = count(shown.page.directions as u64);
    let mut first = vec![
        Span::styled(format!("longwire {clock}  "), Style::new().bold()),
        Span::raw(format!("{directions} directions  ")),
    ];
    if let Some(pattern) = &screen.pattern {
        let fitting = count(shown.page.fitting as u64);
        first.push(Span::raw(format!("'{pattern}': {fitting}  ")));
    }
    first.push(state);
    let sums = match shown.rates {
        Some([bits_in, bits_out, drops]) => format!(
            "in {}  out {}  dropped {:.0}/s, {} in total  queued {}",
            rate(bits_in),
            rate(bits_out),
            drops,
            count(shown.stats.totals.totals.drops.total()),
            count(shown.stats.totals.queued),
        ),
        None => String::new(),
    };
    let mut lines = vec![Line::from(first), Line::from(sums), fidelity(shown)];
    lines.push(match &screen.lost {
        Some(Lost::NoAnswer(error)) => Line::styled(error.as_str(), colour(Color::Red)),
        _ => Line::raw(shown.fidelity.verdict.as_str()),
    });
    lines
}

fn fidelity(shown: &Snapshot) -> Line<'_> {
    let fidelity = &shown.fidelity;
    let lateness = &fidelity.lateness_us;
    let artifacts: u64 = fidelity.artifacts.values().sum();
    let (word, shade) = match fidelity.grade {
        Grade::NoFrames => ("no frames yet", Color::Yellow),
        Grade::Faithful => ("faithful", Color::Green),
        Grade::NearlyFaithful => ("nearly faithful", Color::Yellow),
        Grade::NotFaithful => ("NOT FAITHFUL", Color::Red),
    };
    Line::from(vec![
        Span::styled(word, colour(shade).bold()),
        Span::raw(format!(
            "  lateness p50 {}, p99 {}, max {}  artifacts {}",
            micros(lateness.p50),
            micros(lateness.p99),
            micros(lateness.max),
            count(artifacts),
        )),
    ])
}

/// Formats a run time as `M:SS`, or `H:MM:SS` from one hour on.
pub fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn table<'a>(shown: &'a Snapshot, screen: &TopScreen) -> Vec<Line<'a>> {
    let title = |sort: Sort, name: &str| {
        let mark = if screen.sort == sort { "*" } else { "" };
        format!("{name}{mark}")
    };
    let head = format!(
        "{:<18} {:<6} {:>11} {:>11} {:>6} {:>5} {:>5} ",
        title(Sort::Name, "direction"),
        "state",
        title(Sort::Rate, "out"),
        "in",
        title(Sort::Drops, "drop/s"),
        title(Sort::Queue, "queue"),
        title(Sort::Late, "late"),
    );
    let mut lines = vec![
        Line::raw(""),
        Line::styled(head + "1 min", Style::new().bold()),
    ];
    let rows = shown.page.rows.iter().enumerate();
    lines.extend(rows.map(|(place, row)| {
        let line = row_line(row);
        if screen.offset + place == screen.chosen {
            line.reversed()
        } else {
            line
        }
    }));
    if shown.page.rows.is_empty() {
        lines.push(Line::raw("no matching direction; Esc clears the filter"));
    }
    lines
}

fn row_line(row: &TableRow) -> Line<'_> {
    let (state, shade) = match row.state {
        State::On => ("on", Color::Green),
        State::Off => ("off", Color::Red),
        State::Paused => ("paused", Color::Yellow),
    };
    let drops = format!(" {:>6.0}", row.drops_per_s);
    let [bits_out, bits_in] = [row.bits_out_per_s, row.bits_in_per_s].map(rate);
    let late = row.late + row.overload;
    let lossy = if row.drops_per_s > 0.0 {
        colour(Color::Red)
    } else {
        Style::new()
    };
    Line::from(vec![
        Span::raw(format!("{:<18} ", shortened(&row.name, 18))),
        Span::styled(format!("{state:<6}"), colour(shade)),
        Span::raw(format!(" {bits_out:>11} {bits_in:>11}")),
        Span::styled(drops, lossy),
        Span::raw(format!(" {:>6} {late:>5} ", row.queued)),
        Span::raw(sparks(&row.recent, SPARKS)),
    ])
}

/// Shortens a name in the middle, because its end is the direction.
fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let tail = most / 2;
    let head: String = letters[..most - tail - 1].iter().collect();
    let tail: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

/// Formats the last values as block characters, scaled to the largest value, which is a full block.
pub fn sparks(values: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values = &values[values.len().saturating_sub(width)..];
    let most = values.iter().copied().fold(0.0, f64::max);
    let block =
        |value: &f64| BLOCKS[((value / most.max(f64::MIN_POSITIVE) * 7.0).round() as usize).min(7)];
    values.iter().map(block).collect()
}

fn footer(screen: &TopScreen) -> Line<'_> {
    match (&screen.prompt, &screen.message) {
        (Some(Prompt::Search(text)), _) => Line::from(format!("names: {text}▏")),
        (Some(Prompt::Options(text)), _) => {
            let name = screen.chosen_name().unwrap_or_default();
            let hint = match &screen.message {
                Some(message) if message.is_error => {
                    Span::styled(message.text.as_str(), colour(Color::Red))
                }
                _ => Span::raw("(rate=5mbit delay=20ms …)"),
            };
            Line::from(vec![Span::raw(format!("{name}: {text}▏  ")), hint])
        }
        (None, Some(message)) => {
            let is_error = message.is_error;
            let shade = if is_error { Color::Red } else { Color::Green };
            Line::styled(message.text.as_str(), colour(shade))
        }
        (None, None) => Line::from(KEYS).dim(),
    }
}

fn help(frame: &mut Frame<'_>, body: Rect) {
    let lines = HELP.iter().map(|(keys, help)| {
        let keys = Span::styled(format!(" {keys:<22}"), Style::new().bold());
        Line::from(vec![keys, Span::raw(*help)])
    });
    let lines: Vec<Line<'_>> = lines.collect();
    let height = Constraint::Length(lines.len() as u16 + 2);
    let [area, _] = Layout::vertical([height, Constraint::Min(0)]).areas(body);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" keys ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
