//! Places that pages name: files and folders in backticks, and targets of links, exist.
//!
//! A word in backticks is a place if it has a slash, and its first part is a folder of the workspace's
//! root or of the page's own folder; NAME in it stands for any name. Places are read from either folder;
//! links from the page's own folder, as readers follow them. Code blocks are not checked. Code, such as a
//! help text, may name pages as well: `docs/` up to `.md`.

use crate::workspace::{Language, SourceFile};
use std::path::Path;

/// Complains about places that do not exist; `root` is the workspace's.
pub(crate) fn check(root: &Path, sources: &[SourceFile]) -> Vec<String> {
    let of_source = |source: &SourceFile| match source.language {
        Language::Markdown => check_page(root, source),
        Language::Rust | Language::C => check_code(root, source),
    };
    sources.iter().flat_map(of_source).collect()
}

fn check_code(root: &Path, source: &SourceFile) -> Vec<String> {
    // The examples in this program's tests are no pages.
    if source.path.starts_with("tools/xtask/") {
        return Vec::new();
    }
    let missing = pages_named(&source.text).filter(|page| !root.join(page).exists());
    missing.map(|page| format!("{}: names {page}, which does not exist", source.path)).collect()
}

/// Pages of `docs/` that a text names.
fn pages_named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(|(start, _)| {
        let is_part = |next: char| next.is_ascii_alphanumeric() || "/._-".contains(next);
        let path = text[start..].split(|next| !is_part(next)).next()?;
        path.find(".md").map(|end| &path[..end + ".md".len()])
    })
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
    // Files beside the repository, such as `../shared`, may be missing on other machines.
    is_plain && first.is_some_and(|first| !["", ".."].contains(&first) && folder.join(first).is_dir())
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
                    `and/or`, `a b/c`, `tools/*.rs`, `docs/NAME.md`, `/proc/stat`, `../beside/none`, [x](https://x.org/y), [here](#here)\n\
                    ```\n`xtask/none.rs`\n```\n";
        assert_eq!(complaints(text), [""; 0]);
    }

    #[test]
    fn pages_that_code_names_exist() {
        let complaints = |text: &str| {
            let path = "base/x/src/lib.rs".to_owned();
            let source = SourceFile { path, text: text.to_owned(), language: Language::Rust };
            check(&crate::workspace::root(), &[source])
        };
        assert_eq!(complaints("/// See docs/reference/plan.md and docs/schemas.\n").len(), 0);
        let complaints = complaints("help(\"docs/none.md says\")");
        assert!(complaints.len() == 1 && complaints[0].contains("docs/none.md,"), "{complaints:?}");
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
