//! Names of attachments, derived from network, container and interface, so that later calls find
//! them.

/// Prefix of all names.
const PREFIX: &str = "cni-";
/// Characters of the network's name in a name.
const NETWORK_MAX: usize = 12;
/// Characters of a container's ID, as tools abbreviate it.
const CONTAINER_MAX: usize = 13;

/// Returns the name of an attachment: at most 63 letters, digits, '.', '_' and '-', such as
/// `cni-pods-3fa9c0ffee123-eth0-`, followed by hashes of the network and the attachment.
pub(crate) fn name_of(network: &str, container: &str, interface: &str) -> String {
    let own = number(&[network, container, interface]);
    let label = |text: &str, max| -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let kept = text.chars().map(|c| if is_plain(c) { c } else { '_' });
        kept.take(max).collect()
    };
    format!(
        "{PREFIX}{}-{}-{}-{:08x}{own:08x}",
        label(network, NETWORK_MAX),
        label(container, CONTAINER_MAX),
        label(interface, usize::MAX),
        number(&[network]),
    )
}

/// Whether a name is that of an attachment of this network.
pub(crate) fn is_of_network(name: &str, network: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .and_then(|name| name.rsplit('-').next());
    numbers.is_some_and(|numbers| {
        numbers.len() == 16 && numbers.starts_with(&format!("{:08x}", number(&[network])))
    })
}

/// Returns the FNV-1a hash (32 bits) of texts separated by 0xff; stable across versions.
fn number(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_the_same() {
        // Runtimes may ask for attachments of earlier versions of the plugin.
        let name = name_of("pods", "3fa9c0ffee1234567890", "eth0");
        assert_eq!(name, "cni-pods-3fa9c0ffee123-eth0-6cccd2360e708fe4");
        assert!(is_of_network(&name, "pods"));
        assert!(!is_of_network(&name, "pod"));
        assert!(!is_of_network("web-eth0", "pods"));
    }

    #[test]
    fn names_are_file_names_and_differ() {
        let long = "x".repeat(100);
        let texts = [
            ("a-b/ü", &*long, "eth0"),
            ("a-b/u", &long, "eth0"),
            ("a-b/u", &long[1..], "eth0"),
            ("a-b/u", &long, "longest-name-15"),
        ];
        let names = texts.map(|(network, container, interface)| {
            let name = name_of(network, container, interface);
            assert!(name.len() <= 64, "{name}");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            assert!(name.chars().all(is_plain), "{name}");
            assert!(is_of_network(&name, network), "{name}");
            name
        });
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
    }
}
