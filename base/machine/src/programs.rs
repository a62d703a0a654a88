//! External programs, and the Debian packages that contain them.

use std::path::PathBuf;

/// Lists of a program and its package per line: those of all tests, and those of the tests of
/// `schedule/bindings/`.
const PROGRAMS: [&str; 2] =
    [include_str!("../../../programs.txt"), include_str!("../../../schedule/bindings/programs.txt")];

/// Returns the Debian package of a program; `None` if it is not in the lists.
pub fn package(program: &str) -> Option<&'static str> {
    let mut listed = PROGRAMS.iter().flat_map(|list| list.lines()).filter_map(|line| line.split_once(' '));
    listed.find(|(name, _)| *name == program).map(|(_, package)| package)
}

/// Returns the path of a program, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    // Daemons are often in sbin, which is not in an ordinary user's PATH.
    let folders = std::env::split_paths(&searched).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
