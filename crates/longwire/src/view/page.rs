//! The page of the live view, built from `ui/` by `cargo xtask page`.

use longwire_control::PageFile;

/// The files of the page.
pub static FILES: &[PageFile] = &[
    file(
        "/",
        "text/html; charset=utf-8",
        include_bytes!("../../page/index.html"),
    ),
    file(
        "/assets/favicon.svg",
        "image/svg+xml",
        include_bytes!("../../page/assets/favicon.svg"),
    ),
    file(
        "/assets/index.css",
        "text/css",
        include_bytes!("../../page/assets/index.css"),
    ),
    file(
        "/assets/index.js",
        "text/javascript",
        include_bytes!("../../page/assets/index.js"),
    ),
    file(
        "/assets/licences.txt",
        "text/plain; charset=utf-8",
        include_bytes!("../../page/assets/licences.txt"),
    ),
    file(
        "/assets/worker.js",
        "text/javascript",
        include_bytes!("../../page/assets/worker.js"),
    ),
];

const fn file(path: &'static str, kind: &'static str, content: &'static [u8]) -> PageFile {
    PageFile {
        path,
        kind,
        content,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::FILES;

    #[test]
    fn every_built_file_is_served() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(page.join(folder)).expect("the page is committed");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            names
                .map(|name| format!("/{folder}{}", name.to_string_lossy()))
                .collect()
        };
        let mut built: BTreeSet<String> = names("").into_iter().chain(names("assets/")).collect();
        assert!(built.remove("/assets") && built.remove("/index.html") && built.insert("/".into()));
        let served: BTreeSet<String> = FILES.iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(served, built);
    }
}
