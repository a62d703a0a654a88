//! `cargo xtask release`: a static binary, a Debian package, an archive, a list of parts and checksums, and the wheel of
//! the Python package where maturin is installed.
//!
//! The same tree gives the same bits from any folder: paths are remapped, times are that of the last commit, owners are
//! root, and files are added in the order of their names. The package is made by `dpkg-deb`, which is on every Debian
//! machine, so that nothing has to be installed. The binary is linked statically with musl where that target is
//! installed, else with glibc; the command says which.
//!
//! The wheel links the C library of this machine, whose version its name says (manylinux); a machine with an older one
//! refuses it.
//!
//! Not covered: signatures, and packages for other distributions.

use crate::workspace::root;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Target of the static binary where the standard library for it is installed.
const MUSL: &str = "x86_64-unknown-linux-musl";
/// Target otherwise.
const GLIBC: &str = "x86_64-unknown-linux-gnu";
/// Name and architecture of the package.
const NAME: &str = "tailwright";
const ARCHITECTURE: &str = "amd64";

const DESCRIPTION: &str = "Description: explain, predict, guarantee and enforce the tail of latency
 Tailwright plans which workloads share a storage server so that each keeps the
 tail of its latency, enforces the plan on the network and at the storage,
 observes where requests of live servers spend their time, and audits the limits
 that other programs enforce.
";

/// A file of the package: its place, its source, and whether it can be run.
struct PackagedFile {
    place: String,
    content: Vec<u8>,
    mode: u32,
}

/// Builds the binary and packages it in `folder`, with the wheel.
pub(crate) fn run(folder: &Path) -> Result<(), String> {
    let binary = build()?;
    package(&binary, folder)?;
    wheel(folder)
}

/// Builds the wheel of the Python package, and adds its checksum to the others. Without maturin, says how to get it.
fn wheel(folder: &Path) -> Result<(), String> {
    if !Command::new("maturin").arg("--version").output().is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED the wheel: there is no maturin (pip install maturin)");
        return Ok(());
    }
    let time = commit_time()?;
    // One of an earlier version may be there.
    shell(folder, &time, "rm -f tailwright-*.whl", &[])?;
    let manifest = root().join("reach/python/Cargo.toml");
    let status = Command::new("maturin")
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--out")
        .arg(folder)
        .env("SOURCE_DATE_EPOCH", &time)
        .status()
        .map_err(|error| format!("maturin: {error}"))?;
    if !status.success() {
        return Err(format!("maturin build: {status}"));
    }
    shell(folder, &time, "sha256sum tailwright-*.whl | tee -a SHA256SUMS", &[])
}

/// Packages a binary that is there.
pub(crate) fn package(binary: &Path, folder: &Path) -> Result<(), String> {
    let version = version()?;
    let time = commit_time()?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tree = folder.join("tree");
    // A run before may have left one.
    let _ = fs::remove_dir_all(&tree);
    let mut files = files(binary, &folder.join("made"))?;
    files.sort_by(|a, b| a.place.cmp(&b.place));
    for file in &files {
        write(&tree.join(&file.place), &file.content, file.mode)?;
    }
    let installed: usize = files.iter().map(|file| file.content.len()).sum();
    write(&tree.join("DEBIAN/control"), control(&version, installed).as_bytes(), 0o644)?;
    let package = format!("{NAME}_{version}_{ARCHITECTURE}.deb");
    let archive = format!("{NAME}-{version}-x86_64-linux.tar.gz");
    let parts = format!("{NAME}-{version}.spdx");
    let time = time.as_str();
    shell(
        folder,
        time,
        "chmod -R u=rwX,go=rX tree && find tree -exec touch -h -d \"@$SOURCE_DATE_EPOCH\" {} + && \
         dpkg-deb --root-owner-group --uniform-compression -Zxz --build tree \"$1\" >/dev/null",
        &[&package],
    )?;
    shell(
        folder,
        time,
        "rm -rf tree/DEBIAN && tar -C tree --sort=name --owner=0 --group=0 --numeric-owner --mtime=\"@$SOURCE_DATE_EPOCH\" \
         -cf - . | gzip -9n > \"$1\" && rm -rf tree made",
        &[&archive],
    )?;
    fs::write(folder.join(&parts), parts_list(&version)?).map_err(|error| format!("{parts}: {error}"))?;
    shell(folder, time, "sha256sum \"$@\" > SHA256SUMS && cat SHA256SUMS", &[&package, &archive, &parts])
}

