//! Every line format; the first byte chooses it.

#![no_main]

use fuzz::exercise;
use trace::TraceFormat;

const FORMATS: [TraceFormat; 8] = [
    TraceFormat::Csv,
    TraceFormat::ArrivalHex,
    TraceFormat::Msr,
    TraceFormat::Spc,
    TraceFormat::Fio,
    TraceFormat::Blkparse,
    TraceFormat::Recording,
    TraceFormat::Tcpdump,
];

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let Some((&choice, content)) = content.split_first() else { return };
    let format = FORMATS[usize::from(choice >> 1) % FORMATS.len()];
    exercise(content, Some(format), choice & 1 == 1);
});
