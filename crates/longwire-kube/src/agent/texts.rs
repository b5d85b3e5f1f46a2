//! Rewrites the node's messages for users of the cluster, who know resources and fields, but not
//! attachment names or the command line.

use crate::plan::PREFIX;

/// Returns the resource of an attachment, such as `Link shop/far`.
pub(super) type ResourceOf<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Command-line options that are fields of a Link.
const FIELDS: [&str; 6] = ["filter", "fail", "interface", "priority", "seed", "to"];

/// Patterns of clauses that refer to the command line.
const COMMANDS: [&str; 4] = ["`longwire ", "`bpftool ", "--", "command line"];

/// Replaces names and options by resources and fields, and removes clauses that contain commands.
pub(super) fn for_users(text: &str, resource_of: ResourceOf<'_>) -> String {
    let text = with_fields(text);
    let mut clauses = split(&text, &[": ", "; "]).into_iter();
    let first = clauses.next().unwrap_or_default();
    let rest: String = clauses.filter(|clause| !has_command(clause)).collect();
    with_resources(&format!("{first}{rest}"), resource_of)
}

/// Remedy for a value, instead of the command that lists the valid ones.
const VALUES: &str = "docs/models/README.md of Longwire lists the models";

/// Removes the parts of a remedy that contain commands; `None` if nothing remains.
pub(super) fn remedy_for_users(remedy: &str) -> Option<String> {
    if remedy.starts_with("`longwire models ") {
        return Some(VALUES.to_owned());
    }
    let remedy = with_fields(remedy);
    let parts = split(&remedy, &[": ", "; ", ", "]).into_iter();
    let rest: String = parts.filter(|part| !has_command(part)).collect();
    let rest = rest.trim_start_matches([':', ';', ',', ' ']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

pub(super) fn names_resource(text: &str, resource_of: ResourceOf<'_>) -> bool {
    words(text).any(|word| resource_of(name_in(word)).is_some())
}

fn has_command(clause: &str) -> bool {
    COMMANDS.iter().any(|sign| clause.contains(sign))
}

/// Splits a text; each part begins with its separator.
fn split<'a>(text: &'a str, separators: &[&str]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let from = usize::from(!parts.is_empty());
        let after = &rest[from.min(rest.len())..];
        let ends = separators.iter().filter_map(|it| after.find(it));
        let Some(end) = ends.min().map(|end| end + from) else {
            parts.push(rest);
            return parts;
        };
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
}

/// Replaces options such as `--filter` by fields.
fn with_fields(text: &str) -> String {
    let field = |word: &str| {
        let name = word.strip_prefix("--")?;
        FIELDS.contains(&name).then(|| format!("`{name}`"))
    };
    words(text)
        .map(|word| field(word).unwrap_or_else(|| word.to_owned()))
        .collect()
}

/// Replaces attachment names, quoted or not, by resources.
fn with_resources(text: &str, resource_of: ResourceOf<'_>) -> String {
    let mut replaced = String::new();
    let mut rest = words(text).peekable();
    while let Some(word) = rest.next() {
        let name = name_in(word);
        let Some(resource) = resource_of(name).filter(|_| !replaced.ends_with('/')) else {
            replaced.push_str(word);
            continue;
        };
        let is_quoted = replaced.ends_with('\'') && rest.peek() == Some(&"'");
        if is_quoted {
            replaced.pop();
            rest.next();
        }
        replaced.push_str(&resource);
        replaced.push_str(&word[name.len()..]);
    }
    replaced
}

/// Strips quotes and punctuation from a word.
fn name_in(word: &str) -> &str {
    if word.starts_with(PREFIX) {
        word.trim_end_matches('.')
    } else {
        ""
    }
}

/// Splits a text into words and single separators.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match rest.find(|c| !is_of_word(c)) {
            Some(0) => first.len_utf8(),
            Some(end) => end,
            None => rest.len(),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_of(name: &str) -> Option<String> {
        match name {
            "kube-shop-ts-ca1900b9" => Some("Link shop/ts".to_owned()),
            "kube-shop-ts-ca1900b9-up" => Some("Link shop/ts".to_owned()),
            _ => None,
        }
    }

    fn text(text: &str) -> String {
        for_users(text, &resource_of)
    }

    #[test]
    fn names_at_the_node_become_resources() {
        let conflict = "'kube-shop-ts-ca1900b9-up' already has this traffic; change it (`longwire \
            attach set kube-shop-ts-ca1900b9-up`), remove it, or select part of the traffic \
            (to, filter)";
        assert_eq!(text(conflict), "Link shop/ts already has this traffic");
        assert!(names_resource(conflict, &resource_of));
        assert_eq!(text("it is kube-shop-ts-ca1900b9."), "it is Link shop/ts.");
        for other in [
            "'web' is there",
            "/run/kube-shop-ts-ca1900b9/x",
            "kube-x is new",
        ] {
            assert_eq!(text(other), other);
        }
        assert!(!names_resource("'web' is there", &resource_of));
    }

    #[test]
    fn clauses_with_commands_are_left_out() {
        let taken = "'eth0' has a link of Longwire already: `longwire attach list` shows it, \
            `longwire attach detach` removes it; links of parts of the traffic can be next to \
            it: --to, --filter";
        assert_eq!(
            text(taken),
            "'eth0' has a link of Longwire already; links of parts of the traffic can be next to \
             it: `to`, `filter`"
        );
        let route = "there is no default route: name one with --interface; those are eth0, eth1";
        let expected = route.replace("--interface", "`interface`");
        assert_eq!(text(route), expected);
        assert_eq!(text("late: --tolerance is low"), "late");
        assert_eq!(text("a: b: `x`; ö"), "a: b: `x`; ö");
        assert_eq!(text(""), "");
    }

    #[test]
    fn a_remedy_gives_no_commands() {
        let remedy = |text| remedy_for_users(text);
        assert_eq!(remedy("write it as on the command line"), None);
        let number = "write a number with its unit, as on the command line";
        assert_eq!(
            remedy(number).as_deref(),
            Some("write a number with its unit")
        );
        let models = "`longwire models delay` shows what there is";
        assert_eq!(remedy(models).as_deref(), Some(VALUES));
        assert_eq!(remedy("`longwire preset` lists them"), None);
        let check = "give it with its topology: `longwire check x`";
        assert_eq!(remedy(check).as_deref(), Some("give it with its topology"));
        assert_eq!(
            remedy("write 20ms, or 20").as_deref(),
            Some("write 20ms, or 20")
        );
    }
}
