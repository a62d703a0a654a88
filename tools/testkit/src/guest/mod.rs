//! Guests: a Debian kernel in QEMU without hardware support, with a test program as its first process.
//!
//! Guests count instructions as time, so that their clocks do not depend on the load of this machine.
//! Tests assert the order of figures and counts, never a time.

mod archive;
mod checks;
mod figures;
mod inside;
mod kernel_package;
mod machine;

pub use checks::{GuestCheck, run_checks};
pub use figures::GuestFigures;
pub use inside::{be_first_program, mount_in_guest, report_figure};
pub use kernel_package::GuestKernel;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A virtual machine of QEMU: its kernel, programs and modules.
#[derive(Debug)]
pub struct Guest<'a> {
    /// The kernel that is booted.
    pub kernel: &'a GuestKernel,
    /// Number of CPUs, which take turns. Linux 6.1 brings up only one.
    pub cpus: u32,
    /// The first program, which calls [`be_first_program`].
    pub program: &'a Path,
    /// The arguments of the first program, without spaces.
    pub arguments: &'a [&'a str],
    /// Other programs that the guest has, at the same paths as here.
    pub others: &'a [PathBuf],
    /// Modules of the kernel that are loaded before, in this order: the place in the kernel's folder, such as
    /// `fs/nfsd/nfsd`, and parameters behind a space.
    pub modules: &'a [&'a str],
    /// The folder that keeps kernels for the next run.
    pub cache: &'a Path,
}

/// Guests of one test program run one after the other.
static TURN: Mutex<()> = Mutex::new(());

impl Guest<'_> {
    /// Boots the guest and reads the figures that it prints. Skips and returns `None` if this machine
    /// cannot run guests, or is too busy.
    ///
    /// # Panics
    /// When the guest starts its checks and does not complete them.
    pub fn play(&self) -> Option<GuestFigures> {
        if !cfg!(target_arch = "x86_64") {
            crate::skip("the guest's kernel is one for x86-64");
            return None;
        }
        let emulator = crate::program("qemu-system-x86_64")?;
        // Tests of one program share the unpacked kernel, and each guest is to have a CPU.
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = self.modules.iter().map(|module| name_of(module)).collect();
        let files = kernel_package::image_and_modules(self.kernel, &names, self.cache);
        let (image, modules) = files
            .map_err(|reason| crate::skip(&format!("the guest's kernel cannot be had: {reason}")))
            .ok()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = folder.path().join("files.cpio");
        let modules = archive::with_modules(&modules, self.modules);
        std::fs::write(&files, archive::with_first_program(self.program, self.others, modules))
            .expect("the folder is ours");
        let run = || machine::run(&emulator, &image, &files, self.arguments, self.cpus);
        let mut played = run();
        if let Err(late) = &played
            && late.stands_still()
        {
            // Before version 8.1 the emulator gives no time to other CPUs beside one that never pauses.
            // Each case is reported.
            println!("the guest stood still; it printed:\n{}", late.text);
            crate::skip("the guest stood still once, and was begun again");
            played = run();
        }
        match played {
            Ok(console) => Some(GuestFigures::read(&console)),
            Err(late) => {
                println!("the guest was not done in time; it printed:\n{}", late.text);
                assert!(!late.stands_still(), "the guest has begun its checks and stands still");
                crate::skip("the guest was not done in time: the machine is too busy");
                None
            }
        }
    }
}

/// A module without its parameters.
fn name_of(module: &str) -> &str {
    module.split_once(' ').map_or(module, |(name, _)| name)
}