/// Builds the static binary; returns its path.
fn build() -> Result<PathBuf, String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let has_musl = Path::new(sysroot.trim()).join("lib/rustlib").join(MUSL).is_dir();
    let target = if has_musl { MUSL } else { GLIBC };
    let library = if has_musl { "musl" } else { "glibc (the target of musl is not installed)" };
    eprintln!("building for {target}, linked statically with {library}");
    let root = root();
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let home = home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())?;
    let root_name = root.display().to_string();
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Cstrip=symbols".to_owned(),
        format!("--remap-path-prefix={root_name}=/tailwright"),
        format!("--remap-path-prefix={home}=/cargo"),
        format!("--remap-path-prefix={}=/rust", sysroot.trim()),
    ];
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "-p", NAME, "--target", target])
        .current_dir(&root)
        // The separator lets a path have blanks.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CFLAGS", format!("-ffile-prefix-map={home}=/cargo -ffile-prefix-map={root_name}=/tailwright"))
        .env("SOURCE_DATE_EPOCH", commit_time()?)
        .status()
        .map_err(|error| format!("cargo build: {error}"))?;
    if !status.success() {
        return Err(format!("cargo build: {status}"));
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(folder.join(target).join("release").join(NAME))
}

/// Returns all files of the package. Man pages and completions come from the binary itself, by way of `made`.
fn files(binary: &Path, made: &Path) -> Result<Vec<PackagedFile>, String> {
    let root = root();
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut files =
        vec![PackagedFile { place: format!("usr/bin/{NAME}"), content: read(binary)?, mode: 0o755 }];
    let mut add = |place: String, content: Vec<u8>| files.push(PackagedFile { place, content, mode: 0o644 });
    output(Command::new(binary).arg("man").arg(made))?;
    for page in sorted(made)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        add(format!("usr/share/man/man1/{name}.gz"), compressed(&page)?);
    }
    for (shell, place) in [
        ("bash", format!("usr/share/bash-completion/completions/{NAME}")),
        ("zsh", format!("usr/share/zsh/vendor-completions/_{NAME}")),
        ("fish", format!("usr/share/fish/vendor_completions.d/{NAME}.fish")),
    ] {
        add(place, output(Command::new(binary).args(["completions", shell]))?.into_bytes());
    }
    for unit in sorted(&root.join("examples/systemd"))? {
        let name = unit.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The examples are for a program that an administrator installed.
        let text = String::from_utf8_lossy(&read(&unit)?).replace("/usr/local/bin/", "/usr/bin/");
        add(format!("usr/lib/systemd/system/{name}"), text.into_bytes());
    }
    let licences = [read(&root.join("LICENSE-APACHE"))?, read(&root.join("LICENSE-MIT"))?];
    let heading = "Tailwright is licensed under Apache-2.0 or MIT, as the user chooses.\n\n".as_bytes();
    add(format!("usr/share/doc/{NAME}/copyright"), [heading, &licences[0], b"\n", &licences[1]].concat());
    add(format!("usr/share/doc/{NAME}/README.md"), read(&root.join("README.md"))?);
    add(format!("usr/share/doc/{NAME}/changelog.gz"), compressed(&root.join("CHANGELOG.md"))?);
    Ok(files)
}

/// Returns the files of a folder by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

/// Returns a file as gzip writes it without name and time.
fn compressed(path: &Path) -> Result<Vec<u8>, String> {
    let done =
        Command::new("gzip").args(["-9nc"]).arg(path).output().map_err(|error| format!("gzip: {error}"))?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("gzip: {}", done.status)) }
}

fn control(version: &str, installed_bytes: usize) -> String {
    format!(
        "Package: {NAME}\nVersion: {version}\nSection: admin\nPriority: optional\nArchitecture: {ARCHITECTURE}\n\
         Installed-Size: {}\nMaintainer: The Tailwright developers <tailwright@localhost>\n\
         Recommends: iproute2, nftables\n{DESCRIPTION}",
        installed_bytes.div_ceil(1024)
    )
}

/// Returns the version of the workspace.
fn version() -> Result<String, String> {
    let manifest =
        fs::read_to_string(root().join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml: expected a version of the workspace".to_owned())
}

/// Returns the time that all files get, seconds: SOURCE_DATE_EPOCH, or the time of the last commit.
fn commit_time() -> Result<String, String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))
        .map_err(|error| format!("{error}; outside a clone of git, set SOURCE_DATE_EPOCH"))?;
    Ok(time.trim().to_owned())
}

/// Returns the list of parts (SPDX 2.3, tags and values): every crate that the binary is made of, with its licence and
/// checksum.
fn parts_list(version: &str) -> Result<String, String> {
    let tree = output(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["tree", "--locked", "-p", NAME, "-e", "normal", "--prefix", "none", "--format", "{p}|{l}"])
            .current_dir(root()),
    )?;
    let lock =
        fs::read_to_string(root().join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let mut parts: Vec<(&str, &str, &str)> = tree.lines().filter_map(part).collect();
    parts.sort_unstable();
    parts.dedup();
    let mut text = format!(
        "SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\nSPDXID: SPDXRef-DOCUMENT\nDocumentName: {NAME}-{version}\n\
         DocumentNamespace: https://tailwright.invalid/spdx/{NAME}-{version}\nCreator: Tool: cargo-xtask-release\n"
    );
    for (name, version, licence) in parts {
        let licence = if licence.is_empty() { "NOASSERTION" } else { &licence.replace('/', " OR ") };
        let _ = write!(
            text,
            "\nPackageName: {name}\nSPDXID: SPDXRef-{}-{}\nPackageVersion: {version}\n\
             PackageDownloadLocation: NOASSERTION\nPackageLicenseDeclared: {licence}\n",
            name.replace('_', "-"),
            version.replace(['+', '_'], "-")
        );
        if let Some(checksum) = checksum(&lock, name, version) {
            let _ = writeln!(text, "PackageChecksum: SHA256: {checksum}");
        }
    }
    Ok(text)
}

