//! The page with the help of every command.

use std::path::Path;
use std::process::Command;

/// Returns the program's output, or an error if it fails.
pub fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("longwire {}: {error}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a section for the program and for each command.
pub fn page(program: &Path) -> Result<String, String> {
    let mut page = String::new();
    add(program, &mut Vec::new(), &mut page)?;
    Ok(page)
}

/// Appends the sections of a command and its subcommands.
fn add(program: &Path, command: &mut Vec<String>, page: &mut String) -> Result<(), String> {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = output(program, &arguments)?;
    let name = command
        .iter()
        .fold("longwire".to_owned(), |name, word| name + " " + word);
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for below in commands(&help) {
        command.push(below.to_owned());
        add(program, command, page)?;
        command.pop();
    }
    Ok(())
}

/// Returns the subcommands in a help text, except `help`. Option groups may also be titled
/// Commands; their lines are indented further.
fn commands(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    list.filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_not_options() {
        let help = "Usage: x\n\nCommands:\n  run   A link\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["run"]);
        assert!(commands("Commands:\n      --peer <CMD>\n          A command\n").is_empty());
    }
}
