//! Compares `abi.rs` with the header, using a C compiler.

use std::io::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::{Command, Stdio};

use super::abi::{self, Hints, Host, Packet, Plugin};

/// Static assertions for a C compiler.
struct Claims(String);

impl Claims {
    fn equal(&mut self, c: &str, rust: usize) {
        let claim = format!("_Static_assert({c} == {rust}, \"{c}\");\n");
        self.0.push_str(&claim);
    }

    fn at(&mut self, of: &str, field: &str, offset: usize) {
        self.equal(&format!("offsetof(struct longwire_{of}, {field})"), offset);
    }

    fn size(&mut self, of: &str, size: usize) {
        self.equal(&format!("sizeof(struct longwire_{of})"), size);
    }
}

macro_rules! claim_fields {
    ($($name:ident = $type:ident { $($field:ident),+ })+) => {{
        let mut claims = Claims(String::new());
        $(
            claims.size(stringify!($name), size_of::<$type>());
            $(claims.at(stringify!($name), stringify!($field), offset_of!($type, $field));)+
        )+
        claims
    }};
}

/// Returns whether a C program with the header compiles without warnings.
fn compiles(body: &str) -> bool {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut compiler = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg("-I")
        .arg(include)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a C compiler");
    let mut input = compiler.stdin.take().expect("it is piped");
    let program = format!("#include \"longwire_plugin.h\"\n{body}");
    input.write_all(program.as_bytes()).expect("it is read");
    drop(input);
    compiler.wait().expect("it ends").success()
}

#[test]
fn the_header_has_the_same_structs() {
    let mut claims = claim_fields! {
        packet = Packet {
            at_ns, arrival_ns, bytes, bytes_count, length, wire_bits, queue_packets, queue_bytes
        }
        hints = Hints {
            struct_size, reserved, delay_mean_ns, delay_least_ns, rate_mean_bits_per_second
        }
        host = Host {
            abi, struct_size, next_u64, up_to, uniform, chance, exponential, fail, log, text,
            require, time, rate, size, probability, count, real
        }
        plugin = Plugin {
            abi, struct_size, name, create, destroy, lose, delay, ready, depart, rewrite
        }
    };
    claims.equal("LONGWIRE_PLUGIN_ABI", abi::VERSION as usize);
    assert!(compiles(&claims.0), "{}", claims.0);
    // A false assertion is rejected.
    claims.equal("LONGWIRE_PLUGIN_ABI", abi::VERSION as usize + 1);
    assert!(!compiles(&claims.0));
}

#[test]
fn the_header_has_the_same_constants_and_types() {
    let mut body = String::new();
    for (name, value) in [
        ("LONGWIRE_OK", i64::from(abi::OK)),
        ("LONGWIRE_ERROR", i64::from(abi::ERROR)),
        ("LONGWIRE_UNKNOWN", abi::UNKNOWN),
        ("LONGWIRE_NEVER - 1", abi::NEVER - 1),
        // C has no literal for the minimum.
        ("LONGWIRE_INVALID + 1", abi::INVALID + 1),
        ("LONGWIRE_DELIVER", 0),
        ("LONGWIRE_LOSE", 1),
        ("LONGWIRE_LOSE_BIT_ERROR", 2),
        ("LONGWIRE_LOSE_OUTAGE", 3),
        ("LONGWIRE_LOSE_CONTENT", 4),
    ] {
        body += &format!("_Static_assert({name} == {value}LL, \"{name}\");\n");
    }
    // C converts these types implicitly, so pointers to them are compared.
    body += "typedef int (*decide)(void *, struct longwire_random *, \
             const struct longwire_packet *, size_t, int64_t *);\n\
             decide delay_of(const struct longwire_plugin *p) { return p->delay; }\n\
             decide depart_of(const struct longwire_plugin *p) { return p->depart; }\n\
             typedef int64_t (*drawn)(struct longwire_random *, int64_t);\n\
             drawn exponential_of(const struct longwire_host *h) { return h->exponential; }\n";
    assert!(compiles(&body), "{body}");
}
