//! The files of the guest in the format of the kernel: a cpio archive ("newc") with the first program,
//! others, and the libraries that they load.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// The folder of the modules that the first program loads.
pub(super) const MODULES: &str = "/modules";

/// The part of an archive with modules of the kernel, in the order of their names, and the parameters of each beside it.
pub(super) fn with_modules(files: &[PathBuf], modules: &[&str]) -> Vec<u8> {
    let mut archive = Vec::new();
    if !files.is_empty() {
        put(&mut archive, Path::new(MODULES), FOLDER, &[]);
    }
    for (number, (file, module)) in files.iter().zip(modules).enumerate() {
        let parameters = module.split_once(' ').map_or("", |(_, parameters)| parameters);
        let is_compressed = file.extension().is_some_and(|ending| ending == "xz");
        let ending = if is_compressed { "ko.xz" } else { "ko" };
        let place = |ending: &str| PathBuf::from(format!("{MODULES}/{number:02}.{ending}"));
        put(&mut archive, &place(ending), PROGRAM, &read(file));
        put(&mut archive, &place("parameters"), PROGRAM, parameters.as_bytes());
    }
    archive
}

/// Returns an archive that starts with `begun` and has this program as `/init` and the others at their
/// paths.
pub(super) fn with_first_program(program: &Path, others: &[PathBuf], begun: Vec<u8>) -> Vec<u8> {
    let mut files = libraries(program);
    for other in others {
        files.extend(libraries(other));
        files.insert(other.clone());
    }
    let above = files.iter().flat_map(|library| library.ancestors().skip(1));
    let mut folders: BTreeSet<&Path> = above.filter(|folder| *folder != Path::new("/")).collect();
    folders.extend(["/proc", "/sys", "/dev"].map(Path::new));
    let mut archive = begun;
    for folder in folders {
        put(&mut archive, folder, FOLDER, &[]);
    }
    put(&mut archive, Path::new("/init"), PROGRAM, &without_debug_info(program));
    for file in &files {
        put(&mut archive, file, PROGRAM, &without_debug_info(file));
    }
    put(&mut archive, Path::new("TRAILER!!!"), 0, &[]);
    archive
}

/// The files that the dynamic linker would load, itself included.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd belongs to the C library");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Returns the bytes of a program without debug information: that is most of a test program, and the
/// guest would keep it in memory. The file is left as it is without `strip`, or if `strip` refuses it.
fn without_debug_info(program: &Path) -> Vec<u8> {
    let stripped = NamedTempFile::new().expect("a temporary file");
    let status = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .args([stripped.path(), program])
        .stderr(Stdio::null())
        .status();
    let is_stripped = status.is_ok_and(|status| status.success());
    read(if is_stripped { stripped.path() } else { program })
}

fn put(archive: &mut Vec<u8>, path: &Path, mode: u32, data: &[u8]) {
    let name = path.to_str().expect("names are text").trim_start_matches('/');
    // Inode, mode, uid, gid, links, time, size, four device numbers, length of the name with its zero,
    // checksum.
    let number = archive.len();
    let fields = [number, mode as usize, 0, 0, 1, 0, data.len(), 0, 0, 0, 0, name.len() + 1, 0];
    archive.extend(b"070701");
    fields.iter().for_each(|field| archive.extend(format!("{field:08x}").bytes()));
    archive.extend(name.bytes().chain([0]));
    fill(archive);
    archive.extend(data);
    fill(archive);
}

/// Pads the archive to a multiple of four bytes.
fn fill(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
