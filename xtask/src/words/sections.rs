//! The sections of the report and the summary that closes it. Each section prints its places and returns
//! its lines of the summary.

use super::{error_types, functions};
use crate::syntax::CodeFile;
use crate::tidy::{allowances, circles, closures, doc_blocks, headers, type_names};

/// What the report is about.
pub(super) struct ReportScope {
    /// All code, that of other crates too.
    pub(super) code: Vec<CodeFile>,
    /// The names of crates, or none for all.
    pub(super) chosen: Vec<String>,
    /// Whether doc comments are printed and not only counted.
    pub(super) list: bool,
}

/// Lines of the summary: what is measured, and the figure.
type SummaryLines = Vec<(&'static str, String)>;

impl ReportScope {
    fn has(&self, file: &CodeFile) -> bool {
        self.chosen.is_empty() || self.chosen.contains(&file.krate)
    }

    fn files(&self) -> impl Iterator<Item = &CodeFile> {
        self.code.iter().filter(|file| self.has(file))
    }

    fn lines(&self) -> usize {
        self.files().map(|file| file.lines).sum()
    }
}

/// Prints the sections and the summary.
pub(super) fn print(scope: &ReportScope, chain: &[&str]) {
    let mut figures = vec![
        ("files", scope.files().count().to_string()),
        ("lines that are not of tests", scope.lines().to_string()),
    ];
    figures.extend(repeated_names(scope));
    figures.extend(errors(scope));
    figures.extend(docs(scope));
    figures.extend(named_closures(scope));
    figures.extend(file_circles(scope));
    figures.extend(without_header(scope));
    figures.extend(crate_chain(chain));
    figures.extend(long_functions(scope));
    figures.extend(silenced(scope));
    println!("\n== summary");
    for (what, figure) in figures {
        println!("{figure:>8}  {what}");
    }
}

fn repeated_names(scope: &ReportScope) -> SummaryLines {
    println!("== type names with more than one definition");
    let mut repeated = type_names::repeated(&scope.code);
    let paths: Vec<&str> = scope.files().map(|file| file.path.as_str()).collect();
    repeated.retain(|name| name.spots.iter().any(|spot| paths.contains(&spot.path.as_str())));
    for name in &repeated {
        let spots: Vec<String> = name.spots.iter().map(ToString::to_string).collect();
        println!("{:>4} {}: {}", name.spots.len(), name.name, spots.join(" "));
    }
    let definitions: usize = repeated.iter().map(|name| name.spots.len()).sum();
    vec![
        ("type names with more than one definition", repeated.len().to_string()),
        ("definitions of these", definitions.to_string()),
    ]
}

fn errors(scope: &ReportScope) -> SummaryLines {
    println!("\n== error types");
    let found: Vec<_> = scope.files().flat_map(error_types::find).collect();
    for (name, spot) in &found {
        println!("{spot}: {name}");
    }
    println!("last words of their names:");
    let endings = error_types::endings(found.iter().map(|(name, _)| name.as_str()));
    for (word, count) in &endings {
        println!("{count:>4} {word}");
    }
    vec![
        ("error types", found.len().to_string()),
        ("different last words of error types", endings.len().to_string()),
    ]
}

fn docs(scope: &ReportScope) -> SummaryLines {
    println!("\n== doc blocks of at most three words, and those that begin with a preposition");
    let blocks: Vec<_> = scope.files().flat_map(doc_blocks::blocks).collect();
    for block in
        blocks.iter().filter(|block| scope.list && (block.is_short() || block.starts_with_preposition()))
    {
        println!("{}: {}", block.spot, block.text);
    }
    if !scope.list {
        println!("(--list or the name of a crate prints them)");
    }
    let short = blocks.iter().filter(|block| block.is_short()).count();
    let bare = blocks.iter().filter(|block| block.starts_with_preposition()).count();
    vec![
        ("doc blocks", blocks.len().to_string()),
        ("doc blocks of at most three words", short.to_string()),
        ("doc blocks that begin with a preposition", bare.to_string()),
    ]
}

fn named_closures(scope: &ReportScope) -> SummaryLines {
    println!("\n== named closures: per 1,000 lines, number, lines, crate");
    let mut names: Vec<&str> = scope.files().map(|file| file.krate.as_str()).collect();
    names.dedup();
    let mut all = 0;
    for name in names {
        let files: Vec<&CodeFile> = scope.files().filter(|file| file.krate == name).collect();
        let count = count_closures(&files);
        let lines: usize = files.iter().map(|file| file.lines).sum();
        println!("{:>6} {count:>5} {lines:>6} {name}", per_thousand(count, lines));
        all += count;
    }
    let functions: Vec<_> = scope.files().flat_map(closures::of_functions).collect();
    let too_many: Vec<_> = functions.iter().filter(|function| function.are_too_many()).collect();
    println!("functions with more than two:");
    for function in &too_many {
        println!("{} {} {}", function.spot, function.function, function.count);
    }
    vec![
        ("named closures", all.to_string()),
        ("named closures per 1,000 lines", per_thousand(all, scope.lines())),
        ("functions with more than two named closures", too_many.len().to_string()),
    ]
}

fn count_closures(files: &[&CodeFile]) -> usize {
    files.iter().flat_map(|file| closures::of_functions(file)).map(|function| function.count).sum()
}

fn per_thousand(count: usize, lines: usize) -> String {
    // In tenths.
    let tenths = (count * 10_000).checked_div(lines).unwrap_or_default();
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn file_circles(scope: &ReportScope) -> SummaryLines {
    println!("\n== circles of files");
    let circles = circles::find(scope.files());
    for circle in &circles {
        println!("{} files: {}", circle.files.len(), circle.files.join(" "));
        for link in &circle.links {
            println!("    {}", circles::describe(link));
        }
    }
    let files: usize = circles.iter().map(|circle| circle.files.len()).sum();
    vec![("circles of files", circles.len().to_string()), ("files in circles", files.to_string())]
}

fn without_header(scope: &ReportScope) -> SummaryLines {
    println!("\n== files without a module header");
    let missing: Vec<&CodeFile> = scope.files().filter(|file| headers::is_missing(file)).collect();
    for file in &missing {
        println!("{}:1", file.path);
    }
    vec![("files without a module header", missing.len().to_string())]
}

fn crate_chain(chain: &[&str]) -> SummaryLines {
    println!("\n== longest chain of crates\n{}", chain.join(" → "));
    vec![("crates in the longest chain", chain.len().to_string())]
}

fn long_functions(scope: &ReportScope) -> SummaryLines {
    println!("\n== functions over {} lines", functions::LINES_MAX);
    let long: Vec<_> = scope.files().flat_map(functions::long).collect();
    for function in &long {
        println!("{} {} {}", function.spot, function.function, function.lines);
    }
    vec![("functions over 60 lines", long.len().to_string())]
}

fn silenced(scope: &ReportScope) -> SummaryLines {
    println!("\n== lints silenced without a reason");
    let silenced: Vec<_> = scope.files().flat_map(allowances::without_reason).collect();
    for spot in &silenced {
        println!("{spot}");
    }
    vec![("lints silenced without a reason", silenced.len().to_string())]
}
