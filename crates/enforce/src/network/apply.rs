//! Brings hosts to what is wanted of them and back: reads what is there, runs the difference, and on an error goes
//! back to what was made before.

use super::change::{self, Found, Step};
use super::found::{self, FoundDevice, Place};
use super::state::{Before, Made, State, Store};
use super::target::{self, Target};
use super::wanted::WantedHost;
use crate::command::Run;
use crate::deployment::{Filters, Host};
use model::OperationError;
use std::time::{Duration, Instant};

/// How classes are waited for that are to be removed.
const DRAIN_MAX: Duration = Duration::from_secs(2);
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// What a run may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Change nothing.
    pub dry_run: bool,
    /// Take over devices that somebody else has set up.
    pub replace: bool,
}

/// What was done to a host, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the host.
    pub host: String,
    /// As a shell takes it, in order; none when everything is as it should be.
    pub commands: Vec<String>,
    /// Where the host cannot do all that is wanted, and what was lost.
    pub warnings: Vec<String>,
}

/// Brings `wanted.host` to what is wanted of it. Does nothing where it is so already.
///
/// # Errors
/// Devices that are not there, that somebody else has set up (without [`Options::replace`]), and what a program of
/// the system refuses; then the host is as it was before, or the message says that it is not.
pub fn apply(
    run: &mut dyn Run,
    wanted: &WantedHost,
    store: &Store,
    options: Options,
) -> Result<Report, OperationError> {
    let mut session = Session::open(run, wanted, store, options.dry_run)?;
    if !options.replace {
        session.refuse_foreign()?;
    }
    let (target, mut warnings) = target::target(wanted, &session.found.devices, &mut session.state.slots);
    warnings.append(&mut session.warnings);
    let steps = session.steps(&target);
    let commands = steps.iter().map(ToString::to_string).collect();
    let mut report = Report { host: wanted.host.name.clone(), commands, warnings };
    if options.dry_run || (steps.is_empty() && !session.state.underway) {
        return Ok(report);
    }
    session.remember()?;
    match session.execute(&steps) {
        Ok(lost) => report.warnings.extend(lost),
        Err(fault) => return Err(session.roll_back(fault)),
    }
    session.conclude(target)?;
    Ok(report)
}

/// Gives the devices of a host back as they were found.
///
/// # Errors
/// As [`apply`]; what was found is then still remembered.
pub fn remove(
    run: &mut dyn Run,
    wanted: &WantedHost,
    store: &Store,
    options: Options,
) -> Result<Report, OperationError> {
    let nothing = WantedHost { host: wanted.host.clone(), devices: Vec::new() };
    let mut session = match Session::open(run, &nothing, store, options.dry_run) {
        Ok(session) => session,
        // Queues went with the namespace.
        Err(fault) if fault.message.contains(NO_NAMESPACE) => return gone(&wanted.host.name, store, options),
        Err(fault) => return Err(fault),
    };
    let steps = session.steps(&Target::default());
    let commands = steps.iter().map(ToString::to_string).collect();
    let mut warnings = std::mem::take(&mut session.warnings);
    for (name, before) in session.state.before.iter().filter(|(_, before)| is_foreign(before)) {
        warnings.push(format!("{name} had '{}', which is not put back", before.qdisc));
    }
    if !options.dry_run {
        session.execute(&steps)?;
        store.forget(&wanted.host.name)?;
    }
    Ok(Report { host: wanted.host.name.clone(), commands, warnings })
}

/// What iproute2 says of a namespace that is not there.
const NO_NAMESPACE: &str = "Cannot open network namespace";

fn gone(host: &str, store: &Store, options: Options) -> Result<Report, OperationError> {
    if !options.dry_run {
        store.forget(host)?;
    }
    let warnings = vec![format!("{host}: its network namespace is not there any more")];
    Ok(Report { host: host.to_owned(), commands: Vec::new(), warnings })
}

fn is_foreign(before: &Before) -> bool {
    FoundDevice { qdisc: before.qdisc.clone(), ..FoundDevice::default() }.is_foreign()
}

/// One run on one host.
struct Session<'a> {
    run: &'a mut dyn Run,
    store: &'a Store,
    host: &'a str,
    place: Place,
    state: State,
    found: Found,
    /// Whether our table of nftables may be there, now or in the end.
    rules: bool,
    warnings: Vec<String>,
}

impl<'a> Session<'a> {
    /// Reads what is remembered and what is there.
    fn open(
        run: &'a mut dyn Run,
        wanted: &'a WantedHost,
        store: &'a Store,
        dry: bool,
    ) -> Result<Self, OperationError> {
        let host = wanted.host.name.as_str();
        let state = store.load(host)?.unwrap_or_else(State::new);
        let place = Place(wanted.host.netns.clone());
        let by_nft = wanted.host.filters == Filters::Nft && !wanted.host.switch;
        let rules =
            !state.made.target.nft.is_empty() || by_nft && (state.underway || !wanted.devices.is_empty());
        let found = Found::default();
        let mut session = Self { run, store, host, place, state, found, rules, warnings: Vec::new() };
        let names: Vec<&str> = wanted.devices.iter().map(|device| device.name.as_str()).collect();
        match session.look_first(&names) {
            Ok(found) => session.found = found,
            Err(fault) if dry => {
                session
                    .warnings
                    .push(format!("{host}: {}; shown as for devices that nobody has set up", fault.message));
                session.found.devices =
                    names.iter().map(|name| ((*name).to_owned(), FoundDevice::untouched())).collect();
            }
            Err(fault) => {
                return Err(OperationError { message: format!("{host}: {}", fault.message), ..fault });
            }
        }
        Ok(session)
    }

