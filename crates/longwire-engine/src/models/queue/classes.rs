//! Traffic classes by IP or VLAN code point, and their syntax.

use super::{HeaderFields, QueueLimit, QueuedFrame};
use crate::models::prelude::*;

/// Traffic classes and their code points.
///
/// Written `ef+va*4@100p/rest/le`: classes in order, separated by slashes. Each lists its code
/// points, then an optional `*` and weight, then an optional `@` and limit. Code points are numbers
/// from 0 to 63, ranges such as `32-39`, or names: `df`, `cs0` to `cs7` (RFC 2474), `af11` to
/// `af43` (RFC 2597), `ef` (RFC 3246), `va` (RFC 5865), `le` (RFC 8622), and `rest` for all
/// remaining code points, which otherwise go to the last class.
///
/// Alternatively, classes list priority code points (PCP): `pcp0` to `pcp7`, ranges such as
/// `pcp4-5`, or the traffic types in IEEE 802.1Q, annex I: `be` (0), `bk` (1), `ee`, `ca`, `vi`,
/// `vo`, `ic`, `nc` (7); background (1) ranks below best effort (0). Frames without a VLAN tag are
/// `be`. All classes must use the same field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    field: ClassField,
    /// Class index of each code point.
    of_point: [u8; DSCPS],
    classes: Vec<Class>,
}

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Weight relative to other classes.
    pub weight: u32,
    /// Limit on this class, within the total limit.
    pub limit: QueueLimit,
}

/// Header field that holds the code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassField {
    /// Differentiated services code point in the IP header.
    Dscp,
    /// Priority code point in the outermost VLAN tag.
    Pcp,
}

/// Number of code points (RFC 2474, section 3).
const DSCPS: usize = 64;

/// Traffic types by priority code point (IEEE 802.1Q, annex I).
const PCP_NAMES: [&str; 8] = ["be", "bk", "ee", "ca", "vi", "vo", "ic", "nc"];

/// Maximum weight.
const WEIGHT_MAX: u32 = 1_000_000;

impl Classes {
    /// Parses the parameter `classes`; the value `pcp` means `pcp_classes`.
    pub(super) fn read(arguments: &Arguments, pcp_classes: &str) -> Result<Classes, SpecError> {
        let text = arguments.required_text("classes")?;
        let written = if text == "pcp" { pcp_classes } else { text };
        Classes::parse(written)
            .map_err(|message| arguments.invalid(format!("classes={text}: {message}")))
    }

    /// Parses classes.
    ///
    /// # Errors
    /// A message that names the invalid part.
    pub fn parse(text: &str) -> Result<Classes, String> {
        let mut of_point = [None; DSCPS];
        let mut field = None;
        let mut rest = None;
        let mut classes = Vec::new();
        for (index, class) in text.split('/').enumerate() {
            if index == DSCPS {
                return Err(format!("more than {DSCPS} classes"));
            }
            let (class, own_limit) = split(class, '@');
            let (points, weight) = split(class, '*');
            for point in points.split('+').map(str::trim) {
                if point == "rest" {
                    give(&mut rest, index, point)?;
                    continue;
                }
                let (of, first, last) = read_points(point)?;
                if *field.get_or_insert(of) != of {
                    return Err(mixed(point, of));
                }
                for place in &mut of_point[first..=last] {
                    give(place, index, point)?;
                }
            }
            classes.push(Class {
                weight: weight.map_or(Ok(1), read_weight)?,
                limit: own_limit.map_or(Ok(QueueLimit::UNLIMITED), read_own_limit)?,
            });
        }
        let rest = rest.unwrap_or(classes.len() as u8 - 1);
        Ok(Classes {
            field: field.unwrap_or(ClassField::Dscp),
            of_point: of_point.map(|class| class.unwrap_or(rest)),
            classes,
        })
    }

    /// Returns the class index of a frame.
    #[inline]
    pub fn of(&self, frame: &QueuedFrame) -> usize {
        let point = match self.field {
            ClassField::Dscp => frame.dscp(),
            ClassField::Pcp => frame.pcp(),
        };
        usize::from(self.of_point[usize::from(point) % DSCPS])
    }

