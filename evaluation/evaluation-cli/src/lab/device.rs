//! `tailwright lab device`: an emulated SSD as an NBD server.

use clap::Args;
use cli::exit::VerbAnswer;
use cli::terminal::{self, Talk, talk};
use lab::device::{CHANNELS_MAX, LinearServiceTime, SsdModel};
use lab::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use model::OperationError;
use operation::files::write_result;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use units::{ByteRate, Bytes, Nanos};

const HELP: &str = "\
Examples:
  tailwright lab device
  tailwright lab device --channels 4 --read-time 400us+2ns/B \\
      --write-time 700us+5ns/B --export tank=1GiB
  tailwright lab device --profile-sizes 4KiB,64KiB --profile ssd.json
      what `tailwright plan` needs to know of it
  chrt -f 20 tailwright lab device --spin 20us   with real-time priority

A request takes base + slope * size in one of the channels, which take requests in the order in which they come. \
Bytes written are kept in memory until the end. Runs until it is killed.

Exit codes: 2 bad input; 3 the address is not available.";

/// An emulated SSD with known parameters, as an NBD server
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DeviceArgs {
    /// Where to listen; port 0 is any free one, and is printed.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10809")]
    listen: SocketAddr,
    /// Number of requests that a device serves at a time.
    #[arg(long, value_name = "N", default_value_t = SsdModel::LAB.channels, value_parser = clap::value_parser!(u32).range(1..=i64::from(CHANNELS_MAX)))]
    channels: u32,
    /// Time of a channel for a read.
    #[arg(long = "read-time", alias = "read", value_name = "BASE+SLOPE", default_value_t = SsdModel::LAB.read)]
    read: LinearServiceTime,
    /// Time of a channel for a write.
    #[arg(long = "write-time", alias = "write", value_name = "BASE+SLOPE", default_value_t = SsdModel::LAB.write)]
    write: LinearServiceTime,
    /// Most that all channels transfer together.
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<ByteRate>,
    /// A volume; the first is the default of clients that name none.
    #[arg(long, value_name = "NAME=SIZE", value_parser = export, default_value = "ssd=1GiB")]
    export: Vec<ExportedVolume>,
    /// Busy-wait so long before a completion: nearer to the model, and a busy CPU.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    spin: Nanos,
    /// Write the device's profile for planning to this file and end.
    #[arg(long, value_name = "PROFILE.json", requires = "profile_sizes")]
    profile: Option<PathBuf>,
    /// Request sizes at which the profile is exact.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', requires = "profile")]
    profile_sizes: Vec<Bytes>,
}

fn export(text: &str) -> Result<ExportedVolume, String> {
    let (name, size) = text.split_once('=').ok_or("expected NAME=SIZE, such as tank=1GiB")?;
    let size = size.parse::<Bytes>().map_err(|error| error.to_string())?.0;
    if name.len() > 4096 || size > 1 << 62 {
        return Err("names have at most 4096 bytes and volumes 2^62".to_owned());
    }
    Ok(ExportedVolume { name: name.to_owned(), size })
}

pub(crate) fn run(args: &DeviceArgs) -> Result<VerbAnswer, OperationError> {
    let DeviceArgs { channels, read, write, bandwidth, .. } = *args;
    let model = SsdModel { channels, read, write, bandwidth };
    if let Some(path) = &args.profile {
        if args.profile_sizes.iter().any(|size| size.0 == 0) {
            return Err(OperationError::input("--profile-sizes: requests of 0 bytes have no bandwidth"));
        }
        write_result(path, &model.profile(&args.profile_sizes).to_json(), "device profile")?;
        return Ok(VerbAnswer::Yes);
    }
    let exports = &args.export;
    if let Some(twice) =
        (1..exports.len()).find(|&at| exports[..at].iter().any(|e| e.name == exports[at].name))
    {
        return Err(OperationError::input(format_args!(
            "--export: '{}' is there twice",
            exports[twice].name
        )));
    }
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        OperationError::machine(format_args!("cannot listen on {}: {error}", args.listen))
            .hint("--listen 127.0.0.1:0 takes any free port")
    })?;
    let config = NbdServerConfig { model, exports: exports.clone(), spin: args.spin };
    let served =
        NbdServer::start(listener, config, Box::new(|line| talk(Talk::Plain, line))).and_then(|server| {
            terminal::print_text(&format!("emulated SSD ({model}) at nbd://{}\n", server.address()));
            server.wait()
        });
    served.map_err(|error| OperationError::machine(format_args!("the emulated SSD stopped: {error}")))?;
    Ok(VerbAnswer::Yes)
}