    /// The host now: these devices and those that were changed earlier and are still there.
    fn look_first(&mut self, names: &[&str]) -> Result<Found, OperationError> {
        let remembered: Vec<String> = self.state.before.keys().cloned().collect();
        let present = self.still_there(&remembered)?;
        let mut names: Vec<&str> = names.to_vec();
        names.extend(present.iter().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        self.look(&names)
    }

    fn look(&mut self, names: &[&str]) -> Result<Found, OperationError> {
        let devices = found::devices(self.run, &self.place, names)?;
        let nft = if self.rules { found::table(self.run, &self.place)? } else { String::new() };
        Ok(Found { devices, nft })
    }

    /// Devices come and go: those that went need nothing any more.
    fn still_there(&mut self, names: &[String]) -> Result<Vec<String>, OperationError> {
        let mut present = Vec::new();
        for name in names {
            match found::devices(self.run, &self.place, &[name]) {
                Ok(_) => present.push(name.clone()),
                Err(fault) if fault.blame == model::Blame::Input => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(present)
    }

    fn refuse_foreign(&self) -> Result<(), OperationError> {
        let foreign = |(name, device): (&String, &FoundDevice)| {
            let unknown = device.is_ours() && !self.state.before.contains_key(name);
            (device.is_foreign() || unknown).then(|| (name.clone(), device.qdisc.clone()))
        };
        match self.found.devices.iter().find_map(foreign) {
            Some((name, qdisc)) => Err(OperationError::machine(format_args!(
                "{}: somebody has set up {name} already: {qdisc}",
                self.host
            ))
            .hint("--replace takes it over; --remove cannot put that back")),
            None => Ok(()),
        }
    }

    fn steps(&self, target: &Target) -> Vec<Step> {
        change::steps(&self.place, &self.found, &self.state.made, target, &self.state.before)
    }

    /// Before the first change: how devices are, unless that is known from an earlier run.
    fn remember(&mut self) -> Result<(), OperationError> {
        for (name, device) in &self.found.devices {
            let ours = device.is_ours();
            self.state.before.entry(name.clone()).or_insert_with(|| Before {
                qdisc: if ours { String::new() } else { device.qdisc.clone() },
                gso_max_size: device.gso_max_size,
                gso_max_segs: device.gso_max_segs,
            });
        }
        self.state.underway = true;
        self.store.save(self.host, &self.state)
    }

    /// What was lost.
    fn execute(&mut self, steps: &[Step]) -> Result<Vec<String>, OperationError> {
        let mut lost = Vec::new();
        for step in steps {
            match step {
                Step::Run(command) => drop(self.run.run(command)?),
                Step::Drain { device, classes } => lost.extend(self.drain(device, classes)?),
            }
        }
        Ok(lost)
    }

    fn drain(&mut self, device: &str, classes: &[u16]) -> Result<Option<String>, OperationError> {
        let start = Instant::now();
        loop {
            let bytes = found::backlog(self.run, &self.place, device, classes)?;
            if bytes == 0 {
                return Ok(None);
            }
            if start.elapsed() > DRAIN_MAX {
                return Ok(Some(format!(
                    "{device}: {bytes} bytes still waited in classes that were removed"
                )));
            }
            std::thread::sleep(DRAIN_POLL);
        }
    }

    /// Looks at everything again.
    fn look_again(&mut self) -> Result<Found, OperationError> {
        let names: Vec<String> = self.found.devices.keys().cloned().collect();
        self.look(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// To what the last run that succeeded made, or to what was found.
    fn roll_back(&mut self, cause: OperationError) -> OperationError {
        let made = self.state.made.target.clone();
        let mut back = || {
            self.found = self.look_again()?;
            let steps = self.steps(&made);
            self.execute(&steps)?;
            if made == Target::default() { self.store.forget(self.host) } else { self.conclude(made.clone()) }
        };
        let message = match back() {
            Ok(()) => format!("{}: {}; the host is as it was before", self.host, cause.message),
            Err(fault) => {
                format!("{}: {}; going back failed, too: {}", self.host, cause.message, fault.message)
            }
        };
        OperationError { message, ..cause }
    }

    /// Records what was made.
    fn conclude(&mut self, target: Target) -> Result<(), OperationError> {
        let found = self.look_again()?;
        let devices = || found.devices.iter().filter(|(name, _)| target.devices.contains_key(*name));
        self.state.made = Made {
            classes: devices().map(|(name, device)| (name.clone(), device.classes.clone())).collect(),
            filters: devices().map(|(name, device)| (name.clone(), device.filters.clone())).collect(),
            nft: found.nft.clone(),
            target,
        };
        self.forget_unused();
        self.state.underway = false;
        self.store.save(self.host, &self.state)
    }

    /// Numbers of lanes and devices that are gone are free again.
    fn forget_unused(&mut self) {
        let devices = &self.state.made.target.devices;
        self.state.before.retain(|name, _| devices.contains_key(name));
        self.state.slots.retain(|name, _| devices.contains_key(name));
        for (name, slots) in &mut self.state.slots {
            slots.retain(|_, base| (*base..*base + 8).any(|id| devices[name].classes.contains_key(&id)));
        }
    }
}

/// Which of the hosts are on this machine: those that are network namespaces, and the one with the machine's name.
pub fn is_here(host: &Host, hostname: &str) -> bool {
    host.netns.is_some() || host.name == hostname
}
