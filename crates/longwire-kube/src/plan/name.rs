//! Names and seeds of attachments.

use super::ResourceKey;

/// Prefix of the names of attachments created by agents, which do not touch other attachments.
pub const PREFIX: &str = "kube-";

/// Maximum length of a name that the node accepts.
const NAME_MAX: usize = 64;

/// The part of a pod's traffic that an attachment covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Both directions.
    Both,
    /// Only direction up, to peers that shape their own traffic.
    Up,
}

/// Returns the name of an attachment: `kube-NAMESPACE-LINK-UID`.
///
/// If that name is too long, or ambiguous because of a `-` in the namespace, a hash replaces
/// namespace and link.
pub fn attachment_name(link: &ResourceKey, uid: &str, part: Part) -> String {
    let suffix = match part {
        Part::Both => "",
        Part::Up => "-up",
    };
    let hash = format!("{:012x}", resource_hash(link) & 0xffff_ffff_ffff);
    unique_name(link, &format!("-{uid}{suffix}"), &hash, 6)
}

/// Returns `kube-NAMESPACE-NAME` with a suffix. If that is too long or ambiguous, a hash replaces
/// the namespace and the name except its first letters.
fn unique_name(key: &ResourceKey, suffix: &str, hash: &str, letters: usize) -> String {
    let ResourceKey { namespace, name } = key;
    let plain = format!("{PREFIX}{namespace}-{name}{suffix}");
    if plain.len() <= NAME_MAX && !namespace.contains('-') {
        return plain;
    }
    // The hash makes the name unique; its first characters are for readers.
    let start: String = name.chars().take(letters).collect();
    let start = start.trim_end_matches(['-', '.']);
    format!("{PREFIX}{start}.{hash}{suffix}")
}

/// Returns the seed of an attachment, which depends on the pod's name. With a common seed, all pods
/// would lose the same packets.
pub fn attachment_seed(seed: i64, link: &ResourceKey, pod: &str, part: Part) -> u64 {
    let (seed, link) = (seed.to_le_bytes(), resource_hash(link).to_le_bytes());
    let is_up = u8::from(part == Part::Up);
    // Some JSON parsers are limited to 53-bit integers.
    fnv(&[&seed, &link, pod.as_bytes(), &[is_up]]) >> 11
}

/// Returns the name of a network on its nodes: `kube-NAMESPACE-NAME`, or a name with a hash.
pub fn network_name(network: &ResourceKey) -> String {
    let hash = format!("{:016x}", resource_hash(network));
    unique_name(network, "", &hash, 32)
}

/// Returns a hash of namespace and name, which must not change between versions.
pub fn resource_hash(key: &ResourceKey) -> u64 {
    // Neither name can contain the separator of a key as text.
    fnv(&[key.to_string().as_bytes()])
}

/// Returns the 64-bit FNV-1a hash of concatenated texts.
fn fnv(texts: &[&[u8]]) -> u64 {
    let bytes = texts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0b4f1c1e-6a57-4d0c-9a65-0a3c5f2a7d11";

    fn name(namespace: &str, link: &str, part: Part) -> String {
        let key = ResourceKey::new(namespace, link);
        attachment_name(&key, UID, part)
    }

    #[test]
    fn short_names_are_plain() {
        let plain = format!("kube-shop-slow-{UID}");
        assert_eq!(name("shop", "slow", Part::Both), plain);
    }

    #[test]
    fn attachment_seeds_are_distinct_and_stable() {
        let slow = ResourceKey::new("shop", "slow");
        let far = ResourceKey::new("shop", "far");
        let all = [
            attachment_seed(1, &slow, "shop/a", Part::Both),
            attachment_seed(1, &slow, "shop/b", Part::Both),
            attachment_seed(1, &slow, "shop/a", Part::Up),
            attachment_seed(1, &far, "shop/a", Part::Both),
            attachment_seed(2, &slow, "shop/a", Part::Both),
        ];
        for (index, seed) in all.iter().enumerate() {
            assert!(*seed < 1 << 53 && !all[..index].contains(seed), "{all:?}");
        }
        assert_eq!(all[0], 2_274_964_797_667_112);
    }

    #[test]
    fn link_names_are_distinct_and_fit() {
        let long = "x".repeat(200);
        let all = [
            name("a-b", "c", Part::Both),
            name("a", "b-c", Part::Both),
            name("a", "b-c", Part::Up),
            name("shop", &long, Part::Both),
            name("shop", &long, Part::Up),
            name(&"y".repeat(63), &long, Part::Up),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(one.len() <= NAME_MAX, "{one}");
            assert!(one.starts_with(PREFIX) && one.contains(UID), "{one}");
            assert!(!all[..index].contains(one), "{one}");
        }
    }
}
