//! Generates the pages in `docs/models/` from the registry.

use std::fmt::Write;

use longwire_control::registry::unit_name;
use longwire_engine::spec::{ModelInfo, Param, Unit};

use super::models::{registered, synopsis};

/// A Markdown page.
pub struct Page {
    /// File name, such as `delay.md`.
    pub file: String,
    /// Page text.
    pub text: String,
}

/// Introduction to a kind, before its models.
struct Introduction {
    kind: &'static str,
    title: &'static str,
    text: &'static str,
}

static INTRODUCTIONS: [Introduction; 14] = [
    Introduction {
        kind: "rate",
        title: "Rate",
        text: "The rate at which the link serialises frames. A frame departs with its last bit; \
               the next frame is then dequeued.",
    },
    Introduction {
        kind: "framing",
        title: "Framing",
        text: "Bytes that the wire adds to each frame. They take serialisation time, but do not \
               count in queues.",
    },
    Introduction {
        kind: "queue",
        title: "Queue disciplines",
        text: "The queue discipline decides which frame the link sends next and which frames it \
               drops or marks. It decides in event time, independently of when the emulator \
               processes a frame.",
    },
    Introduction {
        kind: "loss",
        title: "Loss",
        text: "Loss on the medium, after serialisation, or with `at=entry` before the queue. \
               Repeatable; each model decides independently for every frame that reaches it. With \
               `ecn=mark`, ECN-capable frames are marked instead; a loss by any model overrides a \
               mark.",
    },
    Introduction {
        kind: "corrupt",
        title: "Corruption",
        text: "Bit errors, applied after marks and rewriting.",
    },
    Introduction {
        kind: "duplicate",
        title: "Duplication",
        text: "Delivery of extra copies of a frame.",
    },
    Introduction {
        kind: "delay",
        title: "Delay",
        text: "One-way propagation delay, from departure to release, with its jitter. By default, \
               no frame is released before its predecessor; with `--order reorder`, jitter \
               reorders frames.",
    },
    Introduction {
        kind: "reorder",
        title: "Reordering",
        text: "Deliberate reordering, regardless of the order policy.",
    },
    Introduction {
        kind: "order",
        title: "Order policy",
        text: "Whether jitter may reorder frames.",
    },
    Introduction {
        kind: "mtu",
        title: "MTU",
        text: "Maximum payload after the Ethernet header, and the handling of longer frames. \
               Checked before all other models.",
    },
    Introduction {
        kind: "router",
        title: "Router",
        text: "A router at the entry of the link: a hop for `traceroute`. It reports the link's \
               MTU to senders. Errors return to the ingress port when the packet arrives, \
               without crossing a link; the report counts them as `icmp_sent`. See [router \
               hops](../routers.md#a-link-as-a-router-hop).",
    },
    Introduction {
        kind: "rewrite",
        title: "Rewriting",
        text: "Header changes to every frame. Repeatable.",
    },
    Introduction {
        kind: "arrivals",
        title: "Arrivals",
        text: "Option of `longwire generate`: departure times of frames. The mean rate is always \
               `--rate`, in bits or packets per second.",
    },
    Introduction {
        kind: "sizes",
        title: "Sizes",
        text: "Option of `longwire generate`: frame lengths, from destination MAC address to end \
               of payload. The shortest Ethernet frame has 60 bytes, or 64 with `fcs=with`, where \
               sizes include the frame check sequence.",
    },
];

/// Returns every page, starting with the index.
pub fn pages() -> Vec<Page> {
    let registered = registered();
    let mut index = String::from(
        "# Models\n\n`longwire models --pages docs/models` generates these pages. A model is \
         written\n`NAME:KEY=VALUE,KEY=VALUE`; the first model of a kind also accepts a bare value. \
         Link options\nset both directions; `--up-…` and `--down-…` set one.\n\n| option | \
         models |\n|---|---|\n",
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
    let index = Page {
        file: "README.md".to_owned(),
        text: index,
    };
    pages.insert(0, index);
    pages
}

fn write_model(page: &mut String, kind: &str, info: &ModelInfo) {
    let summary = capitalised(info.summary);
    let _ = write!(page, "\n## {}\n\n{summary}.\n", info.name);
    let _ = write!(page, "\n```\n--{kind} {}\n```\n", synopsis(info));
    if info.params.is_empty() {
        return;
    }
    page.push_str("\n| parameter | value | default | meaning |\n|---|---|---|---|\n");
    for param in info.params {
        let default = match (param.unit, param.default) {
            (Unit::Rest, _) => "repeatable".to_owned(),
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
                "\nExample file for `{}`:\n\n```\n{contents}\n```\n",
                param.name
            );
        }
    }
}

fn takes(param: &Param) -> String {
    match param.unit {
        Unit::Choice(words) => format!("`{}`", words.join("` or `")),
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
