//! `tailwright export`: a policy in the formats of other enforcers.

pub(crate) mod text;

use clap::Args;
use clap::builder::PossibleValuesParser;
use cli::exit::VerbAnswer;
use cli::quantities::{at_least_one, share};
use cli::terminal::{self, Talk, talk};
use limits::{DRIVERS, EXPORT_FORMATS, ExportSettings, ExportedBound, export};
use model::OperationError;
use operation::files::write_result;
use operation::policy_file::read_policy;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use units::{Bytes, plural};
use workload::profile_file::read_profile;

const HELP: &str = "\
Examples:
  tailwright export tailwright-demo/plan.json --enforcer cgroup \\
      --at 8:0 --storage tailwright-demo/ssd-profile.json -o limits
      limits/WORKLOAD/io.max for every workload
  tailwright export policy.json --enforcer systemd --at /dev/sda \\
      --storage profile.json --request 16KiB
      print drop-ins, for requests of 16 KiB
  tailwright export policy.json --enforcer vac --driver ebs.csi.aws.com \\
      --storage profile.json --classes 3
  tailwright export policy.json --enforcer tc --at eth0 \\
      --storage profile.json

Nothing is applied. What a format cannot express is said, and the bound of each workload is recomputed with what it \
can. `tailwright import` reads every format back.

Exit codes: 0 every promise of the policy is kept; 1 one is not, with the limits that the format can express; \
2 bad input.";

/// Write a policy in the format of another enforcer, and recompute its bounds.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ExportArgs {
    /// Policy from `tailwright plan -o`.
    #[arg(value_name = "POLICY.json")]
    policy: PathBuf,
    /// Enforcer whose format is written.
    #[arg(long = "enforcer", alias = "to", value_name = "FORMAT", value_parser = PossibleValuesParser::new(EXPORT_FORMATS.map(|format| format.name)))]
    to: String,
    /// Device, image or interface that limits are set for, in the words of the format: 8:0, /dev/sda or eth0.
    #[arg(long, alias = "device", value_name = "DEVICE", required_unless_present = "driver")]
    at: Option<String>,
    /// Device profile of the storage, which the plan was made with.
    #[arg(long, value_name = "PROFILE.json")]
    storage: PathBuf,
    /// Size of all requests for which device time is converted; the bounds are for such requests.
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    request: Bytes,
    /// Probability that a request is a read, which divides a limit between reads and writes.
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = share)]
    read_share: f64,
    /// Server of the policy whose limits are written, if it has several.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Storage driver of attribute classes.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(DRIVERS.map(|driver| driver.name)))]
    driver: Option<String>,
    /// Maximum number of attribute classes; without it, every workload has its own.
    #[arg(long, value_name = "N", value_parser = at_least_one, requires = "driver")]
    classes: Option<NonZeroUsize>,
    /// Write the files to this folder; it is made if it is not there.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print JSON: files, losses and bounds.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

pub fn run(args: &ExportArgs) -> Result<VerbAnswer, OperationError> {
    let format =
        EXPORT_FORMATS.iter().find(|format| format.name == args.to).expect("clap asks for one of them");
    if !(0.0..=1.0).contains(&args.read_share) {
        return Err(OperationError::input("--read-share: expected a share from 0 to 1"));
    }
    let driver = args.driver.as_deref().unwrap_or(DRIVERS[0].name);
    if args.at.is_none() && args.to != "vac" {
        let hint = format!("name it: --at {}", format.device);
        return Err(OperationError::input(format_args!("--at is needed for {}", format.what)).hint(hint));
    }
    let settings = ExportSettings {
        format: *format,
        device: args.at.clone().unwrap_or_default(),
        server: args.server.clone(),
        profile: read_profile(&args.storage)?,
        request: args.request,
        read_share: args.read_share,
        driver: *DRIVERS.iter().find(|row| row.name == driver).expect("clap asks for one of them"),
        classes: args.classes.map(NonZeroUsize::get),
    };
    let done = export(&read_policy(&args.policy)?, &settings)?;
    if let Some(folder) = &args.output {
        for file in &done.files {
            let path = folder.join(&file.name);
            let parent = path.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent).map_err(|error| {
                OperationError::machine(format_args!("{}: cannot make the folder: {error}", parent.display()))
            })?;
            write_result(&path, &file.text, "limits")?;
        }
        talk(Talk::Plain, format_args!("wrote {} to {}", plural(done.files.len(), "file"), folder.display()));
    }
    if args.json {
        terminal::print(&text::json(format.name, &done));
    } else {
        terminal::print_text(&text::answer(format, &done));
        if args.output.is_none() {
            terminal::print(&text::files(&done));
        }
    }
    Ok(if done.bounds.iter().all(ExportedBound::is_kept) { VerbAnswer::Yes } else { VerbAnswer::No })
}
