//! Completions and man pages, as shells and `man` take them.

use crate::support::Folder;
use std::process::Command;

/// The output of a program, or nothing where there is no such program, which is said.
fn output_of(program: &str, args: &[&str], folder: &Folder) -> Option<std::process::Output> {
    let output = Command::new(program).args(args).current_dir(folder.path()).output();
    if output.is_err() {
        testkit::skip(&format!("there is no {program}"));
    }
    output.ok()
}

/// What bash offers for the last of these words.
fn completed(folder: &Folder, words: &[&str]) -> Option<String> {
    let last = words[words.len() - 1];
    let before = words[words.len() - 2];
    let script = format!(
        "source ./tailwright.bash; COMP_WORDS=({}); COMP_CWORD={}; _tailwright tailwright '{last}' '{before}'; \
         echo \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1
    );
    let output = output_of("bash", &["--norc", "-c", &script], folder)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text").trim().to_owned())
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let folder = Folder::new();
    folder.write("tailwright.bash", &folder.run(&["completions", "bash"]).expect_code(0).stdout);
    for (words, offered) in [
        (&["tailwright", "pl"][..], "plan"),
        (&["tailwright", "schedule", "be"], "bench"),
        (&["tailwright", "plan", "--safety"], "--safety-margin"),
        (&["tailwright", "explain", "--model", "cal"], "calibrated"),
    ] {
        let Some(found) = completed(&folder, words) else { return };
        assert_eq!(found, offered, "{words:?}");
    }
}

#[test]
fn other_shells_have_scripts_that_they_read() {
    let folder = Folder::new();
    for (shell, begins) in [("zsh", "#compdef tailwright"), ("fish", "# Print an optspec")] {
        let script = folder.run(&["completions", shell]).expect_code(0).stdout;
        assert!(script.starts_with(begins) && script.contains("schedule"), "{shell}: {script:.200}");
        folder.write("script", &script);
        if let Some(output) = output_of(shell, &["-n", "script"], &folder) {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn man_pages_are_written_and_read() {
    let folder = Folder::new();
    folder.run(&["man", "pages"]).expect_code(0);
    let mut pages: Vec<_> = std::fs::read_dir(folder.join("pages")).expect("it is made").flatten().collect();
    pages.sort_by_key(std::fs::DirEntry::file_name);
    assert!(pages.len() > 30, "{}", pages.len());
    for page in &pages {
        let path = page.path().display().to_string();
        // Said once where there is none.
        let Some(output) = output_of("mandoc", &["-Tlint", "-Werror", &path], &folder) else { break };
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stdout));
    }
    let plan = folder.join("pages/tailwright-plan.1").display().to_string();
    let Some(output) = output_of("man", &["--warnings", "-E", "UTF-8", "-l", &plan], &folder) else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !text.contains("NAME") {
        return testkit::skip("man shows no page here");
    }
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("tailwright plan cluster.toml --report plan.html"), "{text}");
}
