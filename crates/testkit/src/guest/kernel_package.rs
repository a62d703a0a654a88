//! The guest's kernel: Debian's, a version that is pinned by its digest, fetched by apt from the archive that this machine uses.
//!
//! apt has folders of its own for this, so that the machine's lists and packages stay as they are. Suites move on: when
//! the pinned version is gone, the message says which there is, and the constants here are to be changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel of Debian for guests.
#[derive(Debug)]
pub struct GuestKernel {
    /// The package with the kernel's image.
    package: &'static str,
    version: &'static str,
    sha256: &'static str,
    /// The image in the package.
    image: &'static str,
    suite: &'static str,
}

impl GuestKernel {
    /// Linux 6.1, of Debian 12.
    pub const DEBIAN_12: Self = Self {
        package: "linux-image-6.1.0-50-cloud-amd64",
        version: "6.1.176-1",
        sha256: "efe19f605b6f54a8352e68d85a629abb2d30b72a085faef603a9152590baa791",
        image: "boot/vmlinuz-6.1.0-50-cloud-amd64",
        suite: "bookworm",
    };
    /// Linux 6.12, of Debian 13.
    pub const DEBIAN_13: Self = Self {
        package: "linux-image-6.12.117+deb13-cloud-amd64",
        version: "6.12.117-1",
        sha256: "e9893e5295d0549b8852611f12a4b8b5f6cc4b8128dcc2086b9847793b904ab7",
        image: "boot/vmlinuz-6.12.117+deb13-cloud-amd64",
        suite: "trixie",
    };
    /// Linux 7.3, of the backports of Debian 13.
    pub const DEBIAN_13_BACKPORTS: Self = Self {
        package: "linux-binary-7.3.4+deb13-cloud-amd64",
        version: "7.3.4-1~bpo13+1",
        sha256: "c4fbc8e404958693b28825474c20742d70594d65ca58aea7be6a279c81eb6fa0",
        image: "usr/lib/modules/7.3.4+deb13-cloud-amd64/vmlinuz",
        suite: "trixie-backports",
    };
}

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// The kernel's image, from an earlier run with the same cache or from the archive.
///
/// # Errors
/// Says in words why it cannot be had.
pub(super) fn image(kernel: &GuestKernel, cache: &Path) -> Result<PathBuf, String> {
    let folder = cache.join(format!("{}_{}", kernel.package, kernel.version));
    let (image, package) = (folder.join("files").join(kernel.image), folder.join("kernel.deb"));
    // The package is what has a digest; it is unpacked anew, so that nothing half-done stays.
    if !package.is_file() {
        fetch(kernel, &folder, &package)?;
    }
    check(kernel, &package)?;
    let files = folder.join("files");
    let _ = fs::remove_dir_all(&files);
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(&package).arg(&files);
    run(&mut unpack)?;
    if image.is_file() { Ok(image) } else { Err(format!("{} has no {}", kernel.package, kernel.image)) }
}

fn fetch(kernel: &GuestKernel, folder: &Path, package: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let private = folder.join("apt");
    for name in ["lists/partial", "cache/archives/partial", "download"] {
        fs::create_dir_all(private.join(name)).map_err(failed)?;
    }
    let source = format!("deb [signed-by={KEYS}] {ARCHIVE} {} main\n", kernel.suite);
    fs::write(private.join("sources.list"), source).map_err(failed)?;
    run(apt("apt-get", &private).arg("update"))
        .map_err(|error| format!("the archive cannot be reached: {error}"))?;
    let mut download = apt("apt-get", &private);
    let pinned = format!("{}={}", kernel.package, kernel.version);
    download.arg("download").arg(pinned).current_dir(private.join("download"));
    run(&mut download).map_err(|error| format!("{error}; {}", what_there_is(kernel, &private)))?;
    let downloaded = fs::read_dir(private.join("download")).map_err(failed)?.filter_map(Result::ok);
    let downloaded = downloaded.map(|entry| entry.path()).next().ok_or("apt downloaded nothing")?;
    check(kernel, &downloaded)?;
    fs::rename(&downloaded, package).map_err(failed)
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

/// What the archive has instead of the pinned version.
fn what_there_is(kernel: &GuestKernel, private: &Path) -> String {
    let output = apt("apt-cache", private).args(["policy", "linux-image-cloud-amd64"]).output();
    let output =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let newest = output.lines().find_map(|line| line.trim().strip_prefix("Candidate: ").map(str::to_owned));
    format!(
        "{} is pinned in crates/testkit/src/guest/kernel_package.rs, and {} has {}",
        kernel.version,
        kernel.suite,
        newest.unwrap_or_else(|| "nothing".to_owned())
    )
}

/// What was fetched is what was tried when it was pinned.
fn check(kernel: &GuestKernel, package: &Path) -> Result<(), String> {
    let said = run(Command::new("sha256sum").arg(package))?;
    let found = said.split_whitespace().next().unwrap_or_default();
    if found == kernel.sha256 {
        Ok(())
    } else {
        Err(format!("{}: expected SHA256 {}, found {found}", package.display(), kernel.sha256))
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
