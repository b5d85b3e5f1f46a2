//! The names of attachments.

use super::ResourceKey;

/// The start of the name of each attachment that an agent makes. It touches no others.
pub const PREFIX: &str = "kube-";

/// The longest name of an attachment at the node.
const NAME_MAX: usize = 64;

/// The part of a pod's traffic that an attachment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Both directions.
    Both,
    /// That which the pod sends to peers which shape their own traffic.
    Up,
}

/// Returns the name of an attachment: `kube-NAMESPACE-LINK-UID`.
///
/// Where that is too long for the node, or where a `-` in the namespace would let two links
/// have the same name, a hash of both takes their place.
pub fn attachment_name(link: &ResourceKey, uid: &str, part: Part) -> String {
    let suffix = match part {
        Part::Both => "",
        Part::Up => "-up",
    };
    let ResourceKey { namespace, name } = link;
    let plain = format!("{PREFIX}{namespace}-{name}-{uid}{suffix}");
    if plain.len() <= NAME_MAX && !namespace.contains('-') {
        return plain;
    }
    // The start of the name is for people; the hash is what counts.
    let start: String = name.chars().take(6).collect();
    let start = start.trim_end_matches(['-', '.']);
    format!(
        "{PREFIX}{start}.{:012x}-{uid}{suffix}",
        resource_hash(link) & 0xffff_ffff_ffff
    )
}

/// Returns the seed of an attachment. Pods that share one would lose the same packets of
/// theirs; that of a pod with the same name stays the same.
pub fn attachment_seed(seed: i64, link: &ResourceKey, pod: &str, part: Part) -> u64 {
    let mut hash = Fnv::default();
    hash.write(&seed.to_le_bytes());
    hash.write(&resource_hash(link).to_le_bytes());
    hash.write(pod.as_bytes());
    hash.write(&[u8::from(part == Part::Up)]);
    // JSON has integers of 53 bits.
    hash.0 >> 11
}

/// Returns the name of a network at the nodes: `kube-NAMESPACE-NAME`, or one with a hash.
pub fn network_name(network: &ResourceKey) -> String {
    let ResourceKey { namespace, name } = network;
    let plain = format!("{PREFIX}{namespace}-{name}");
    if plain.len() <= NAME_MAX && !namespace.contains('-') {
        return plain;
    }
    let start: String = name.chars().take(32).collect();
    let start = start.trim_end_matches(['-', '.']);
    format!("{PREFIX}{start}.{:016x}", resource_hash(network))
}

/// Returns a hash of namespace and name, which is the same in all versions.
pub fn resource_hash(key: &ResourceKey) -> u64 {
    let mut hash = Fnv::default();
    hash.write(key.namespace.as_bytes());
    // Neither a namespace nor a name has this byte.
    hash.write(b"/");
    hash.write(key.name.as_bytes());
    hash.0
}

/// The hash FNV-1a with 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0b4f1c1e-6a57-4d0c-9a65-0a3c5f2a7d11";

    fn name(namespace: &str, link: &str, part: Part) -> String {
        let key = ResourceKey {
            namespace: namespace.to_owned(),
            name: link.to_owned(),
        };
        attachment_name(&key, UID, part)
    }

    #[test]
    fn short_names_are_plain() {
        assert_eq!(
            name("shop", "slow", Part::Both),
            format!("kube-shop-slow-{UID}")
        );
    }

    #[test]
    fn attachments_have_different_seeds_which_stay() {
        let slow = ResourceKey {
            namespace: "shop".to_owned(),
            name: "slow".to_owned(),
        };
        let far = ResourceKey {
            name: "far".to_owned(),
            ..slow.clone()
        };
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
    fn links_have_different_names_which_fit() {
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