    /// Returns the header fields used for classification.
    pub fn reads(&self) -> HeaderFields {
        match self.field {
            ClassField::Dscp => HeaderFields::Class,
            ClassField::Pcp => HeaderFields::Tag,
        }
    }

    /// Returns the classes in order; never empty.
    pub fn list(&self) -> &[Class] {
        &self.classes
    }

    /// Returns the combined limit, from `total` and the class limits.
    pub(super) fn limit(&self, total: &QueueLimit) -> QueueLimit {
        let packets = self.classes.iter().map(|class| class.limit.packets);
        let packets: Option<u64> = packets.map(|limit| limit.map(|most| most.0)).sum();
        let bytes = self.classes.iter().map(|class| class.limit.bytes);
        let bytes: Option<u64> = bytes.map(|limit| limit.map(|most| most.0)).sum();
        QueueLimit {
            packets: total.packets.into_iter().chain(packets.map(Packets)).min(),
            bytes: total.bytes.into_iter().chain(bytes.map(Bytes)).min(),
        }
    }
}

/// Splits a text at a separator.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, behind)) => (before, Some(behind.trim())),
        None => (text, None),
    }
}

fn give(place: &mut Option<u8>, class: usize, point: &str) -> Result<(), String> {
    match place.replace(class as u8) {
        None => Ok(()),
        Some(_) => Err(format!("'{point}' is given twice")),
    }
}

/// Returns the error for mixing DSCP and PCP.
fn mixed(text: &str, field: ClassField) -> String {
    match field {
        ClassField::Dscp => format!(
            "'{text}' is a DSCP, but another class uses VLAN priorities (pcp0 to pcp7); use only \
             one kind"
        ),
        ClassField::Pcp => {
            format!("'{text}' is a VLAN priority, but another class uses DSCPs; use only one kind")
        }
    }
}

/// Parses a code point or range into field, first and last.
fn read_points(text: &str) -> Result<(ClassField, usize, usize), String> {
    let (field, numbers, count) = match text.strip_prefix("pcp") {
        Some(numbers) => (ClassField::Pcp, numbers, PCP_NAMES.len()),
        None => (ClassField::Dscp, text, DSCPS),
    };
    let number = |text: &str| text.parse::<usize>().ok().filter(|point| *point < count);
    let numbered = match numbers.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)),
        None => number(numbers).map(|point| (point, point)),
    };
    let numbered = numbered.filter(|(first, last)| first <= last);
    let by_name = || {
        let pcp = PCP_NAMES.iter().position(|name| *name == text);
        let pcp = pcp.map(|pcp| (ClassField::Pcp, pcp, pcp));
        pcp.or_else(|| named(text).map(|dscp| (ClassField::Dscp, dscp, dscp)))
    };
    let found = numbered.map(|(first, last)| (field, first, last));
    found.or_else(by_name).ok_or_else(|| {
        format!(
            "'{text}' is not a code point; write a number from 0 to 63, a range 32-39, df, cs0 to \
             cs7, af11 to af43, ef, va, le or rest; or a VLAN priority, pcp0 to pcp7, pcp4-5, \
             be, bk, ee, ca, vi, vo, ic, nc"
        )
    })
}

fn named(name: &str) -> Option<usize> {
    let digit = |byte: &u8| usize::from(byte - b'0');
    match name.as_bytes() {
        b"df" => Some(0),
        b"le" => Some(1),
        b"va" => Some(44),
        b"ef" => Some(46),
        [b'c', b's', class @ b'0'..=b'7'] => Some(8 * digit(class)),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some(8 * digit(class) + 2 * digit(drop))
        }
        _ => None,
    }
}

fn read_weight(text: &str) -> Result<u32, String> {
    let weight = text.parse().ok();
    weight
        .filter(|weight| (1..=WEIGHT_MAX).contains(weight))
        .ok_or_else(|| format!("'{text}' is not a weight; write an integer from 1 to {WEIGHT_MAX}"))
}

