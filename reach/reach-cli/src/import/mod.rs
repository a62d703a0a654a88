//! `tailwright import`: the limits that are set today, and whether they add up.

mod audited;
pub(crate) mod page;
pub(crate) mod text;

use audited::AuditedSurvey;
use clap::Args;
use clap::builder::PossibleValuesParser;
use cli::exit::VerbAnswer;
use cli::terminal;
use limits::{AuditSettings, AuditVerdict, READERS, audit, survey};
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use std::path::{Path, PathBuf};
use units::{ByteRate, Bytes};
use workload::profile_file::read_profile;

const HELP: &str = "\
Examples:
  tailwright import /sys/fs/cgroup /etc/systemd /proc
      groups, units and running virtual machines of this host
  tailwright import /sys/fs/cgroup --storage profile.json
      compare with a device that `tailwright profile` measured
  kubectl get sc,vac,pvc -A -o yaml | tailwright import -
  tailwright import /etc/libvirt/qemu --storage profile.json \\
      --one-device --report page.html
  tc class show dev eth0 > eth0.txt && tailwright import eth0.txt
  ceph config dump | tailwright import - --json

Nothing is changed. Formats are recognised by content and name: control groups (1 and 2), systemd units and \
drop-ins, policies of `plan`, libvirt domains, QEMU command lines, tc lists, `ceph config dump`, Kubernetes \
classes and claims. docs/guides/audit-what-is-set.md reads an answer.

Exit codes: 0 the limits add up, or nothing says how much a device serves; 1 they do not, some tenant has no limit, \
or no limit was found; 2 bad input.";

/// Read the limits that are set today: do they add up against what the device serves?
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ImportArgs {
    /// Files and folders that set limits, such as /sys/fs/cgroup, /etc/systemd or /proc.
    #[arg(value_name = "FILE|FOLDER", required = true)]
    sources: Vec<PathBuf>,
    /// Device profile of the storage at every place (from `tailwright profile`).
    #[arg(long, value_name = "PROFILE.json", alias = "profile")]
    storage: Option<PathBuf>,
    /// Add up all limits of storage as limits of one device, such as images of virtual machines on one disk.
    #[arg(long)]
    one_device: bool,
    /// Size of all requests; without it, every size of the profile from 4KiB on counts.
    #[arg(long, value_name = "SIZE", requires = "storage")]
    request: Option<Bytes>,
    /// Link bandwidth of every server and device.
    #[arg(long, value_name = "RATE")]
    network: Option<ByteRate>,
    /// Read every file in this format, whatever its name and content.
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(READERS.map(|reader| reader.name)))]
    reader: Option<String>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: limits, sums and whatever was not understood.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ImportArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.report.as_deref(), "report")?;
    let settings = AuditSettings {
        profile: args.storage.as_deref().map(read_profile).transpose()?,
        is_one_device: args.one_device,
        request: args.request,
        network_bytes_per_s: args.network.map(ByteRate::bytes_per_sec),
    };
    let paths: Vec<&Path> = args.sources.iter().map(PathBuf::as_path).collect();
    let survey = survey(&paths, args.reader.as_deref())?;
    let audit = audit(&survey, &settings);
    let audited = AuditedSurvey { survey: &survey, audit: &audit };
    let written = write_wanted(args.report.as_deref(), "report", || page::html(&audited));
    if args.json {
        terminal::print(&text::json(&audited));
    } else {
        terminal::print_text(&text::text(&audited, &std::env::args_os().skip(1).collect::<Vec<_>>()));
    }
    written?;
    Ok(match audit.verdict {
        AuditVerdict::AddsUp | AuditVerdict::NoCapacity => VerbAnswer::Yes,
        AuditVerdict::NothingFound
        | AuditVerdict::DependsOnSize
        | AuditVerdict::Unlimited
        | AuditVerdict::Oversubscribed => VerbAnswer::No,
    })
}
