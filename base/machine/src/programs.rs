//! Programs of the system that are run, and the Debian packages that have them.

use std::path::PathBuf;

/// A program and its package, a line each: those of all tests, and those of tests of `schedule/bindings/`.
const PROGRAMS: [&str; 2] =
    [include_str!("../../../programs.txt"), include_str!("../../../schedule/bindings/programs.txt")];

/// The Debian package that has a program; `None` for programs that are not in the lists.
pub fn package(program: &str) -> Option<&'static str> {
    let mut listed = PROGRAMS.iter().flat_map(|list| list.lines()).filter_map(|line| line.split_once(' '));
    listed.find(|(name, _)| *name == program).map(|(_, package)| package)
}

/// Returns the path of a program, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    // Servers stand where an ordinary user's path does not lead.
    let folders = std::env::split_paths(&searched).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
