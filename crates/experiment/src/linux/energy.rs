//! The energy that the CPU packages of this machine have used, from the counters of the kernel (powercap, RAPL).
//!
//! Only zones of whole packages count: their subzones (cores, graphics) are in them, `psys` has them in itself, and a
//! package that two drivers report (`intel-rapl`, `intel-rapl-mmio`) is one. Memory has a subzone that is in no package on
//! servers, and does not count.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel has the zones.
pub(crate) const POWERCAP: &str = "/sys/class/powercap";
/// How the names of zones of a whole package begin.
const PACKAGE: &str = "package-";

/// Energy counters of all CPU packages, added up.
#[derive(Debug)]
pub(crate) struct EnergyMeter {
    zones: Vec<EnergyZone>,
    used_uj: u64,
}

#[derive(Debug)]
struct EnergyZone {
    counter: PathBuf,
    /// The largest value before the counter begins at zero again.
    range_uj: u64,
    last_uj: u64,
}

impl EnergyMeter {
    /// Opens the packages that stand in a folder; otherwise why energy is not known.
    pub(crate) fn open(root: &Path) -> Result<Self, String> {
        let zones = packages(root)?.into_iter().map(|folder| EnergyZone::open(&folder));
        Ok(Self { zones: zones.collect::<Result<_, _>>()?, used_uj: 0 })
    }

    /// Microjoules that all packages have used since this was opened; otherwise why that is not known any more. A counter
    /// begins anew after minutes at full power, so that this must be called more often than that.
    pub(crate) fn used_uj(&mut self) -> Result<u64, String> {
        for zone in &mut self.zones {
            self.used_uj += zone.advance()?;
        }
        Ok(self.used_uj)
    }
}

impl EnergyZone {
    fn open(folder: &Path) -> Result<Self, String> {
        let counter = folder.join("energy_uj");
        let (range_uj, last_uj) = (number(&folder.join("max_energy_range_uj"))?, number(&counter)?);
        Ok(Self { counter, range_uj, last_uj })
    }

    /// Microjoules since it was last looked at.
    fn advance(&mut self) -> Result<u64, String> {
        let (now, last) = (number(&self.counter)?, self.last_uj);
        self.last_uj = now;
        Ok(if now >= last { now - last } else { self.range_uj.saturating_sub(last).saturating_add(now) })
    }
}

/// The folders of the zones of whole packages, each package once.
fn packages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(root).map_err(|error| why_not(root, &error))?;
    let mut zones: Vec<String> =
        listing.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    zones.retain(|zone| is_top_level(zone));
    // Of a package that two drivers report, the one by the registers of the CPU.
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

/// `intel-rapl:0`, not its subzone `intel-rapl:0:1`, nor the driver `intel-rapl`.
fn is_top_level(zone: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    zone.split_once(':').is_some_and(|(_, number)| is_number(number))
}

fn number(path: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| why_not(path, &error))?;
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
        let mut meter = EnergyMeter::open(root.path()).expect("there are packages");
        assert_eq!(meter.used_uj(), Ok(0));
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
        assert_eq!(meter.used_uj(), Ok(37));
    }

    #[test]
    fn dies_of_one_package_are_zones_of_their_own() {
        let root =
            powercap(&[("intel-rapl:0", "package-0-die-0", 1), ("intel-rapl:1", "package-0-die-1", 1)]);
        let mut meter = EnergyMeter::open(root.path()).expect("there are packages");
        set(&root, "intel-rapl:0", 2);
        set(&root, "intel-rapl:1", 4);
        assert_eq!(meter.used_uj(), Ok(4));
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on() {
        let root = powercap(&[("intel-rapl:0", "package-0", 990)]);
        let mut meter = EnergyMeter::open(root.path()).expect("there is a package");
        for (now, used) in [(995, 5), (3, 13), (3, 13), (900, 910), (1, 1011)] {
            set(&root, "intel-rapl:0", now);
            assert_eq!(meter.used_uj(), Ok(used), "{now}");
        }
    }

    #[test]
    fn a_zone_that_vanishes_or_has_no_number_is_told() {
        let root = powercap(&[("intel-rapl:0", "package-0", 1), ("intel-rapl:1", "package-1", 1)]);
        let mut meter = EnergyMeter::open(root.path()).expect("there are packages");
        let counter = root.path().join("intel-rapl:1/energy_uj");
        fs::write(&counter, "much").expect("it is ours");
        assert_eq!(meter.used_uj(), Err(format!("{}: expected microjoules", counter.display())));
        fs::remove_dir_all(root.path().join("intel-rapl:1")).expect("it is ours");
        let said = meter.used_uj().expect_err("the package is gone");
        assert!(said.starts_with(&counter.display().to_string()), "{said}");
        fs::remove_file(root.path().join("intel-rapl:0/max_energy_range_uj")).expect("it is ours");
        assert!(EnergyMeter::open(root.path()).is_err_and(|said| said.contains("max_energy_range_uj")));
    }

    #[test]
    fn a_machine_without_packages_says_so() {
        let root = powercap(&[("intel-rapl:0:0", "package-0", 1), ("dtpm:0", "cluster", 1)]);
        let said = EnergyMeter::open(root.path()).expect_err("there is no package");
        assert!(said.ends_with("has no zone of a CPU package"), "{said}");
        let absent = root.path().join("absent");
        let said = EnergyMeter::open(&absent).expect_err("there is no such folder");
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
            EnergyMeter::open(root.path()).expect_err("it may not be read")
        };
        let said = std::thread::scope(|scope| scope.spawn(open).join().expect("it looks"));
        assert!(
            said.contains("energy_uj: Permission denied") && said.ends_with("only root may read it"),
            "{said}"
        );
    }
}
