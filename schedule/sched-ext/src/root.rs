//! The scheduler above that of a control group: fair shares for the threads of all other groups.

use crate::account::{
    AttachError, AttachedOperations, CPU_SET, KernelAccount, OperationValues, possible_cpus,
};
use crate::complaint::{refused, unsuitable};
use crate::control_group::ControlGroup;
use crate::kernel_types::KernelStructure;
use crate::object::{Arena, ObjectConstants, RootMaps, SchedulerKind, SchedulerMaps, SchedulerObject};
use crate::probe::{self, ROOT_NAME};
use crate::settings::OldestFirstSettings;
use crate::shared::SchedulerControl;
use machine::bpf::MappedWords;
use model::OperationError;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The attached scheduler. It is detached on drop, and by the kernel when the process ends.
#[derive(Debug)]
pub(crate) struct RootScheduler {
    attached: Option<AttachedOperations>,
    control: SchedulerControl,
    /// Kept open as long as the programs.
    _kept: (RootMaps, Arena),
}

impl RootScheduler {
    /// Attaches the scheduler. It permits one group at a time to have a scheduler, and reserves the share
    /// of all other threads.
    pub(crate) fn attach(
        kernel: &KernelAccount,
        of_group: &SchedulerMaps,
        group: &ControlGroup,
        settings: &OldestFirstSettings,
        watchdog: Duration,
    ) -> Result<Self, OperationError> {
        let cpus = possible_cpus()?;
        let failed = |error: std::io::Error| refused("the maps of the scheduler above the group", &error);
        let arena = Arena::create().map_err(failed)?;
        put_all(&arena.memory, cpus.count, kernel.structure(CPU_SET)?)?;
        let constants = ObjectConstants::Root {
            cpus_count: cpus.end,
            all_cids: arena.memory.as_ptr().expose_provenance() as u64,
        };
        let object = SchedulerObject::relocated(SchedulerKind::Root, &kernel.bytes, &kernel.types, constants);
        let mut object = object.map_err(unsuitable)?;
        let maps = object.create_root_maps(of_group, &arena).map_err(failed)?;
        let control = SchedulerControl::of(&maps.control, &maps.cpus, &of_group.slots).map_err(failed)?;
        control.put_watchdog(watchdog);
        control.set(&OldestFirstSettings { untagged_permille: group.outside_permille(), ..*settings })?;
        let values = OperationValues { name: ROOT_NAME, is_partial: false, watchdog, group: None };
        let attached = kernel.attach(&object, of_group.types.as_fd(), values);
        let attached = attached.map_err(|error| match error {
            AttachError::Other(error) => error,
            AttachError::Refused(error) => probe::refused_machine(&error),
        })?;
        Ok(Self { attached: Some(attached), control, _kept: (maps, arena) })
    }

    pub(crate) fn control(&self) -> &SchedulerControl {
        &self.control
    }

    pub(crate) fn take_out(&mut self) {
        self.attached = None;
    }
}

/// Writes the kernel's set of all CPUs, of which there are `count`, to the beginning of the memory.
fn put_all(memory: &MappedWords, count: u32, set: &KernelStructure) -> Result<(), OperationError> {
    let place = |name: &str| {
        let place = set.member(name).map(|(_, at)| at);
        place.ok_or_else(|| unsuitable(format!("the kernel's sets of CPUs have no {name}")))
    };
    // The kernel expects one word more than necessary.
    let words = count.div_ceil(64) + 1;
    for (at, half) in [(place("base")?, 0), (place("nr_cids")?, count), (place("alloc_words")?, words)] {
        memory[at / 8].fetch_or(u64::from(half) << (at % 8 * 8), Relaxed);
    }
    let bits = memory[place("bits")? / 8..].iter().zip((0..count).step_by(64));
    for (word, first) in bits {
        let left = count - first;
        word.store(if left >= 64 { u64::MAX } else { (1 << left) - 1 }, Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_of_all_cpus_has_the_places_of_the_kernel() {
        let member = |name: &str, at: usize| (name.to_owned(), at);
        let members =
            vec![member("base", 0), member("nr_cids", 4), member("alloc_words", 8), member("bits", 16)];
        let set = KernelStructure { number: 1, bytes: 16, members };
        let memory = MappedWords::wiped_on_fork().expect("a page of zeros");
        put_all(&memory, 70, &set).expect("all places are known");
        let words: Vec<u64> = memory[..6].iter().map(|word| word.load(Relaxed)).collect();
        assert_eq!(words, [70 << 32, 3, u64::MAX, 0x3f, 0, 0]);
        let unknown = KernelStructure { members: vec![member("nr_bits", 4)], ..set };
        assert!(put_all(&memory, 70, &unknown).is_err());
    }
}
