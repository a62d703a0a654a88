//! I/O scheduler of a disk with everything that the kernel resets when it is switched: queue depth, writeback
//! throttling (disabled by `bfq`), and the scheduler's own settings. Its text form is `mq-deadline
//! nr_requests 32 iosched/fifo_batch 7`.

use std::fs;
use std::io;
use std::path::Path;

/// Queue files that are reset with the scheduler, besides the scheduler's own.
const RESET: [&str; 2] = ["nr_requests", "wbt_lat_usec"];
/// Directory of the scheduler's own settings.
const OWN: &str = "iosched";

/// Returns the scheduler and its settings; `None` if the disk is gone.
pub(super) fn read(queue: &Path) -> io::Result<Option<String>> {
    let mut value = match fs::read_to_string(queue.join("scheduler")) {
        Ok(text) => chosen(&text).to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for file in files(queue) {
        // Reading fails for a file that exists but does not apply to the disk.
        if let Ok(text) = fs::read_to_string(queue.join(&file)) {
            value += &format!(" {file} {}", text.trim());
        }
    }
    Ok(Some(value))
}

/// Switches to the scheduler named first, then writes the settings that differ. Equal ones are skipped: some
/// writes mark a default as the user's choice, and some reset settings that come later in the list.
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

/// Returns the name in brackets, or the only one.
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