fn read_own_limit(text: &str) -> Result<QueueLimit, String> {
    let packets = text.parse::<Packets>().ok();
    let bytes = text.parse::<Bytes>().ok();
    let limit = QueueLimit { packets, bytes };
    if limit == QueueLimit::UNLIMITED || packets == Some(Packets(0)) || bytes == Some(Bytes(0)) {
        return Err(format!(
            "'{text}' is not a limit; for example: 100p or 64kb"
        ));
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use longwire_packet::frame::FrameMeta;
    use longwire_packet::header::Ecn;
    use longwire_units::Nanos;

    use super::*;

    fn by_dscp(dscp: u8) -> QueuedFrame {
        let mut frame = QueuedFrame::new(0, FrameMeta::new(Nanos::ZERO, 100));
        frame.set_class(dscp, Ecn::NotCapable);
        // Ignored by classes of the other field.
        frame.set_pcp(7 - dscp % 8);
        frame
    }

    fn by_pcp(pcp: u8) -> QueuedFrame {
        let mut frame = by_dscp(63 - pcp);
        frame.set_pcp(pcp);
        frame
    }

    #[test]
    fn code_points_find_their_class() {
        let classes = Classes::parse("ef+va*4@100p/rest@64kb/le+8-10+af41").unwrap();
        let of = |class| (0..64u8).filter(move |dscp| classes.of(&by_dscp(*dscp)) == class);
        assert_eq!(of.clone()(0).collect::<Vec<_>>(), [44, 46]);
        assert_eq!(of.clone()(2).collect::<Vec<_>>(), [1, 8, 9, 10, 34]);
        assert_eq!(of(1).count(), 64 - 7);
        let classes = Classes::parse("ef+va*4@100p/rest@64kb/le").unwrap();
        let weights: Vec<u32> = classes.list().iter().map(|class| class.weight).collect();
        assert_eq!(weights, [4, 1, 1]);
        assert_eq!(classes.list()[0].limit.packets, Some(Packets(100)));
        assert_eq!(classes.list()[1].limit.bytes, Some(Bytes(64 << 10)));
        assert_eq!(classes.list()[2].limit, QueueLimit::UNLIMITED);
    }

    #[test]
    fn priorities_of_the_tag_find_their_class() {
        for (text, expected) in [
            ("nc/ic/vo/vi/ca/ee/be/bk", [6, 7, 5, 4, 3, 2, 1, 0]),
            ("pcp6-7*3/pcp5+vi@9p/rest/pcp1", [2, 3, 2, 2, 1, 1, 0, 0]),
            ("vo/pcp0", [1, 1, 1, 1, 1, 0, 1, 1]),
        ] {
            let classes = Classes::parse(text).unwrap();
            let found: Vec<usize> = (0..8).map(|pcp| classes.of(&by_pcp(pcp))).collect();
            assert_eq!(found, expected, "{text}");
            assert_eq!(classes.reads(), HeaderFields::Tag);
        }
        assert_eq!(
            Classes::parse("ef/rest").unwrap().reads(),
            HeaderFields::Class
        );
    }

    #[test]
    fn names_are_those_of_the_rfcs() {
        let named = |name| named(name).unwrap();
        let names = ["cs0", "cs7", "af11", "af23", "af43", "ef", "va", "le"];
        assert_eq!(names.map(named), [0, 56, 10, 22, 38, 46, 44, 1]);
    }

    #[test]
    fn errors_are_reported() {
        for (text, said) in [
            ("", "'' is not a code point"),
            ("ef//rest", "'' is not a code point"),
            ("64", "'64' is not a code point"),
            ("9-8", "'9-8' is not a code point"),
            ("af14", "'af14' is not a code point"),
            ("ef/46", "'46' is given twice"),
            ("0-10/af11", "'af11' is given twice"),
            ("rest/rest", "'rest' is given twice"),
            ("ef*0", "'0' is not a weight"),
            ("ef*x", "'x' is not a weight"),
            ("ef@0p", "'0p' is not a limit"),
            ("ef@100", "'100' is not a limit"),
            ("pcp8", "'pcp8' is not a code point"),
            ("pcp5-4", "'pcp5-4' is not a code point"),
            ("pcp", "'pcp' is not a code point"),
            ("pcpvo", "'pcpvo' is not a code point"),
            ("vo/pcp4-5", "'pcp4-5' is given twice"),
            ("vo/rest/1", "'1' is a DSCP"),
            ("ef/rest/bk", "'bk' is a VLAN priority"),
        ] {
            let error = Classes::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
