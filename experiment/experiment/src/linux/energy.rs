//! Energy used by the CPU packages of this machine, from the kernel's counters (powercap, RAPL).
//!
//! Only zones of whole packages count. Their subzones (cores, graphics) are contained in them, and `psys`
//! contains them. A package reported by two drivers (`intel-rapl`, `intel-rapl-mmio`) counts once. Memory,
//! which on servers is a subzone outside all packages, does not count.
//!
//! A counter that falls has either wrapped at its largest value or been reset. It counts as wrapped only if that takes no
//! more than twice the largest power seen before. Otherwise, or if its file is a different one or cannot be read, the
//! energy since the last read is unknown: a span that contains such a gap has no energy. A reset that no read sees makes
//! the energy wrong by at most the interval between reads at twice that power.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Directory of the zones.
pub(crate) const POWERCAP: &str = "/sys/class/powercap";
/// Prefix of the names of whole packages.
const PACKAGE: &str = "package-";
/// Shorter spans say nothing about power: counters advance in steps of a millisecond or more.
const SPAN_MIN_NS: u64 = 50_000_000;
/// Largest credible increase over the maximum power seen so far.
const POWER_FACTOR: f64 = 2.0;

/// Sum of the energy counters of all CPU packages.
#[derive(Debug)]
pub(crate) struct EnergyMeter {
    zones: Vec<EnergyZone>,
    seen: EnergyReading,
    /// Reason for the last gap.
    last_gap: Option<String>,
}

/// State of all counters at an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EnergyReading {
    /// Energy since the counters were opened, without gaps, microjoules.
    used_uj: u64,
    /// Number of gaps: intervals between reads whose energy is unknown.
    gaps: u64,
}

#[derive(Debug)]
struct EnergyZone {
    folder: PathBuf,
    /// Last reading; `None` if it failed.
    last: Option<CounterReading>,
    /// Largest power seen, microjoules per nanosecond.
    power_max: Option<f64>,
}

/// One reading of one counter.
#[derive(Debug, Clone, Copy)]
struct CounterReading {
    at_ns: u64,
    energy_uj: u64,
    /// Value after which the counter wraps to zero.
    range_uj: u64,
    /// Device and inode of the file: a different file is a different counter.
    file: (u64, u64),
}

impl EnergyReading {
    /// Returns the energy since an earlier reading, microjoules; `None` if a gap lies between.
    pub(crate) fn since(self, earlier: Self) -> Option<u64> {
        (self.gaps == earlier.gaps).then(|| self.used_uj - earlier.used_uj)
    }
}

impl EnergyMeter {
    /// Opens the packages in a directory; the error says why energy is unknown.
    pub(crate) fn open(root: &Path, now_ns: u64) -> Result<Self, String> {
        let zones = packages(root)?.into_iter().map(|folder| EnergyZone::open(folder, now_ns));
        let zones = zones.collect::<Result<_, _>>()?;
        Ok(Self { zones, seen: EnergyReading::default(), last_gap: None })
    }

    /// Reads all counters at an instant not before the last one. Frequent reads leave less time for unseen
    /// resets.
    pub(crate) fn read(&mut self, now_ns: u64) -> EnergyReading {
        let mut gap = None;
        for zone in &mut self.zones {
            match zone.advance(now_ns) {
                Ok(used_uj) => self.seen.used_uj += used_uj,
                Err(why) => gap = gap.or(Some(why)),
            }
        }
        if let Some(why) = gap {
            self.seen.gaps += 1;
            self.last_gap = Some(why);
        }
        self.seen
    }

    /// Returns the reason for the last gap; `None` if there was none.
    pub(crate) fn last_gap(&self) -> Option<&str> {
        self.last_gap.as_deref()
    }
}

impl EnergyZone {
    fn open(folder: PathBuf, now_ns: u64) -> Result<Self, String> {
        let last = Some(CounterReading::of(&folder, now_ns)?);
        Ok(Self { folder, last, power_max: None })
    }

