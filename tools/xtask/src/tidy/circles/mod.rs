//! Files of a crate are read in an order: no file needs one that, directly or through others, needs it.
//!
//! A circle is broken by moving what both need into a file of its own.

mod edges;
mod scopes;

#[cfg(test)]
mod tests;

use crate::syntax::CodeFile;
use std::collections::{BTreeMap, BTreeSet};

/// Files of one crate of which each leads to all others.
pub(crate) struct FileCircle {
    /// Paths of the files.
    pub(crate) files: Vec<String>,
    /// Names that lead from one to another.
    pub(crate) links: Vec<FileLink>,
}

/// One file names what another defines.
#[derive(Clone)]
pub(crate) struct FileLink {
    pub(crate) from: String,
    /// The first line that does so.
    pub(crate) line: usize,
    pub(crate) to: String,
    /// Path that this line names.
    pub(crate) path: String,
    /// Number of times that the file names the other.
    pub(crate) times: usize,
}

type FileGraph = BTreeMap<usize, BTreeMap<usize, FileLink>>;

/// The circles of each crate.
pub(crate) fn find<'a>(code: impl IntoIterator<Item = &'a CodeFile>) -> Vec<FileCircle> {
    let mut by_target: BTreeMap<&str, Vec<&CodeFile>> = BTreeMap::new();
    for file in code {
        by_target.entry(&file.target).or_default().push(file);
    }
    by_target.values().flat_map(|files| of_target(files)).collect()
}

/// Complains about each circle.
pub(crate) fn check(code: &[CodeFile]) -> Vec<String> {
    let circles = find(code);
    circles
        .iter()
        .map(|circle| {
            let links: Vec<String> = circle.links.iter().map(describe).collect();
            format!(
                "{}:{}: a circle of {} files, expected an order in which they can be read; move what several \
                 need into a file of its own:\n    {}",
                circle.links[0].from,
                circle.links[0].line,
                circle.files.len(),
                links.join("\n    ")
            )
        })
        .collect()
}

/// One link as a line.
pub(crate) fn describe(link: &FileLink) -> String {
    let more = if link.times > 1 { format!(" and {} more", link.times - 1) } else { String::new() };
    format!("{}:{} → {} ({}{more})", link.from, link.line, link.to, link.path)
}

fn of_target(files: &[&CodeFile]) -> Vec<FileCircle> {
    let graph = graph(files);
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(|file| reached(&graph, file)).collect();
    let mut found = Vec::new();
    for file in 0..files.len() {
        let together: Vec<usize> =
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect();
        if together.len() > 1 && together[0] == file {
            found.push(circle(files, &graph, &together));
        }
    }
    found
}

fn graph(files: &[&CodeFile]) -> FileGraph {
    let scopes = scopes::Scopes::new(files);
    let mut graph = FileGraph::new();
    for (number, file) in files.iter().enumerate() {
        for naming in edges::of_file(number, file, &scopes) {
            let link = graph.entry(naming.from).or_default().entry(naming.to).or_insert_with(|| FileLink {
                from: file.path.clone(),
                line: naming.line,
                to: files[naming.to].path.clone(),
                path: naming.path,
                times: 0,
            });
            link.times += 1;
        }
    }
    graph
}

/// Returns the files that a file leads to; itself only through others.
fn reached(graph: &FileGraph, from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for &next in graph.get(&file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

fn circle(files: &[&CodeFile], graph: &FileGraph, together: &[usize]) -> FileCircle {
    let mut links = Vec::new();
    for from in together {
        for (to, link) in graph.get(from).into_iter().flatten() {
            if together.contains(to) {
                links.push(link.clone());
            }
        }
    }
    FileCircle { files: together.iter().map(|&file| files[file].path.clone()).collect(), links }
}
