//! Generates the name resolution files for the environment, with pure functions on text.

use std::net::IpAddr;

/// Returns `/etc/hosts` with the environment's names first. Omits entries of the host's file that
/// assign these names to other addresses.
pub fn hosts(original: &str, names: &[(&str, IpAddr)]) -> String {
    let mut text = String::from("# Written by longwire for the commands behind the link.\n");
    for (name, address) in names {
        text.push_str(&format!("{address}\t{name}\n"));
    }
    for line in original.lines() {
        let (entry, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut words = entry.split_whitespace();
        let taken = |word: &str| {
            names
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(word))
        };
        if !words.clone().skip(1).any(taken) {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        let address = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.filter(|word| !taken(word)).collect();
        if !rest.is_empty() {
            text.push_str(&format!("{address}\t{}\t#{comment}\n", rest.join(" ")));
        }
    }
    text
}

/// Returns `/etc/nsswitch.conf` with the hosts file queried first; `None` if it already is. A
/// resolver daemon queried earlier would answer from the host's `/etc/hosts`, without the
/// environment's names.
pub fn files_first(original: &str) -> Option<String> {
    let is_hosts = |line: &&str| line.trim_start().starts_with("hosts:");
    let line = original.lines().find(is_hosts)?;
    let mut services = line
        .trim_start()
        .trim_start_matches("hosts:")
        .split_whitespace();
    if services.next() == Some("files") {
        return None;
    }
    let kept = original.lines().filter(|line| !is_hosts(line));
    let mut text: String = kept.flat_map(|line| [line, "\n"]).collect();
    let rest = line.trim_start().trim_start_matches("hosts:").trim();
    text.push_str(&format!("hosts: files {rest}\n"));
    Some(text)
}

/// Returns whether `/etc/resolv.conf` names a resolver that is reachable from another network
/// namespace, that is, not on the loopback device.
pub fn resolver_is_reachable(resolv_conf: &str) -> bool {
    let mut servers = resolv_conf.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    servers.any(|server| {
        server
            .parse::<IpAddr>()
            .is_ok_and(|address| !address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_take_precedence_and_are_unique() {
        let names = [("near", IpAddr::from([10, 77, 0, 1]))];
        let text = hosts(
            "127.0.0.1 localhost\n1.2.3.4 Near other # x\n5.6.7.8 near\n",
            &names,
        );
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "10.77.0.1\tnear",
                "127.0.0.1 localhost",
                "1.2.3.4\tother\t# x"
            ]
        );
    }

    #[test]
    fn a_resolver_daemon_is_asked_after_the_file() {
        assert_eq!(files_first("passwd: files\nhosts: files dns\n"), None);
        assert_eq!(files_first(""), None);
        let arch = "hosts: mymachines resolve [!UNAVAIL=return] files dns\npasswd: files\n";
        let text = files_first(arch).expect("a new order");
        assert!(text.contains("hosts: files mymachines resolve"), "{text}");
        assert!(text.starts_with("passwd: files\n"), "{text}");
    }

    #[test]
    fn a_loopback_resolver_is_out_of_reach() {
        assert!(resolver_is_reachable("# c\nnameserver 192.0.2.1\n"));
        assert!(!resolver_is_reachable(
            "nameserver 127.0.0.53\noptions edns0\n"
        ));
        assert!(!resolver_is_reachable(""));
    }
}
