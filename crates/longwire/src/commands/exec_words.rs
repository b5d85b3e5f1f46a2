//! The positional arguments of `exec`: a topology file and the command.

use std::ffi::OsString;
use std::path::Path;

use super::exec_args::ExecArgs;

/// Ends the options.
const DASHES: &str = "--";

/// Splits off a leading topology file.
pub(super) fn split_file(words: &[OsString]) -> (Option<&Path>, &[OsString]) {
    match words.split_first() {
        Some((first, rest)) if first.to_string_lossy().ends_with(".toml") => {
            let command = rest.strip_prefix(&[OsString::from(DASHES)]);
            let command = command.unwrap_or(rest);
            (Some(Path::new(first)), command)
        }
        _ => (None, words),
    }
}

impl ExecArgs {
    /// Returns the arguments with the options moved before the topology file; `None` if
    /// no options follow a file. The words of CMD stay last, in the given order.
    pub(crate) fn options_first(&self, given: &[OsString]) -> Option<Vec<OsString>> {
        let (Some(_), rest) = split_file(&self.command) else {
            return None;
        };
        let begins = given.len() - self.command.len();
        let option = |word: &OsString| word.to_string_lossy().starts_with('-');
        if rest.len() + 1 < self.command.len() || !rest.first().is_some_and(option) {
            return None;
        }
        let (before, file_and_rest) = given.split_at(begins);
        if before.last().is_some_and(|word| word == DASHES) {
            return None;
        }
        let (file, rest) = file_and_rest.split_first()?;
        let end = rest.iter().position(|word| word == DASHES);
        let (options, command) = rest.split_at(end.unwrap_or(rest.len()));
        let mut words = before.to_vec();
        words.extend(options.iter().cloned());
        words.push(file.clone());
        words.extend(command.iter().cloned());
        Some(words)
    }

    /// Returns the error message for an empty command, such as `-- $UNSET`; `given` are
    /// the program's arguments.
    pub(crate) fn missing_command(&self, given: &[OsString]) -> Option<String> {
        let (_, command) = split_file(&self.command);
        let is_empty = match command.first() {
            Some(first) => first.is_empty(),
            None => given.last().is_some_and(|last| last == DASHES),
        };
        if is_empty {
            let probe = "omit -- to probe the link";
            return Some(format!("no command after --; {probe}"));
        }
        let peer = self
            .peer
            .peer
            .as_ref()
            .filter(|peer| peer.to_string_lossy().trim().is_empty());
        peer.map(|_| "--peer: no command; write, for example, --peer 'iperf3 -s'".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_file_is_separated_from_the_command() {
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect();
        let split = |text| {
            let words: Vec<OsString> = words(text);
            let (file, command) = split_file(&words);
            let command = command.iter().map(|word| word.to_string_lossy());
            let command = command.collect::<Vec<_>>().join(" ");
            (file.map(|file| file.display().to_string()), command)
        };
        assert_eq!(split("ping far"), (None, "ping far".to_owned()));
        let file = Some("a/b.toml".to_owned());
        assert_eq!(
            split("a/b.toml -- cat x"),
            (file.clone(), "cat x".to_owned())
        );
        assert_eq!(split("a/b.toml cat x"), (file.clone(), "cat x".to_owned()));
        assert_eq!(split("a/b.toml"), (file, String::new()));
        assert_eq!(split("cat x.toml"), (None, "cat x.toml".to_owned()));
    }

    #[test]
    fn an_empty_command_is_no_probe() {
        let said = |words: &[&str]| {
            let words = ["longwire", "exec"].iter().chain(words);
            let cli = crate::Cli::from_arguments(words.map(OsString::from).collect());
            cli.map_or_else(|error| error.to_string(), |_| "it is right".to_owned())
        };
        for words in [
            &["--delay", "20ms", "--"][..],
            &["--delay", "20ms", "--", ""],
            &["--delay", "20ms", ""],
            &["a.toml", "--"],
            &["a.toml", "--time", "1s", "--"],
            &["a.toml", "--", ""],
        ] {
            let said = said(words);
            let wanted = "error: no command after --; omit -- to probe the link\n";
            assert!(said.starts_with(wanted), "{words:?}: {said}");
        }
        for words in [&["--peer", "", "true"][..], &["--peer", " ", "--", "true"]] {
            let said = said(words);
            assert!(said.starts_with("error: --peer: no command;"), "{said}");
        }
        let said_of_node = said(&["a.toml", "--node", "core=", "--", "true"]);
        let wanted = "no command; write 'core=";
        assert!(said_of_node.contains(wanted), "{said_of_node}");
        for words in [&[][..], &["sh", "--"], &["--", "sh", ""], &["a.toml"]] {
            assert_eq!(said(words), "it is right", "{words:?}");
        }
    }

    #[test]
    fn options_may_follow_a_topology_file() {
        let parse = |text: &str| {
            let words = text.split_whitespace().map(OsString::from);
            let cli = crate::Cli::from_arguments(words.collect());
            let crate::Command::Exec(args) = cli.map_err(|error| error.to_string())?.command else {
                return Err("no exec".to_owned());
            };
            let words = args.command.iter().map(|word| word.to_string_lossy());
            let words = words.collect::<Vec<_>>().join(" ");
            Ok((words, args.time.map(|time| time.to_string())))
        };
        let time = Some("1s".to_owned());
        let found = parse("longwire exec a.toml --time 1s -- iperf3 --time 3");
        assert_eq!(
            found,
            Ok(("a.toml -- iperf3 --time 3".to_owned(), time.clone()))
        );
        let found = parse("longwire exec --time 1s a.toml -- ls -l");
        assert_eq!(found, Ok(("a.toml -- ls -l".to_owned(), time.clone())));
        let found = parse("longwire exec a.toml --time 1s");
        assert_eq!(found, Ok(("a.toml".to_owned(), time.clone())));
        // Without a file, all words belong to the command.
        let found = parse("longwire exec --time 1s iperf3 --time 3");
        assert_eq!(found, Ok(("iperf3 --time 3".to_owned(), time)));
        let found = parse("longwire exec a.toml --tme 1s -- ls");
        assert!(found.is_err_and(|error| error.contains("--tme")));
    }
}
