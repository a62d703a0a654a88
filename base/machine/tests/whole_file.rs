//! Files that appear whole or not at all: preserved attributes and content, and files that are never
//! replaced.

use machine::whole_file::{self, UnfinishedFolder, WholeFile};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = folder.path().join("file");
    fs::write(&place, "precious").expect("it is ours");
    let mut dropped = WholeFile::create(&place).expect("it can be written");
    dropped.file.write_all(b"half").expect("there is space");
    assert_eq!(fs::read_to_string(&place).expect("it is there"), "precious");
    assert_eq!(names(folder.path()).len(), 2);
    drop(dropped);
    assert_eq!(
        (names(folder.path()), fs::read_to_string(&place).ok()),
        (vec!["file".into()], Some("precious".into()))
    );
    whole_file::write(&place, b"new").expect("it can be written");
    assert_eq!(
        (names(folder.path()), fs::read_to_string(&place).ok()),
        (vec!["file".into()], Some("new".into()))
    );
}

/// `-o /dev/fd/3 3>>log`, directly and through a link: the existing content stays, in the same file.
#[test]
fn what_is_open_is_written_behind_what_is_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    let link = folder.path().join("link");
    fs::write(&log, "precious\n").expect("it is ours");
    let inode = fs::metadata(&log).expect("it is there").ino();
    let open = fs::OpenOptions::new().append(true).open(&log).expect("it is ours");
    let descriptor = format!("/dev/fd/{}", open.as_raw_fd());
    symlink(&descriptor, &link).expect("it is ours");
    for path in [Path::new(&descriptor), &link] {
        whole_file::check(path).expect("it can be written");
        whole_file::write(path, b"result\n").expect("it can be written");
    }
    assert_eq!(fs::read_to_string(&log).expect("it is there"), "precious\nresult\nresult\n");
    assert_eq!(fs::metadata(&log).expect("it is there").ino(), inode);
    assert_eq!(names(folder.path()), ["link", "log"]);
}

#[test]
fn mode_and_links_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = folder.path().join("file");
    let link = folder.path().join("link");
    fs::write(&place, "secret").expect("it is ours");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("file", &link).expect("it is ours");
    whole_file::check(&link).expect("it can be written");
    whole_file::write(&link, b"new secret").expect("it can be written");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(fs::read_to_string(&place).expect("it is there"), "new secret");
    assert_eq!(fs::metadata(&place).expect("it is there").mode() & 0o7777, 0o600);
    // A dangling link: the file is created at its target.
    let dangling = folder.path().join("dangling");
    symlink("made", &dangling).expect("it is ours");
    whole_file::write(&dangling, b"x").expect("it can be written");
    assert_eq!(names(folder.path()), ["dangling", "file", "link", "made"]);
    assert!(fs::symlink_metadata(&dangling).expect("it is there").is_symlink());
    let circle = folder.path().join("circle");
    symlink("circle", &circle).expect("it is ours");
    assert!(whole_file::write(&circle, b"x").is_err());
}

#[test]
fn devices_and_pipes_are_written_and_not_replaced() {
    whole_file::write(Path::new("/dev/null"), b"nothing").expect("everybody may");
    whole_file::check(Path::new("/dev/null")).expect("everybody may");
    assert!(fs::metadata("/dev/null").expect("it is there").file_type().is_char_device());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is part of every system");
    assert!(made.success());
    // The check does not wait for a reader.
    whole_file::check(&pipe).expect("it is ours");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut text = String::new();
            fs::File::open(pipe).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        }
    });
    whole_file::write(&pipe, b"through").expect("somebody reads");
    assert_eq!(reader.join().expect("it ends").expect("it reads"), "through");
    assert_eq!(names(folder.path()), ["pipe"]);
    assert!(fs::metadata(&pipe).expect("it is there").file_type().is_fifo());
}

#[test]
fn a_pipe_that_nobody_reads_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is part of every system");
    assert!(made.success());
    let error = whole_file::write(&pipe, b"lost").expect_err("nobody reads");
    assert!(error.to_string().contains("nobody reads this pipe"), "{error}");
}

/// In a separate process, because all unfinished files of a process are removed.
#[test]
fn files_that_are_not_complete_can_be_removed() {
    const FOLDER: &str = "UNFINISHED_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let place = Path::new(&folder).join("file");
        let begun = WholeFile::create(&place).expect("it is ours");
        whole_file::write(&place, b"whole").expect("it is ours");
        whole_file::remove_unfinished();
        return std::mem::forget(begun);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let itself = std::env::current_exe().expect("it is running");
    let mut child = Command::new(itself);
    child.args(["--exact", "files_that_are_not_complete_can_be_removed"]).env(FOLDER, folder.path());
    assert!(child.output().expect("it starts").status.success());
    assert_eq!(names(folder.path()), ["file"]);
}

