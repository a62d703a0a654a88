//! Runs the benchmarks. Each is a program that prints a table of alternatives measured in the same run,
//! so ratios mean something on any machine; absolute figures depend on it.

use crate::tidy::manifest;
use crate::workspace::root;
use std::process::Command;

/// All benchmarks of the workspace, or the one called `name`, with arguments of its own.
pub(crate) fn run(name: Option<&str>, args: &[&str]) -> Result<(), String> {
    let mut ran = Vec::new();
    let mut known = Vec::new();
    for krate in manifest::workspace(&root())? {
        for bench in &krate.benches {
            known.push(bench.clone());
            if name.is_none_or(|name| name == bench) {
                one(&krate.package, bench, args)?;
                ran.push(bench.clone());
            }
        }
    }
    if ran.is_empty() {
        return Err(format!(
            "there is no benchmark '{}'; expected one of {}",
            name.unwrap_or("of any name"),
            known.join(", ")
        ));
    }
    eprintln!("\nran {}; compare figures of one run only", ran.join(", "));
    Ok(())
}

fn one(package: &str, bench: &str, args: &[&str]) -> Result<(), String> {
    eprintln!("\n=== cargo bench -p {package} --bench {bench}");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["bench", "--quiet", "-p", package, "--bench", bench, "--"])
        .args(args)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo bench: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("benchmark {bench}: {status}")) }
}
