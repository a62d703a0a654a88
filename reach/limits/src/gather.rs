//! Gathers the texts that users name: files, folders and standard input, all bounded.
//!
//! In a folder only regular files are opened, links are not followed, and in a control group only the files that
//! limit. A live /proc is searched for command lines of QEMU.

use crate::readers::{READERS, is_cgroup_file};
use crate::survey::{SourceText, Survey};
use model::OperationError;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a file, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of all files together, bytes.
const ALL_BYTES_MAX: u64 = 512 << 20;
/// Maximum number of entries of folders that are looked at.
const ENTRIES_MAX: u64 = 2_000_000;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 64;

/// Gathers and reads all that is named; `reader` is the name of the only reader, if one was chosen.
///
/// # Errors
///
/// When a named file or folder cannot be read. What cannot be read below a folder is counted in the survey.
pub fn survey(paths: &[&Path], reader: Option<&str>) -> Result<Survey, OperationError> {
    let mut gathering =
        Gathering { texts: BTreeMap::new(), survey: Survey::default(), bytes: 0, entries: 0, reader };
    for path in paths {
        gathering.named(path)?;
    }
    let Gathering { texts, mut survey, .. } = gathering;
    for (at, texts) in texts {
        let reader = &READERS[at];
        survey.files.insert(reader.name, u64::try_from(texts.len()).unwrap_or(u64::MAX));
        (reader.read)(&texts, &mut survey);
    }
    survey.merge_units();
    Ok(survey)
}

/// Reads texts that are in memory, each by the reader that recognises it.
pub fn survey_of(sources: Vec<SourceText>) -> Survey {
    let mut gathering =
        Gathering { texts: BTreeMap::new(), survey: Survey::default(), bytes: 0, entries: 0, reader: None };
    sources.into_iter().for_each(|source| gathering.sort(source));
    let Gathering { texts, mut survey, .. } = gathering;
    for (at, texts) in texts {
        survey.files.insert(READERS[at].name, u64::try_from(texts.len()).unwrap_or(u64::MAX));
        (READERS[at].read)(&texts, &mut survey);
    }
    survey.merge_units();
    survey
}

struct Gathering<'a> {
    /// Texts by the index of their reader.
    texts: BTreeMap<usize, Vec<SourceText>>,
    survey: Survey,
    bytes: u64,
    entries: u64,
    reader: Option<&'a str>,
}

impl Gathering<'_> {
    fn named(&mut self, path: &Path) -> Result<(), OperationError> {
        let shown = path.display().to_string();
        let unreadable = |error: io::Error| {
            OperationError::input(format_args!("{shown}: cannot read it: {error}"))
                .hint("check the path and its permissions")
        };
        if path == Path::new("-") {
            let text = self.bounded(io::stdin().lock()).map_err(unreadable)?;
            self.sort(SourceText::new("standard input", text));
        } else if fs::metadata(path).map_err(unreadable)?.is_dir() {
            if path == Path::new("/proc") {
                self.processes();
            } else {
                fs::read_dir(path).map_err(unreadable)?;
                self.folder(path, "", 0);
            }
        } else {
            let text = File::open(path).and_then(|file| self.bounded(file)).map_err(unreadable)?;
            self.sort(SourceText::new(shown, text));
        }
        Ok(())
    }

    /// Reads a text up to the bounds; a zero byte in it stays, other bytes that are no UTF-8 are replaced.
    fn bounded(&mut self, file: impl io::Read) -> io::Result<String> {
        let left = ALL_BYTES_MAX.saturating_sub(self.bytes).min(FILE_BYTES_MAX);
        let mut bytes = Vec::new();
        file.take(left + 1).read_to_end(&mut bytes)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > left {
            return Err(io::Error::other(format!("more than {left} bytes")));
        }
        self.bytes += length;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn folder(&mut self, folder: &Path, below: &str, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(_) if depth > DEPTH_MAX => {
                self.survey.unreadable(folder.display(), format!("deeper than {DEPTH_MAX} folders"));
                return;
            }
            Ok(entries) => entries,
            Err(error) => {
                self.survey.unreadable(folder.display(), error);
                return;
            }
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.survey.unreadable(folder.display(), format!("more than {ENTRIES_MAX} files in all"));
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() || kind.is_file() {
                found.push((entry.file_name().to_string_lossy().into_owned(), entry.path(), kind.is_dir()));
            }
        }
        found.sort();
        let is_cgroup = found.iter().any(|(name, ..)| name == "cgroup.procs");
        for (name, path, is_folder) in found {
            let below = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if is_folder {
                self.folder(&path, &below, depth + 1);
            } else if !is_cgroup || is_cgroup_file(&name) {
                self.file(&path, below);
            }
        }
    }

    fn file(&mut self, path: &Path, below: String) {
        let name = path.display().to_string();
        match File::open(path).and_then(|file| self.bounded(file)) {
            Ok(text) => self.sort(SourceText { name, below, text }),
            // A threaded group has no list of processes; reading it is refused.
            Err(_) if below.ends_with("cgroup.procs") => {}
            Err(error) => self.survey.unreadable(name, error),
        }
    }

    /// Reads the command lines of running processes, and keeps those of QEMU.
    fn processes(&mut self) {
        let Ok(entries) = fs::read_dir("/proc") else { return };
        let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.bytes().all(|byte| byte.is_ascii_digit())
        });
        found.sort();
        for path in found {
            // A process may have ended meanwhile.
            let Ok(text) = File::open(path.join("cmdline")).and_then(|file| self.bounded(file)) else {
                continue;
            };
            if text
                .split('\0')
                .next()
                .is_some_and(|program| program.contains("qemu") || program.contains("kvm"))
            {
                self.sort(SourceText::new(path.join("cmdline").display().to_string(), text));
            }
        }
    }

    fn sort(&mut self, source: SourceText) {
        let at = match self.reader {
            Some(name) => READERS.iter().position(|reader| reader.name == name),
            None => READERS.iter().position(|reader| (reader.recognises)(&source)),
        };
        match at {
            Some(at) => self.texts.entry(at).or_default().push(source),
            None => self.survey.foreign += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_unit_in_force_counts_once() {
        let survey = survey_of(vec![
            SourceText::new(
                "etc/systemd/system/a.service",
                "[Service]\nCPUQuota=50%\nIOReadIOPSMax=/dev/sda 5\n",
            ),
            SourceText::new("system.slice/a.service/cpu.max", "50000 100000\n"),
        ]);
        let rows: Vec<_> = survey.limits.iter().map(|l| (l.reader, l.key.as_str())).collect();
        assert_eq!(rows, [("cgroup", "cpu.max"), ("systemd", "IOReadIOPSMax")]);
        assert_eq!(survey.repeated, 1);
    }
}
