//! The pages of `docs/models/`, generated from the registry.

use std::fmt::Write;

use longwire_engine::spec::{ModelInfo, Param, Unit};

use super::models::{registered, synopsis};
use longwire_control::registry::unit_name;

/// A page: file name and text, in Markdown.
pub struct Page {
    /// File name, such as `delay.md`.
    pub file: String,
    /// The whole text.
    pub text: String,
}

/// Introduction of a kind's page, before its models.
struct Introduction {
    kind: &'static str,
    title: &'static str,
    text: &'static str,
}

static INTRODUCTIONS: [Introduction; 14] = [
    Introduction {
        kind: "rate",
        title: "Rate",
        text: "The rate at which the link serialises frames, and when. A frame departs when its \
               last bit has left; the next one is taken out of the queue then.",
    },
    Introduction {
        kind: "framing",
        title: "Framing",
        text: "Bytes that the wire adds to each frame: more bits to serialise. Queues count frames \
               without it.",
    },
    Introduction {
        kind: "queue",
        title: "Queue disciplines",
        text: "Which frames wait for the rate, which one leaves next, and which are dropped or \
               marked. Each is computed in event time: the decision for a frame does not depend on \
               when the emulator processed it.",
    },
    Introduction {
        kind: "loss",
        title: "Loss",
        text: "Which frames are lost: on the medium, when they have used their time on the link, \
               or with `at=entry` before the queue. May be given several times; every model \
               draws for every frame that reaches it. With `ecn=mark`, frames of ECN-capable \
               senders are marked instead; a loss by any model wins over a mark.",
    },
    Introduction {
        kind: "corrupt",
        title: "Corruption",
        text: "Frames that arrive with inverted bits. They are changed after marks and rewriting.",
    },
    Introduction {
        kind: "duplicate",
        title: "Duplication",
        text: "Frames that the medium delivers several times.",
    },
    Introduction {
        kind: "delay",
        title: "Delay",
        text: "Propagation delay one way, from a frame's departure to its release, and its \
               jitter. With the default order policy a release is raised to that of the frame \
               before; `--order reorder` lets jitter reorder.",
    },
    Introduction {
        kind: "reorder",
        title: "Reordering",
        text: "Frames that are reordered deliberately, regardless of the order policy.",
    },
    Introduction {
        kind: "order",
        title: "Order policy",
        text: "Whether jitter may reorder frames.",
    },
    Introduction {
        kind: "mtu",
        title: "MTU",
        text: "The largest payload after the Ethernet header, and the treatment of longer frames. \
               Checked before everything else.",
    },
    Introduction {
        kind: "router",
        title: "Router",
        text: "A router at the entry of the link. `traceroute` shows it as a hop, and senders learn \
               the link's MTU from it. An error goes back to the port where the packet came in, \
               at the packet's arrival, without crossing a link; the report counts it as \
               `icmp_sent`. [Router hops](../routers.md#a-link-as-a-router-hop) shows examples.",
    },
    Introduction {
        kind: "rewrite",
        title: "Rewriting",
        text: "Changes that the link makes in every frame. May be given several times.",
    },
    Introduction {
        kind: "arrivals",
        title: "Arrivals",
        text: "An option of `longwire generate`: when the generated frames are due. Every model \
               keeps to the mean rate that `--rate` asks for, in bits or in packets a second.",
    },
    Introduction {
        kind: "sizes",
        title: "Sizes",
        text: "An option of `longwire generate`: the lengths of the generated frames. A size \
               counts from the destination MAC address to the end of the payload: the shortest \
               frame of an Ethernet has 60 bytes. Testers count the frame check sequence too, and \
               call it 64; write `fcs=with` for sizes that are counted so.",
    },
];

/// Returns every page, the index first.
pub fn pages() -> Vec<Page> {
    let registered = registered();
    let mut index = String::from(
        "# Models\n\nGenerated from the registry by `longwire models --pages docs/models`; a test \
         keeps it so. A model is\nwritten `NAME:KEY=VALUE,KEY=VALUE`; the first of a kind also \
         takes a bare value.\nEvery option of a link sets both directions; `--up-…` and `--down-…` \
         set one.\n\n| option | models |\n|---|---|\n",
    );
    let mut pages = Vec::new();
    for Introduction { kind, title, text } in &INTRODUCTIONS {
        let of_kind = registered.iter().filter(|(of, _)| of == kind);
        let of_kind: Vec<&ModelInfo> = of_kind.map(|(_, info)| *info).collect();
        let links = of_kind
            .iter()
            .map(|info| format!("[`{0}`]({kind}.md#{0})", info.name));
        let links: Vec<String> = links.collect();
        let _ = writeln!(index, "| [`--{kind}`]({kind}.md) | {} |", links.join(", "));
        let mut page = format!("# {title}: `--{kind}`\n\n{text}\n");
        for info in of_kind {
            write_model(&mut page, kind, info);
        }
        pages.push(Page {
            file: format!("{kind}.md"),
            text: page,
        });
    }
    pages.insert(
        0,
        Page {
            file: "README.md".to_owned(),
            text: index,
        },
    );
    pages
}

fn write_model(page: &mut String, kind: &str, info: &ModelInfo) {
    let summary = capitalised(info.summary);
    let _ = write!(page, "\n## {}\n\n{summary}.\n", info.name);
    let _ = write!(page, "\n```\n--{kind} {}\n```\n", synopsis(info));
    if info.params.is_empty() {
        return;
    }
    page.push_str("\n| parameter | takes | default | |\n|---|---|---|---|\n");
    for param in info.params {
        let default = match (param.unit, param.default) {
            (Unit::Rest, _) => "any number of them".to_owned(),
            (_, Some(default)) => format!("`{default}`"),
            (_, None) => String::new(),
        };
        let (takes, help) = (takes(param), param.help.replace('|', "\\|"));
        let _ = writeln!(page, "| `{}` | {takes} | {default} | {help} |", param.name);
    }
    for param in info.params {
        if let Unit::File(contents) = param.unit {
            let contents = contents.trim_end();
            let _ = write!(
                page,
                "\nA file for `{}` may begin like this:\n\n```\n{contents}\n```\n",
                param.name
            );
        }
    }
}

fn takes(param: &Param) -> String {
    match param.unit {
        Unit::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(" or ")
        }
        unit => format!("{}, `{}`", unit_name(unit), unit.example()),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
