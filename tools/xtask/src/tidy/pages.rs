//! Places that pages name: files and folders in backticks, and targets of links, exist.
//!
//! A word in backticks is a place if it has a slash, and its first part is a folder of the workspace's root or of the
//! page's own folder; NAME in it stands for any. Places are read from either; links from the page's own folder, as readers follow them. Code
//! blocks are not looked at.

use crate::workspace::{Language, SourceFile};
use std::path::Path;

/// Complains about places that do not exist; `root` is the workspace's.
pub(crate) fn check(root: &Path, sources: &[SourceFile]) -> Vec<String> {
    let is_page = |source: &&SourceFile| source.language == Language::Markdown;
    sources.iter().filter(is_page).flat_map(|page| check_page(root, page)).collect()
}

fn check_page(root: &Path, page: &SourceFile) -> Vec<String> {
    let own = root.join(page.path.rsplit_once('/').map_or("", |(folder, _)| folder));
    let prose = without_blocks(&page.text);
    let mut complaints = Vec::new();
    for place in ticked(&prose).filter(|word| is_place(word, root) || is_place(word, &own)) {
        if !root.join(place).exists() && !own.join(place).exists() {
            complaints.push(format!("{}: there is no `{place}`", page.path));
        }
    }
    for target in links(&prose) {
        if !own.join(target).exists() {
            complaints.push(format!("{}: a link leads to {target}, which does not exist", page.path));
        }
    }
    complaints
}

fn without_blocks(text: &str) -> String {
    format!("\n{text}").split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Words between backticks.
fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_place(word: &str, folder: &Path) -> bool {
    if word.contains("NAME") {
        return false;
    }
    let is_plain = word.chars().all(|next| next.is_ascii_alphanumeric() || "/._-".contains(next));
    let first = word.split_once('/').map(|(first, _)| first);
    is_plain && first.is_some_and(|first| !first.is_empty() && folder.join(first).is_dir())
}

/// Targets of links to files, without the part after `#`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|target| !target.is_empty() && !target.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let page = SourceFile {
            path: "tools/README.md".to_owned(),
            text: text.to_owned(),
            language: Language::Markdown,
        };
        check(&crate::workspace::root(), &[page])
    }

    #[test]
    fn places_and_links_that_exist_pass() {
        let text = "`xtask/src/main.rs`, `tools/xtask`, `docs/`; [main](xtask/src/main.rs), [x](../README.md#x)\n\
                    `and/or`, `a b/c`, `tools/*.rs`, `docs/NAME.md`, `/proc/stat`, [x](https://x.org/y), [here](#here)\n\
                    ```\n`xtask/none.rs`\n```\n";
        assert_eq!(complaints(text), [""; 0]);
    }

    #[test]
    fn places_and_links_that_do_not_exist_are_refused() {
        for (text, part) in [
            ("`xtask/src/none.rs`", "no `xtask/src/none.rs`"),
            ("`base/none`", "no `base/none`"),
            ("[none](none.md)", "leads to none.md"),
            ("[root](tools/xtask)", "leads to tools/xtask"),
            ("```\n`x`\n```\n`docs/none.md`", "no `docs/none.md`"),
        ] {
            let complaints = complaints(text);
            assert!(complaints.len() == 1 && complaints[0].contains(part), "{text}: {complaints:?}");
        }
    }
}
