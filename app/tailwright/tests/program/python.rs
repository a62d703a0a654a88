//! The Python package: its tests, which compare it with the program; the code of its guide; and its notebooks.

use crate::docs::blocks;
use crate::support::Folder;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs Python code with the package, in a folder that is empty at first. Returns what it prints.
fn run_python(python: &Path, folder: &Folder, arguments: &[&str]) -> String {
    let modules = folder.join("modules");
    let package = modules.join("tailwright");
    std::fs::create_dir_all(&package).expect("the folder is ours");
    let sources = std::fs::read_dir(root().join("reach/python/python/tailwright")).expect("the package");
    for source in sources {
        let source = source.expect("the package can be listed");
        if source.path().is_file() {
            std::fs::copy(source.path(), package.join(source.file_name())).expect("the folder is ours");
        }
    }
    // Beside this program, which depends on the library.
    let library =
        std::env::current_exe().expect("this program has a path").with_file_name("lib_tailwright.so");
    symlink(&library, package.join("_tailwright.abi3.so")).expect("the folder is ours");
    let output = Command::new(python)
        .args(["-B", "-W", "error::DeprecationWarning"])
        .args(arguments)
        .current_dir(folder.path())
        .env("PYTHONPATH", &modules)
        .env("TAILWRIGHT", env!("CARGO_BIN_EXE_tailwright"))
        .env("TAILWRIGHT_EXAMPLES", root().join("examples/scenarios"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("Python starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout
}

#[test]
fn the_package_answers_as_the_program_does() {
    let Some(python) = testkit::python_with_numpy() else { return };
    for tests in ["test_curves.py", "test_answers.py"] {
        let tests = root().join("reach/python/tests").join(tests);
        run_python(&python, &Folder::new(), &[tests.to_str().expect("a path in UTF-8")]);
    }
}

/// Returns an interpreter with the packages of `reach/python/tests/requirements.txt`: that of the variable
/// `TAILWRIGHT_PYTHON`, or one in an environment that is made once and kept. Skips and returns `None` without one.
fn python_with_tables() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("TAILWRIGHT_PYTHON") {
        return Some(PathBuf::from(python));
    }
    static MADE: OnceLock<Result<PathBuf, &str>> = OnceLock::new();
    let python = testkit::program("python3")?;
    let made = MADE.get_or_init(|| python_environment(&python)).as_ref();
    made.inspect_err(|reason| testkit::skip(reason)).ok().cloned()
}

/// Makes the environment, unless there is one with these packages.
fn python_environment(python: &Path) -> Result<PathBuf, &'static str> {
    let requirements = root().join("reach/python/tests/requirements.txt");
    let wanted = std::fs::read(&requirements).expect("the requirements");
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-tables");
    std::fs::create_dir_all(&kept).expect("the folder is ours");
    let made_from = kept.join("made-from.txt");
    let in_environment = kept.join("venv/bin/python");
    if std::fs::read(&made_from).ok().as_ref() == Some(&wanted) {
        return Ok(in_environment);
    }
    let is_done = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !is_done(Command::new(python).args(["-m", "venv", "--clear"]).arg(kept.join("venv"))) {
        return Err("python3 -m venv does not work: apt-get install python3-venv");
    }
    let mut install = Command::new(&in_environment);
    install.args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r"]).arg(requirements);
    if !is_done(&mut install) {
        return Err("the packages of reach/python/tests/requirements.txt cannot be fetched by pip");
    }
    std::fs::write(made_from, wanted).expect("the folder is ours");
    Ok(in_environment)
}

/// Runs tests of tables, and repeats what they skip.
fn run_with_tables(tests: &str) {
    let Some(python) = python_with_tables() else { return };
    let tests = root().join("reach/python/tests").join(tests);
    let said = run_python(&python, &Folder::new(), &[tests.to_str().expect("a path in UTF-8")]);
    said.lines().filter_map(|line| line.strip_prefix("SKIPPED ")).for_each(testkit::skip);
}

#[test]
fn fleets_have_the_bits_of_one_pass() {
    run_with_tables("test_fleet.py");
}

#[test]
fn fleets_on_spark_have_the_bits_of_one_machine() {
    run_with_tables("test_spark.py");
}

/// The guide of fleets runs from the first block to the last on one machine, and prints what it shows.
#[test]
fn the_guide_of_fleets_tells_the_truth() {
    let Some(python) = python_with_tables() else { return };
    run_guide(&python, "docs/guides/fleets.md");
}

/// The guide's code runs from the first block to the last, and prints what the guide shows.
#[test]
fn the_guide_tells_the_truth() {
    let Some(python) = testkit::python_with_numpy() else { return };
    run_guide(&python, "docs/guides/python.md");
}

/// Runs the blocks of a page whose language is `python`, and compares with those that are `text`.
fn run_guide(python: &Path, page: &str) {
    let text = std::fs::read_to_string(root().join(page)).expect("the guide");
    let all = blocks(&text);
    let of = |language: &str| {
        let lines = all.iter().filter(|block| block.info == [language]).flat_map(|block| &block.lines);
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let folder = Folder::new();
    folder.write("guide.py", &of("python"));
    assert_eq!(run_python(python, &folder, &["guide.py"]), of("text"));
}

/// Every notebook runs from its first cell to its last, and prints what it shows.
#[test]
fn notebooks_print_what_they_show() {
    let Some(python) = testkit::python_with_numpy() else { return };
    let folder = root().join("reach/python/notebooks");
    let runner = root().join("reach/python/tests/run_notebook.py");
    let books: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the notebooks")
        .map(|entry| entry.expect("they can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ipynb"))
        .collect();
    assert_eq!(books.len(), 3, "{books:?}");
    for book in books {
        let text = std::fs::read_to_string(&book).expect("a notebook");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(folder.join(link).is_file(), "{}: there is no {link}", book.display());
        }
        let mut arguments = vec![runner.to_str().expect("a path"), book.to_str().expect("a path")];
        if std::env::var_os("TAILWRIGHT_RENEW_DOCS").is_some() {
            arguments.push(arguments[1]);
        }
        run_python(&python, &Folder::new(), &arguments);
    }
}
