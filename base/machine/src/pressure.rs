//! CPU pressure: the kernel's pressure stall information.

use std::time::Duration;

/// Time since boot in which at least one task of this machine was ready and had no CPU. The difference between two
/// readings over the time between them is the share of that time. None where the kernel does not count it.
pub fn cpu() -> Option<Duration> {
    some_total(&std::fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, the last in microseconds.
fn some_total(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split(' ').find_map(|field| field.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_counts() {
        let text = "some avg10=1.20 avg60=0.80 avg300=0.10 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(some_total(text), Some(Duration::from_micros(1500)));
        for bad in ["", "full avg10=0.00 total=7", "some avg10=0.00", "some total=x"] {
            assert_eq!(some_total(bad), None, "{bad}");
        }
    }

    #[test]
    fn it_does_not_shrink() {
        match (cpu(), cpu()) {
            (Some(before), Some(after)) => assert!(before <= after),
            _ => testkit::skip("the kernel counts no pressure (CONFIG_PSI)"),
        }
    }
}