    /// Returns the energy since the last read, microjoules; the error says why it is unknown.
    fn advance(&mut self, now_ns: u64) -> Result<u64, String> {
        let found = CounterReading::of(&self.folder, now_ns);
        let last = std::mem::replace(&mut self.last, found.as_ref().ok().copied());
        let found = found?;
        let failed = |why: &str| Err(format!("{}: {why}", self.folder.join(COUNTER).display()));
        let Some(last) = last else { return failed("it could not be read before") };
        if found.file != last.file {
            return failed("it is another counter than before: its driver was loaded again");
        }
        let elapsed_ns = found.at_ns.saturating_sub(last.at_ns);
        let most_uj = self.power_max.map(|power| POWER_FACTOR * power * elapsed_ns.max(SPAN_MIN_NS) as f64);
        if most_uj.is_some_and(|most| most >= last.range_uj as f64) {
            return failed("it was not looked at for so long that it may have begun at zero unseen");
        }
        let Some(used_uj) = found.energy_uj.checked_sub(last.energy_uj) else {
            let used_uj = last.range_uj.saturating_sub(last.energy_uj).saturating_add(found.energy_uj);
            return match most_uj {
                Some(most) if used_uj as f64 <= most => Ok(used_uj),
                _ => failed("it fell, too early to have come to its end: it was reset"),
            };
        };
        if elapsed_ns >= SPAN_MIN_NS {
            let power = used_uj as f64 / elapsed_ns as f64;
            self.power_max = Some(self.power_max.map_or(power, |seen| seen.max(power)));
        }
        Ok(used_uj)
    }
}

/// Counter file in the directory of a zone.
const COUNTER: &str = "energy_uj";

impl CounterReading {
    fn of(zone: &Path, at_ns: u64) -> Result<Self, String> {
        let path = zone.join(COUNTER);
        let mut text = String::new();
        // Value and identity come from one open file, so that they belong to the same counter.
        let looked = File::open(&path).and_then(|mut file| {
            file.read_to_string(&mut text)?;
            file.metadata()
        });
        let found = looked.map_err(|error| why_not(&path, &error))?;
        let energy_uj = microjoules(&path, &text)?;
        let range_uj = number(&zone.join("max_energy_range_uj"))?;
        Ok(Self { at_ns, energy_uj, range_uj, file: (found.dev(), found.ino()) })
    }
}

/// Returns the directories of the zones of whole packages, each package once.
fn packages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(root).map_err(|error| why_not(root, &error))?;
    let mut zones: Vec<String> =
        listing.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    zones.retain(|zone| is_top_level(zone));
    // If two drivers report a package, the one that reads the CPU's registers wins.
    zones.sort_unstable_by_key(|zone| (zone.contains("mmio"), zone.clone()));
    let mut packages = BTreeMap::new();
    for zone in zones {
        let name = fs::read_to_string(root.join(&zone).join("name")).unwrap_or_default();
        if name.starts_with(PACKAGE) {
            packages.entry(name.trim().to_owned()).or_insert_with(|| root.join(&zone));
        }
    }
    if packages.is_empty() {
        return Err(format!("{} has no zone of a CPU package", root.display()));
    }
    Ok(packages.into_values().collect())
}

/// Returns true for `intel-rapl:0`, but not for its subzone `intel-rapl:0:1` or the driver `intel-rapl`.
fn is_top_level(zone: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    zone.split_once(':').is_some_and(|(_, number)| is_number(number))
}

fn number(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| why_not(path, &error))?;
    microjoules(path, &text)
}

fn microjoules(path: &Path, text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{}: expected microjoules", path.display()))
}

