//! The guest's kernel: a Debian version that is pinned by its digest, fetched by apt from the archive of
//! this machine.
//!
//! apt has folders of its own for this, so that the machine's lists and packages stay as they are. Suites
//! move on: once the pinned version is gone, the message names the available one, and the constants here
//! have to be changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package with a known digest.
#[derive(Debug)]
struct PinnedPackage {
    name: &'static str,
    version: &'static str,
    sha256: &'static str,
}

/// A kernel of Debian for guests.
#[derive(Debug)]
pub struct GuestKernel {
    /// The package with the kernel's image.
    package: PinnedPackage,
    /// The package with the kernel's modules, where the first one does not have them.
    module_package: Option<PinnedPackage>,
    /// The image in its package.
    image: &'static str,
    /// The folder of the modules in theirs.
    modules: &'static str,
    suite: &'static str,
}

impl GuestKernel {
    /// Linux 6.1, of Debian 12.
    pub const DEBIAN_12: Self = Self {
        package: PinnedPackage {
            name: "linux-image-6.1.0-50-cloud-amd64",
            version: "6.1.176-1",
            sha256: "efe19f605b6f54a8352e68d85a629abb2d30b72a085faef603a9152590baa791",
        },
        module_package: None,
        image: "boot/vmlinuz-6.1.0-50-cloud-amd64",
        modules: "lib/modules/6.1.0-50-cloud-amd64/kernel",
        suite: "bookworm",
    };
    /// Linux 6.12, of Debian 13.
    pub const DEBIAN_13: Self = Self {
        package: PinnedPackage {
            name: "linux-image-6.12.117+deb13-cloud-amd64",
            version: "6.12.117-1",
            sha256: "e9893e5295d0549b8852611f12a4b8b5f6cc4b8128dcc2086b9847793b904ab7",
        },
        module_package: None,
        image: "boot/vmlinuz-6.12.117+deb13-cloud-amd64",
        modules: "usr/lib/modules/6.12.117+deb13-cloud-amd64/kernel",
        suite: "trixie",
    };
    /// Linux 7.3, of the backports of Debian 13.
    pub const DEBIAN_13_BACKPORTS: Self = Self {
        package: PinnedPackage {
            name: "linux-binary-7.3.4+deb13-cloud-amd64",
            version: "7.3.4-1~bpo13+1",
            sha256: "c4fbc8e404958693b28825474c20742d70594d65ca58aea7be6a279c81eb6fa0",
        },
        module_package: Some(PinnedPackage {
            name: "linux-modules-7.3.4+deb13-cloud-amd64",
            version: "7.3.4-1~bpo13+1",
            sha256: "359f04c363b7d3c5f9ce999ccb7351e00cc8eec0a30d6bc1cda37734987fc43d",
        }),
        image: "usr/lib/modules/7.3.4+deb13-cloud-amd64/vmlinuz",
        modules: "usr/lib/modules/7.3.4+deb13-cloud-amd64/kernel",
        suite: "trixie-backports",
    };
}

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// Returns the kernel's image and the files of these modules, such as `fs/nfsd/nfsd`, from the cache of
/// an earlier run or from the archive.
///
/// # Errors
/// The reason as a message, if they are not available.
pub(super) fn image_and_modules(
    kernel: &GuestKernel,
    modules: &[&str],
    cache: &Path,
) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let files = unpacked(&kernel.package, kernel.suite, cache)?;
    let image = files.join(kernel.image);
    if !image.is_file() {
        return Err(format!("{} has no {}", kernel.package.name, kernel.image));
    }
    if modules.is_empty() {
        return Ok((image, Vec::new()));
    }
    let files = match &kernel.module_package {
        Some(package) => unpacked(package, kernel.suite, cache)?,
        None => files,
    };
    let folder = files.join(kernel.modules);
    let find = |name: &&str| {
        let found = ["ko", "ko.xz"].map(|ending| folder.join(format!("{name}.{ending}")));
        found
            .into_iter()
            .find(|file| file.is_file())
            .ok_or_else(|| format!("the kernel has no module {name}"))
    };
    Ok((image, modules.iter().map(find).collect::<Result<_, String>>()?))
}

/// The folder with the files of a package.
fn unpacked(package: &PinnedPackage, suite: &str, cache: &Path) -> Result<PathBuf, String> {
    let folder = cache.join(format!("{}_{}", package.name, package.version));
    let archive = folder.join("kernel.deb");
    // The package is what has a digest; it is unpacked anew, so that nothing half-done stays.
    if !archive.is_file() {
        fetch(package, suite, &folder, &archive)?;
    }
    check(package, &archive)?;
    let files = folder.join("files");
    let _ = fs::remove_dir_all(&files);
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&files))?;
    Ok(files)
}

fn fetch(package: &PinnedPackage, suite: &str, folder: &Path, archive: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let private = folder.join("apt");
    for name in ["lists/partial", "cache/archives/partial", "download"] {
        fs::create_dir_all(private.join(name)).map_err(failed)?;
    }
    let source = format!("deb [signed-by={KEYS}] {ARCHIVE} {suite} main\n");
    fs::write(private.join("sources.list"), source).map_err(failed)?;
    run(apt("apt-get", &private).arg("update"))
        .map_err(|error| format!("the archive cannot be reached: {error}"))?;
    let mut download = apt("apt-get", &private);
    let pinned = format!("{}={}", package.name, package.version);
    download.arg("download").arg(pinned).current_dir(private.join("download"));
    run(&mut download).map_err(|error| format!("{error}; {}", what_there_is(package, suite, &private)))?;
    let downloaded = fs::read_dir(private.join("download")).map_err(failed)?.filter_map(Result::ok);
    let downloaded = downloaded.map(|entry| entry.path()).next().ok_or("apt downloaded nothing")?;
    check(package, &downloaded)?;
    fs::rename(&downloaded, archive).map_err(failed)
}

/// A program of apt with folders of its own.
fn apt(program: &str, private: &Path) -> Command {
    let mut command = Command::new(program);
    for (option, place) in [
        ("Dir::Etc::sourcelist", private.join("sources.list")),
        ("Dir::Etc::sourceparts", PathBuf::from("/dev/null")),
        ("Dir::State::lists", private.join("lists")),
        ("Dir::Cache", private.join("cache")),
    ] {
        command.arg("-o").arg(format!("{option}={}", place.display()));
    }
    command.args([
        "-o",
        "APT::Architecture=amd64",
        "-o",
        "Acquire::Retries=2",
        "-o",
        "Acquire::http::Timeout=20",
    ]);
    command
}

/// Describes the version in the archive that replaces the pinned one.
fn what_there_is(package: &PinnedPackage, suite: &str, private: &Path) -> String {
    let output = apt("apt-cache", private).args(["policy", "linux-image-cloud-amd64"]).output();
    let output =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let newest = output.lines().find_map(|line| line.trim().strip_prefix("Candidate: ").map(str::to_owned));
    format!(
        "{} is pinned in tools/testkit/src/guest/kernel_package.rs, and {suite} has {}",
        package.version,
        newest.unwrap_or_else(|| "nothing".to_owned())
    )
}

/// Checks that the fetched package is the one that was tested when it was pinned.
fn check(package: &PinnedPackage, archive: &Path) -> Result<(), String> {
    let said = run(Command::new("sha256sum").arg(archive))?;
    let found = said.split_whitespace().next().unwrap_or_default();
    if found == package.sha256 {
        Ok(())
    } else {
        Err(format!("{}: expected SHA256 {}, found {found}", archive.display(), package.sha256))
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown}: {}: {}", output.status, said.trim().lines().last().unwrap_or_default()))
}
