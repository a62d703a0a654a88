//! CPU sets in the kernel's formats: lists such as `0-2,5`, and hexadecimal masks.

use std::collections::BTreeSet;

/// More CPUs than any kernel has; a list beyond that is a mistake.
const CPUS_MAX: usize = 8192;

/// Formats CPUs as a list such as `0-2,5`.
pub(crate) fn text(cpus: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let run = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<String>>().join(",")
}

/// Parses a list of CPUs.
pub(crate) fn parse(list: &str) -> Result<BTreeSet<usize>, String> {
    let mut cpus = BTreeSet::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < CPUS_MAX);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => return Err(format!("'{list}': expected CPUs such as 0-2,5")),
        }
    }
    Ok(cpus)
}

/// Formats CPUs as a mask: `3` for CPUs 0 and 1; groups of 32 CPUs, highest first.
pub(crate) fn mask(cpus: &BTreeSet<usize>) -> String {
    let groups = cpus.last().map_or(1, |last| last / 32 + 1);
    let bits = |group: usize| {
        let of_group = cpus.range(group * 32..(group + 1) * 32);
        of_group.fold(0u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    let highest = format!("{:x}", bits(groups - 1));
    (0..groups - 1).rev().fold(highest, |text, group| format!("{text},{:08x}", bits(group)))
}

/// Parses a mask of CPUs.
pub(crate) fn parse_mask(mask: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for (group, bits) in mask.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(bits, 16).ok()?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group * 32 + bit));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (list, hexadecimal) in
            [("0", "1"), ("0-2,5", "27"), ("31-33", "3,80000000"), ("64", "1,00000000,00000000")]
        {
            let cpus = parse(list).expect("a list");
            assert_eq!((text(&cpus).as_str(), mask(&cpus).as_str()), (list, hexadecimal));
            assert_eq!(parse_mask(hexadecimal).as_ref(), Some(&cpus));
        }
        assert_eq!((mask(&BTreeSet::new()).as_str(), text(&BTreeSet::new()).as_str()), ("0", ""));
        assert_eq!(parse_mask("00000000,00000003"), parse("0-1").ok());
        for bad in ["", "a", "3-1", "1,", "-1", "99999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
