//! Developer commands. The README's test command and CI run `cargo xtask ci`.
//!
//! Its only dependency is a parser of Rust, so that it builds quickly. It depends on none of the crates that it judges,
//! and thus builds when they do not.

mod bench;
mod ci;
mod public;
mod release;
mod report;
mod syntax;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  ci            everything that must hold before a merge: format, tidy, lints, documentation, fuzz
                targets, the README's first command, tests
  ci STEP       one step alone: programs, fmt, tidy, clippy, doc, fuzz, demo, test
  tidy          what compilers do not check: code map, dependency rules, file lengths, references,
                headers, silenced lints, circles of files, limits of style
  tidy --counts the files with most tuple bindings, openings and words for people
  report [FOLDER]
                figures of this tree, or of another checkout: lines, public items, style, pages, crates
  report --unused
                the public items that no other crate, test, benchmark or example names
  release [FOLDER]
                a static binary, a Debian package, an archive, the list of parts and checksums, in
                FOLDER (target/package without one)
  release --binary FILE FOLDER
                the same from a binary that is there
  bench         all benchmarks in release mode; each compares alternatives in the same run
  bench NAME [ARGS]
                one benchmark, with arguments of its own (`bench placement all` adds 10,000 workloads)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["ci"] => ci::all(),
        ["ci", step] => ci::one(step),
        // Cargo's runner of the step `test`.
        ["run-test", program, ref args @ ..] => ci::run_test_program(program, args),
        ["tidy"] => tidy::run(),
        ["tidy", "--counts"] => tidy::print_counts(),
        ["report"] => report::run(&workspace::root()),
        ["report", "--unused"] => report::print_unused(&workspace::root()),
        ["report", folder] => report::run(Path::new(folder)),
        ["release"] => release::run(&workspace::root().join("target/package")),
        ["release", "--binary", binary, folder] => release::package(Path::new(binary), Path::new(folder)),
        ["release", folder] => release::run(Path::new(folder)),
        ["bench"] => bench::run(None, &[]),
        ["bench", name, ref args @ ..] => bench::run(Some(name), args),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("unknown command\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
