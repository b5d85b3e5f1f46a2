//! A masquerade rule for `--uplink`, in a dedicated table that the kernel removes along with its
//! socket, however Longwire ends.

use longwire_io::net::netlink::{ACK, Netlink, NetlinkError, REQUEST};
use longwire_io::net::netlink_message::Message;

use crate::plan::Plan;

/// `NFNL_SUBSYS_NFTABLES`: the upper byte of every message type, and the `res_id` of a batch.
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;

const FAMILY_IPV4: u8 = 2;
const CREATE: u16 = (libc::NLM_F_CREATE) as u16;
const APPEND: u16 = (libc::NLM_F_APPEND) as u16;
/// `NFT_TABLE_F_OWNER`: the table belongs to the socket and is removed with it.
const TABLE_OWNED: u32 = 2;
/// Hook and priority of source address translation.
const POSTROUTING: u32 = 4;
const SOURCE_NAT: u32 = 100;
/// `NFT_REG_1`.
const REGISTER: u32 = 1;
const CHAIN: &str = "postrouting";

/// A masquerade rule, removed on drop.
#[derive(Debug)]
pub struct Masquerade {
    _owner: Netlink,
}

impl Masquerade {
    /// Translates source addresses in the plan's networks to the host's address, on packets that
    /// leave through any device except `inside`.
    ///
    /// # Errors
    ///
    /// If the kernel lacks nf_tables masquerading or owned tables (before Linux 5.12).
    pub fn new(table: &str, plan: Plan, inside: &str) -> Result<Masquerade, NetlinkError> {
        let mut owner = Netlink::netfilter()?;
        owner.request_all(vec![
            batch(BATCH_BEGIN),
            new_table(table),
            new_chain(table),
            new_rule(table, plan, inside),
            batch(BATCH_END),
        ])?;
        Ok(Masquerade { _owner: owner })
    }
}

/// Returns a `struct nfgenmsg`, whose last field is in network byte order.
fn generic(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn batch(kind: u16) -> Message {
    Message::new(kind, REQUEST, &generic(0, NFTABLES))
}

fn message(kind: u16, flags: u16) -> Message {
    let kind = NFTABLES << 8 | kind;
    Message::new(kind, REQUEST | ACK | flags, &generic(FAMILY_IPV4, 0))
}

/// Appends a number in network byte order, as nf_tables requires.
fn number(to: &mut Message, kind: u16, value: u32) {
    to.attribute(kind, &value.to_be_bytes());
}

fn new_table(table: &str) -> Message {
    const NAME: u16 = 1;
    const FLAGS: u16 = 2;
    let mut m = message(NEW_TABLE, CREATE);
    m.text(NAME, table);
    number(&mut m, FLAGS, TABLE_OWNED);
    m
}

fn new_chain(table: &str) -> Message {
    const TABLE: u16 = 1;
    const NAME: u16 = 3;
    const HOOK: u16 = 4;
    const TYPE: u16 = 7;
    const HOOK_NUMBER: u16 = 1;
    const HOOK_PRIORITY: u16 = 2;
    let mut m = message(NEW_CHAIN, CREATE);
    m.text(TABLE, table).text(NAME, CHAIN);
    m.nested(HOOK, |hook| {
        number(hook, HOOK_NUMBER, POSTROUTING);
        number(hook, HOOK_PRIORITY, SOURCE_NAT);
    });
    m.text(TYPE, "nat");
    m
}

fn new_rule(table: &str, plan: Plan, inside: &str) -> Message {
    const TABLE: u16 = 1;
    const CHAIN_NAME: u16 = 2;
    const EXPRESSIONS: u16 = 4;
    let mut m = message(NEW_RULE, CREATE | APPEND);
    m.text(TABLE, table).text(CHAIN_NAME, CHAIN);
    m.nested(EXPRESSIONS, |list| {
        expression(list, "payload", |data| {
            const NETWORK_HEADER: u32 = 1;
            const SOURCE_ADDRESS: u32 = 12;
            number(data, 1, REGISTER);
            number(data, 2, NETWORK_HEADER);
            number(data, 3, SOURCE_ADDRESS);
            number(data, 4, plan.network.len() as u32);
        });
        compare(list, true, &plan.network);
        expression(list, "meta", |data| {
            const OUTPUT_NAME: u32 = 7;
            number(data, 1, REGISTER);
            number(data, 2, OUTPUT_NAME);
        });
        // Registers hold device names padded to full length.
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(inside.bytes()) {
            *to = from;
        }
        compare(list, false, &name);
        expression(list, "masq", |_| {});
    });
    m
}

fn expression(list: &mut Message, name: &str, fill: impl FnOnce(&mut Message)) {
    const ELEMENT: u16 = 1;
    const NAME: u16 = 1;
    const DATA: u16 = 2;
    list.nested(ELEMENT, |element| {
        element.text(NAME, name).nested(DATA, fill);
    });
}

/// Continues the rule only if the register equals the value, or only if it differs.
fn compare(list: &mut Message, equal: bool, value: &[u8]) {
    const DATA: u16 = 3;
    const VALUE: u16 = 1;
    expression(list, "cmp", |data| {
        number(data, 1, REGISTER);
        number(data, 2, u32::from(!equal));
        data.nested(DATA, |inner| {
            inner.attribute(VALUE, value);
        });
    });
}
