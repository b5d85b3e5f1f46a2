//! Repeats examples at the start of long help.

use clap::Command;

/// Heading of the examples in a help text.
const HEADING: &str = "Examples:";

/// Number of examples repeated at the start.
const SHOWN: usize = 3;

/// Repeats the first examples of each command's help at the start of its long help.
pub(super) fn first(command: Command) -> Command {
    let command = command.mut_subcommands(first);
    let end = command.get_after_long_help().or(command.get_after_help());
    let examples = end.and_then(|text| examples(&text.to_string()));
    match examples {
        Some(examples) => command.before_long_help(examples),
        None => command,
    }
}

/// Returns the first examples of a help text. Example lines are indented; continuation lines are
/// indented further.
fn examples(text: &str) -> Option<String> {
    let lines = text.lines().skip_while(|line| *line != HEADING).skip(1);
    let mut begun = 0;
    let lines = lines.take_while(|line| {
        begun += usize::from(!line.starts_with("   "));
        line.starts_with("  ") && begun <= SHOWN
    });
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| format!("{HEADING}\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::HEADING;
    use crate::Cli;

    #[test]
    fn long_help_begins_with_the_examples_at_its_end() {
        let mut root = Cli::with_examples();
        root.build();
        let mut with_examples = 0;
        for command in root.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            let found = help.lines().filter(|line| *line == HEADING).count();
            if found == 0 {
                continue;
            }
            with_examples += 1;
            let name = command.get_name();
            assert_eq!(found, 2, "{name}: {help}");
            let mut lines = help.lines();
            assert_eq!(lines.next(), Some(HEADING), "{name}");
            let shown: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
            let of_program = |line: &&&str| line.contains("longwire ");
            let count = shown.iter().filter(of_program).count();
            assert!((1..=3).contains(&count), "{name}: {shown:?}");
            let end = help.rsplit(HEADING).next().unwrap_or_default();
            assert!(end.contains(shown[0]), "{name}: {shown:?}");
        }
        assert!(with_examples > 8, "{with_examples}");
    }
}
