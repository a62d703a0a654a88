//! The I/O scheduler of a disk together with what the kernel resets when it is switched: how many requests the queue takes,
//! when it throttles writers (which `bfq` turns off), and the scheduler's own settings. As text:
//! `mq-deadline nr_requests 32 iosched/fifo_batch 7`.

use std::fs;
use std::io;
use std::path::Path;

/// Files of the queue that are reset with the scheduler. Each scheduler has more of its own.
const RESET: [&str; 2] = ["nr_requests", "wbt_lat_usec"];
/// The folder of the scheduler's own settings.
const OWN: &str = "iosched";

/// The scheduler and its settings; `None` when there is no such disk.
pub(super) fn read(queue: &Path) -> io::Result<Option<String>> {
    let mut value = match fs::read_to_string(queue.join("scheduler")) {
        Ok(text) => chosen(&text).to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for file in files(queue) {
        // Where the disk has none, it is there and refuses to be read.
        if let Ok(text) = fs::read_to_string(queue.join(&file)) {
            value += &format!(" {file} {}", text.trim());
        }
    }
    Ok(Some(value))
}

/// Switches to the scheduler that a value begins with, and then gives what else it names to the files that differ: some
/// writes say that somebody has chosen what was the kernel's choice, and some reset others, those behind them.
pub(super) fn write(queue: &Path, value: &str) -> io::Result<()> {
    let mut words = value.split_whitespace();
    let scheduler = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    if chosen(&fs::read_to_string(queue.join("scheduler"))?) != scheduler {
        fs::write(queue.join("scheduler"), scheduler)?;
    }
    while let (Some(file), Some(wanted)) = (words.next(), words.next()) {
        if fs::read_to_string(queue.join(file))?.trim() != wanted {
            fs::write(queue.join(file), wanted)?;
        }
    }
    Ok(())
}

/// The name in brackets of several, or the only one.
fn chosen(text: &str) -> &str {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text.trim(), |(chosen, _)| chosen)
}

fn files(queue: &Path) -> Vec<String> {
    let own = fs::read_dir(queue.join(OWN)).into_iter().flatten().flatten();
    let mut own: Vec<String> =
        own.filter_map(|entry| Some(format!("{OWN}/{}", entry.file_name().to_str()?))).collect();
    own.sort_unstable();
    RESET.map(str::to_owned).into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_is_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] bfq \n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
    }

    #[test]
    fn a_scheduler_is_written_with_its_settings() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let queue = folder.path();
        assert_eq!(read(queue).expect("there is nothing to refuse"), None);
        fs::create_dir(queue.join(OWN)).expect("it is ours");
        for (file, text) in [
            ("scheduler", "none [kyber]\n"),
            ("nr_requests", "64\n"),
            ("iosched/write_lat", "9\n"),
            ("iosched/read_lat", "5\n"),
        ] {
            fs::write(queue.join(file), text).expect("it is ours");
        }
        let all = "kyber nr_requests 64 iosched/read_lat 5 iosched/write_lat 9";
        assert_eq!(read(queue).expect("it is ours").as_deref(), Some(all));
        write(queue, "none nr_requests 32 iosched/read_lat 5").expect("it is ours");
        let changed = "none nr_requests 32 iosched/read_lat 5 iosched/write_lat 9";
        assert_eq!(read(queue).expect("it is ours").as_deref(), Some(changed));
        assert!(write(queue, "none iosched/absent 1").is_err());
    }
}