/// Splits `name v1.2.3 (place)|licence` into name, version and licence.
fn part(line: &str) -> Option<(&str, &str, &str)> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?, licence.trim_end_matches(" (*)")))
}

/// Returns the checksum of a crate in Cargo.lock; crates of the workspace have none.
fn checksum<'a>(lock: &'a str, name: &str, version: &str) -> Option<&'a str> {
    let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let entry = lock.split("[[package]]\n").find(|entry| entry.starts_with(&head))?;
    entry.lines().find_map(|line| line.strip_prefix("checksum = \"")?.strip_suffix('"'))
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), String> {
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(named)?;
    fs::write(path, content).map_err(named)?;
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(named)
}

fn shell(folder: &Path, time: &str, script: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-euc", script, "sh"]).args(args).current_dir(folder);
    command.env("SOURCE_DATE_EPOCH", time).env("LC_ALL", "C");
    let status = command.status().map_err(|error| format!("sh: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{script}: {status}")) }
}

fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{shown}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr)));
    }
    String::from_utf8(done.stdout).map_err(|error| format!("{shown}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_name_version_and_licence() {
        assert_eq!(part("serde v1.0.1|MIT OR Apache-2.0 (*)"), Some(("serde", "1.0.1", "MIT OR Apache-2.0")));
        assert_eq!(part("units v0.1.0 (/a/base/units)|MIT"), Some(("units", "0.1.0", "MIT")));
        assert_eq!(part(""), None);
    }

    #[test]
    fn checksums_are_those_of_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1\"\nchecksum = \"ff\"\n\n[[package]]\nname = \"b\"\nversion = \"1\"\n";
        assert_eq!(checksum(lock, "a", "1"), Some("ff"));
        assert_eq!((checksum(lock, "b", "1"), checksum(lock, "a", "2")), (None, None));
    }

    /// A program that writes one manual page and its completions, as the real one does.
    const STUB: &str = "#!/bin/sh\ncase $1 in\nman) mkdir -p \"$2\"; echo page > \"$2/tailwright.1\" ;;\n\
                        completions) echo \"# $2\" ;;\n--version) echo tailwright 9 ;;\nesac\n";

    #[test]
    fn the_package_is_the_same_from_two_folders_and_runs_where_it_is_unpacked() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            eprintln!("SKIPPED there is no dpkg-deb");
            return;
        }
        let base = std::env::temp_dir().join(format!("tailwright-release-{}", std::process::id()));
        let stub = base.join("stub");
        write(&stub, STUB.as_bytes(), 0o755).expect("the folder is ours");
        let names =
            [format!("{NAME}_{}_{ARCHITECTURE}.deb", version().expect("a version")), "SHA256SUMS".to_owned()];
        let mut contents = Vec::new();
        for folder in ["a", "longer/folder"] {
            package(&stub, &base.join(folder)).expect("it is packaged");
            contents.push(
                names.each_ref().map(|name| fs::read(base.join(folder).join(name)).expect("it is there")),
            );
        }
        assert!(contents[0] == contents[1], "the same tree gives the same bits");
        let unpacked = base.join("unpacked");
        output(Command::new("dpkg-deb").arg("-x").arg(base.join("a").join(&names[0])).arg(&unpacked))
            .expect("a package");
        assert_eq!(
            output(Command::new(unpacked.join("usr/bin/tailwright")).arg("--version")),
            Ok("tailwright 9\n".into())
        );
        let page = unpacked.join("usr/share/man/man1/tailwright.1.gz");
        assert_eq!(output(Command::new("gzip").arg("-dc").arg(page)), Ok("page\n".into()));
        for (place, text) in [
            ("bash-completion/completions/tailwright", "# bash\n"),
            ("zsh/vendor-completions/_tailwright", "# zsh\n"),
        ] {
            assert_eq!(
                fs::read_to_string(unpacked.join("usr/share").join(place)).expect("it is there"),
                text
            );
        }
        let unit = fs::read_to_string(unpacked.join("usr/lib/systemd/system/tailwright-observe.service"))
            .expect("a unit");
        assert!(unit.contains("ExecStart=/usr/bin/tailwright observe"), "{unit}");
        fs::remove_dir_all(&base).expect("the folder is ours");
    }
}
