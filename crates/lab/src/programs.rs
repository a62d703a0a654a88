//! Programs that a lab runs, and where they come from.

use enforce::command::Fault;
use std::path::PathBuf;

/// Names of programs and the Debian packages that have them.
pub const PROGRAMS: [(&str, &str); 11] = [
    ("chrt", "util-linux"),
    ("ganesha.nfsd", "nfs-ganesha-vfs"),
    ("ip", "iproute2"),
    ("memcached", "memcached"),
    ("mount", "mount"),
    ("nbdkit", "nbdkit"),
    ("nginx", "nginx-light"),
    ("rpcbind", "rpcbind"),
    ("setpriv", "util-linux"),
    ("sh", "dash"),
    ("unshare", "util-linux"),
];

/// Where one of [`PROGRAMS`] is.
///
/// # Errors
/// When it is not installed: with the package that has it.
///
/// # Panics
/// With the name of another program.
pub fn find(name: &str) -> Result<PathBuf, Fault> {
    let listed = PROGRAMS.iter().find(|(program, _)| *program == name);
    let (_, package) = listed.expect("programs stand in the list");
    let searched = std::env::var_os("PATH").unwrap_or_default();
    // Servers stand where an ordinary user's path does not lead.
    let folders = std::env::split_paths(&searched).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        Fault::machine(
            format_args!("{name} is not installed"),
            format_args!("install the Debian package {package}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there() {
        assert!(find("sh").is_ok_and(|path| path.is_absolute()));
        if let Err(fault) = find("nginx") {
            assert!(fault.hint.contains("nginx-light"), "{fault}");
        }
    }
}