/// As above, while other threads write files one after another: none appears any more, in a folder or beside it.
#[test]
fn nothing_appears_after_the_removal() {
    const FOLDER: &str = "BUSY_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_until_removal(Path::new(&folder));
    }
    let itself = std::env::current_exe().expect("it is running");
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(&itself);
        child.args(["--exact", "nothing_appears_after_the_removal"]).env(FOLDER, folder.path());
        assert!(child.output().expect("it starts").status.success());
        let left = names(folder.path());
        assert!(left.contains(&"whole".to_owned()), "{left:?}");
        assert!(left.iter().all(|name| !name.ends_with(".partial")), "{left:?}");
    }
}

fn write_until_removal(folder: &Path) {
    let staged = UnfinishedFolder::create(folder, "staged").expect("it is ours");
    let within = staged.path().to_owned();
    whole_file::write_unsynced(&folder.join("whole"), b"whole").expect("it is ours");
    for place in [folder.join("whole"), within.join("one"), within.join("two")] {
        std::thread::spawn(move || {
            loop {
                whole_file::write_unsynced(&place, b"again").expect("the folder is there while this writes");
            }
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    whole_file::remove_unfinished();
    std::process::exit(0);
}

/// A pipe of the shell, `/dev/fd/N`, has no name, and neither has a file that was removed.
#[test]
fn what_has_no_name_is_written_through_its_descriptor() {
    use std::os::fd::AsRawFd as _;
    let (mut reader, writer) = std::io::pipe().expect("the kernel has pipes");
    let pipe = format!("/dev/fd/{}", writer.as_raw_fd());
    whole_file::check(Path::new(&pipe)).expect("it is ours");
    whole_file::write(Path::new(&pipe), b"through").expect("it is ours");
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("it reads");
    assert_eq!(text, "through");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let removed = fs::File::create(folder.path().join("file")).expect("it is ours");
    fs::remove_file(folder.path().join("file")).expect("it is ours");
    let open = format!("/dev/fd/{}", removed.as_raw_fd());
    whole_file::write(Path::new(&open), b"content").expect("it is ours");
    assert_eq!(removed.metadata().expect("it is open").len(), 7);
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// A link in a shared folder that waits for the name of the temporary file is not followed.
#[test]
fn planted_links_are_not_followed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").expect("it is ours");
    for number in 0..64 {
        let name = format!(".file.{}-{number}.partial", std::process::id());
        symlink(&victim, folder.path().join(name)).expect("it is ours");
    }
    whole_file::write(&folder.path().join("file"), b"new").expect("it can be written");
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious");
}

#[test]
fn what_cannot_be_a_file_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert!(whole_file::check(folder.path()).is_err());
    assert!(whole_file::check(&folder.path().join("no/folder")).is_err());
    assert!(WholeFile::create(Path::new("/")).is_err());
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// Set in the second run, as user nobody.
const AS_NOBODY: &str = "TAILWRIGHT_WHOLE_FILE_AS_NOBODY";
const NOBODY: u32 = 65534;

/// Root preserves owners. A process that may not overwrites the content in place, and one that may not
/// write the file changes nothing.
#[test]
fn owners_stay() {
    if let Some(folder) = std::env::var_os(AS_NOBODY) {
        return as_nobody(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open_to_all = |name: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, "old").expect("it is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path
    };
    let place = open_to_all("of-nobody", 0o644);
    if chown(&place, Some(NOBODY), Some(NOBODY)).is_err() {
        return testkit::skip("owners are changed by root only");
    }
    whole_file::write(&place, b"new").expect("it can be written");
    let found = fs::metadata(&place).expect("it is there");
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (NOBODY, NOBODY, 0o644));
    open_to_all("of-root", 0o666);
    open_to_all("forbidden", 0o644);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let itself = std::env::current_exe().expect("a test has a path");
    let mut again = Command::new("setpriv");
    again.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(itself);
    again.args(["--exact", "owners_stay", "--nocapture"]).env(AS_NOBODY, folder.path());
    let Ok(output) = again.output() else { return testkit::skip("setpriv is not installed") };
    let text = String::from_utf8_lossy(&output.stdout);
    if text.is_empty() {
        return testkit::skip("nobody may not run this test's program");
    }
    assert!(output.status.success(), "{text}");
    let state = |name: &str| {
        let path = folder.path().join(name);
        (fs::read_to_string(&path).expect("it is there"), fs::metadata(&path).expect("it is there").uid())
    };
    assert_eq!(state("of-root"), ("by nobody".to_owned(), 0));
    assert_eq!(state("forbidden"), ("old".to_owned(), 0));
    assert_eq!(names(folder.path()), ["forbidden", "of-nobody", "of-root"]);
}

fn as_nobody(folder: &Path) {
    whole_file::write(&folder.join("of-root"), b"by nobody").expect("everybody may write it");
    let error = whole_file::write(&folder.join("forbidden"), b"by nobody").expect_err("only root may");
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}
