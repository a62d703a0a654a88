//! The small print of every page: when it was made, by which version, and from which command.

use crate::terminal::pasted_command;
use plot::Page;
use std::time::{Duration, SystemTime};

/// The page as a document, with its small print.
pub fn document(page: Page) -> String {
    page.footer(small_print(&pasted_command(std::env::args_os().skip(1)), time())).to_html()
}

/// Returns the time of now, or the one that SOURCE_DATE_EPOCH sets in seconds, so that a page can be reproduced.
fn time() -> SystemTime {
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let told = told.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    told.unwrap_or_else(SystemTime::now)
}

fn small_print(command: &str, time: SystemTime) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("Made {} by tailwright {version}: {command}", httpdate::fmt_http_date(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn it_says_when_by_what_and_from_which_command() {
        let args = ["ideal", "--service", "exp(50us)", "--name", "it's", ""];
        let command = pasted_command(args.into_iter().map(OsString::from));
        assert_eq!(command, r"tailwright ideal --service 'exp(50us)' --name 'it'\''s' ''");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let expected =
            format!("Made Sun, 06 Nov 1994 08:49:37 GMT by tailwright {}: x", env!("CARGO_PKG_VERSION"));
        assert_eq!(small_print("x", time), expected);
    }

    #[test]
    fn a_shell_reads_the_command_as_it_was() {
        let words = ["a b", "it's", "$HOME", "`id`", "x\ny", "*", "~", "ü"];
        let args = std::iter::once("%s|").chain(words).map(OsString::from);
        let script = pasted_command(args).replacen("tailwright", "printf", 1);
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert_eq!(String::from_utf8(output.stdout).expect("text"), words.join("|") + "|");
    }
}