fn why_not(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "; only root may read it",
        _ => "",
    };
    format!("{}: {error}{remedy}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::os::unix::fs::PermissionsExt;

    /// A folder with zones: driver and number, name, counter.
    fn powercap(zones: &[(&str, &str, u64)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        fs::create_dir(root.path().join("intel-rapl")).expect("it is ours");
        for (zone, name, energy_uj) in zones {
            let folder = root.path().join(zone);
            fs::create_dir(&folder).expect("it is ours");
            fs::write(folder.join("name"), format!("{name}\n")).expect("it is ours");
            fs::write(folder.join("max_energy_range_uj"), "1000\n").expect("it is ours");
            set(&root, zone, *energy_uj);
        }
        root
    }

    fn set(root: &tempfile::TempDir, zone: &str, energy_uj: u64) {
        fs::write(root.path().join(zone).join("energy_uj"), format!("{energy_uj}\n")).expect("it is ours");
    }

    const SECOND: u64 = 1_000_000_000;

    fn opened(root: &tempfile::TempDir) -> EnergyMeter {
        EnergyMeter::open(root.path(), 0).expect("there are packages")
    }

    #[test]
    fn packages_are_added_up_and_each_counts_once() {
        let root = powercap(&[
            ("intel-rapl:0", "package-0", 100),
            ("intel-rapl:0:0", "core", 10),
            ("intel-rapl:0:1", "dram", 10),
            ("intel-rapl:1", "package-1", 200),
            ("intel-rapl:2", "psys", 500),
            ("intel-rapl-mmio:0", "package-0", 300),
        ]);
        let mut meter = opened(&root);
        let before = meter.read(SECOND);
        for (zone, energy_uj) in [
            ("intel-rapl:0", 107),
            ("intel-rapl:0:0", 900),
            ("intel-rapl:0:1", 900),
            ("intel-rapl:1", 230),
            ("intel-rapl:2", 900),
            ("intel-rapl-mmio:0", 900),
        ] {
            set(&root, zone, energy_uj);
        }
        assert_eq!(meter.read(2 * SECOND).since(before), Some(37));
    }

    #[test]
    fn dies_of_one_package_are_zones_of_their_own() {
        let root =
            powercap(&[("intel-rapl:0", "package-0-die-0", 1), ("intel-rapl:1", "package-0-die-1", 1)]);
        let mut meter = opened(&root);
        let before = meter.read(SECOND);
        set(&root, "intel-rapl:0", 2);
        set(&root, "intel-rapl:1", 4);
        assert_eq!(meter.read(2 * SECOND).since(before), Some(4));
    }

    /// Looks once a second at a counter of the range 1,000 that begins at 700; what was used since the look before.
    fn used_by_second(values: &[u64]) -> Vec<Option<u64>> {
        let root = powercap(&[("intel-rapl:0", "package-0", 700)]);
        let mut meter = opened(&root);
        let mut before = meter.read(0);
        let looks = values.iter().zip(1..).map(|(value, second)| {
            set(&root, "intel-rapl:0", *value);
            let reading = meter.read(second * SECOND);
            let used = reading.since(before);
            before = reading;
            used
        });
        looks.collect()
    }

    #[test]
    fn a_counter_that_comes_to_its_end_goes_on() {
        let used = used_by_second(&[800, 890, 990, 5, 60, 160]);
        assert_eq!(used, [100, 90, 100, 15, 55, 100].map(Some));
        // Twice the largest power that was seen before, and no more.
        assert_eq!(used_by_second(&[800, 900, 99])[2], Some(199));
        assert_eq!(used_by_second(&[800, 900, 101])[2], None);
    }

    #[test]
    fn a_reset_is_no_end_of_the_range() {
        for values in [&[750, 800, 0][..], &[750, 800, 20], &[750, 800, 799], &[0, 800]] {
            let used = used_by_second(values);
            let fell = values.windows(2).position(|pair| pair[1] < pair[0]).map_or(0, |index| index + 1);
            assert_eq!(used[fell], None, "{values:?}");
        }
        // From there on it is known again.
        assert_eq!(used_by_second(&[750, 800, 0, 50, 90])[3..], [Some(50), Some(40)]);
    }

    /// Between rare reads, a counter may have wrapped any number of times.
    #[test]
    fn a_counter_that_was_not_looked_at_for_long_is_not_believed() {
        let root = powercap(&[("intel-rapl:0", "package-0", 0)]);
        let mut meter = opened(&root);
        set(&root, "intel-rapl:0", 100);
        let before = meter.read(SECOND);
        set(&root, "intel-rapl:0", 500);
        let after = meter.read(5 * SECOND);
        assert_eq!(after.since(before), Some(400));
        set(&root, "intel-rapl:0", 600);
        assert_eq!(meter.read(11 * SECOND).since(after), None, "it may have begun anew");
        assert!(meter.last_gap().is_some_and(|why| why.contains("not looked at")), "{:?}", meter.last_gap());
    }

    /// Counters advance in steps, and looks that follow each other at once may have one between them.
    #[test]
    fn a_step_of_the_counter_is_no_power() {
        let root = powercap(&[("intel-rapl:0", "package-0", 700)]);
        let mut meter = opened(&root);
        for (energy_uj, at_ns) in [(750, SECOND), (760, SECOND + 1_000)] {
            set(&root, "intel-rapl:0", energy_uj);
            meter.read(at_ns);
        }
        let before = meter.read(SECOND + 2_000);
        set(&root, "intel-rapl:0", 800);
        let after = meter.read(2 * SECOND);
        assert_eq!(after.since(before), Some(40), "10 in a microsecond are a step");
        set(&root, "intel-rapl:0", 0);
        assert_eq!(meter.read(3 * SECOND).since(after), None);
    }

    #[test]
    fn a_zone_that_vanishes_and_comes_again_leaves_a_gap() {
        let root = powercap(&[("intel-rapl:0", "package-0", 1), ("intel-rapl:1", "package-1", 1)]);
        let mut meter = opened(&root);
        let counter = root.path().join("intel-rapl:1/energy_uj");
        let first = meter.read(SECOND);
        fs::write(&counter, "much").expect("it is ours");
        let damaged = meter.read(2 * SECOND);
        assert_eq!(damaged.since(first), None);
        assert_eq!(meter.last_gap(), Some(&*format!("{}: expected microjoules", counter.display())));
        set(&root, "intel-rapl:1", 5);
        let again = meter.read(3 * SECOND);
        assert_eq!(again.since(damaged), None, "it was not read before");
        set(&root, "intel-rapl:1", 7);
        let whole = meter.read(4 * SECOND);
        assert_eq!(whole.since(again), Some(2));
        // Away and back between two looks, with more in it than before.
        let folder = root.path().join("intel-rapl:1");
        fs::rename(&folder, root.path().join("away")).expect("it is ours");
        fs::create_dir(&folder).expect("it is ours");
        fs::write(folder.join("max_energy_range_uj"), "1000").expect("it is ours");
        set(&root, "intel-rapl:1", 9);
        let other = meter.read(5 * SECOND);
        assert_eq!(other.since(whole), None);
        assert!(
            meter.last_gap().is_some_and(|why| why.contains("another counter")),
            "{:?}",
            meter.last_gap()
        );
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(meter.read(6 * SECOND).since(other), None);
        let why = meter.last_gap().expect("the package is gone");
        assert!(why.starts_with(&counter.display().to_string()), "{why}");
        fs::remove_file(root.path().join("intel-rapl:0/max_energy_range_uj")).expect("it is ours");
        assert!(EnergyMeter::open(root.path(), 0).is_err_and(|said| said.contains("max_energy_range_uj")));
    }

    #[test]
    fn a_machine_without_packages_says_so() {
        let root = powercap(&[("intel-rapl:0:0", "package-0", 1), ("dtpm:0", "cluster", 1)]);
        let said = EnergyMeter::open(root.path(), 0).expect_err("there is no package");
        assert!(said.ends_with("has no zone of a CPU package"), "{said}");
        let absent = root.path().join("absent");
        let said = EnergyMeter::open(&absent, 0).expect_err("there is no such folder");
        assert!(said.starts_with(&absent.display().to_string()), "{said}");
    }

    /// Root may read everything unless it gives that up, which a thread can.
    #[test]
    fn a_counter_of_root_is_told() {
        let root = powercap(&[("intel-rapl:0", "package-0", 1)]);
        let counter = root.path().join("intel-rapl:0/energy_uj");
        fs::set_permissions(&counter, PermissionsExt::from_mode(0o000)).expect("it is ours");
        let open = || {
            let mut sets = capabilities(None).expect("a thread knows what it may do");
            sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).expect("anybody may do less");
            EnergyMeter::open(root.path(), 0).expect_err("it may not be read")
        };
        let said = std::thread::scope(|scope| scope.spawn(open).join().expect("it looks"));
        assert!(
            said.contains("energy_uj: Permission denied") && said.ends_with("only root may read it"),
            "{said}"
        );
    }
}
