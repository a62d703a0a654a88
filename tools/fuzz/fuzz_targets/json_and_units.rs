//! Device profiles, stored curves, policies, and all quantities of users. Every accepted input must be
//! usable: profiles print and read back, curves answer, quantities print.

#![no_main]

use model::{Policy, Slo};
use workload::burst::BurstCurve;
use workload::device::StorageProfile;
use units::{ByteRate, Bytes, Nanos, Percentile};

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let Ok(text) = std::str::from_utf8(content) else { return };
    if let Ok(profile) = StorageProfile::from_json(text) {
        assert!(StorageProfile::from_json(&profile.to_json()).is_ok(), "a profile reads back");
    }
    if let Ok(curve) = serde_json::from_str::<BurstCurve>(text) {
        assert!(curve.envelope().burst(0.0) >= curve.envelope().burst(1.0), "bursts fall with the rate");
    }
    let _ = serde_json::from_str::<Policy>(text);
    if let Ok(slo) = text.parse::<Slo>() {
        let _ = slo.to_string();
    }
    let _ = (text.parse::<Nanos>(), text.parse::<Bytes>(), text.parse::<ByteRate>(), text.parse::<Percentile>());
});
