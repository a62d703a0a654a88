//! Disciplines as text: `fifo`, `round-robin(slice=50us)`, `orf(c=8, slice=50us)`.

use ::discipline::serve::{
    DisciplineSpec, FairSchedulerParameters, LimitScope, LimitedSharingParameters, PoolEntrance, QueueChoice,
};
use std::str::FromStr;
use units::Nanos;

const EXPECTED: &str = "expected a discipline: fifo, lifo, random-request, random-worker, shortest-queue, \
    two-choices, oldest-first, oldest-first-preemptive, priority(levels=2), priority-preemptive(levels=2), \
    edf(10ms, 100ms), edf-preemptive(10ms, 100ms), edf-limited(c=8, slice=50us, 10ms, 100ms), proportional(4, 1), sharing, sharing(c=8), \
    round-robin(slice=50us), limited(c=8, slice=50us), orf(c=8, slice=50us, count=pool, entrance=back) or \
    fair(latency=6ms, granularity=750us, wakeup=1ms, credit=0us)";

/// A discipline with its parameters; an error says what was expected.
pub(crate) fn parse_discipline(text: &str) -> Result<DisciplineSpec, String> {
    let mut call = DisciplineText::read(text)?;
    let kind = match call.name {
        "fifo" => DisciplineSpec::Fifo,
        "lifo" => DisciplineSpec::Lifo,
        "random-request" => DisciplineSpec::RandomOrder,
        "random-worker" => DisciplineSpec::Split(QueueChoice::Random),
        "shortest-queue" => DisciplineSpec::Split(QueueChoice::Shortest),
        "two-choices" => DisciplineSpec::Split(QueueChoice::TwoChoices),
        "oldest-first" => DisciplineSpec::OldestFirst,
        "oldest-first-preemptive" => DisciplineSpec::PreemptiveOldestFirst,
        "priority" => DisciplineSpec::Priority { levels: call.key("levels")? },
        "priority-preemptive" => DisciplineSpec::PreemptivePriority { levels: call.key("levels")? },
        "edf" => DisciplineSpec::Deadline { allowed: call.times()? },
        "edf-preemptive" => DisciplineSpec::PreemptiveDeadline { allowed: call.times()? },
        "edf-limited" => {
            let sharing = oldest_first(&mut call)?;
            DisciplineSpec::LimitedDeadline { sharing, allowed: call.times()? }
        }
        "proportional" => DisciplineSpec::Proportional { weights: call.list()? },
        "sharing" => DisciplineSpec::Sharing { limit: call.optional("c")? },
        "round-robin" => DisciplineSpec::Limited(LimitedSharingParameters::round_robin(call.time("slice")?)),
        "limited" => DisciplineSpec::Limited(LimitedSharingParameters::without_age(
            call.key("c")?,
            call.time("slice")?,
        )),
        "orf" => DisciplineSpec::Limited(oldest_first(&mut call)?),
        "fair" => DisciplineSpec::Fair(FairSchedulerParameters {
            latency: call.time("latency")?,
            min_granularity: call.time("granularity")?,
            wakeup_granularity: call.optional::<Nanos>("wakeup")?.map(|time| time.0),
            credit: call.optional::<Nanos>("credit")?.unwrap_or_default().0,
        }),
        _ => return Err(format!("{EXPECTED}; found '{text}'")),
    };
    call.end()?;
    kind.check().map_err(|error| format!("'{text}': {error}"))?;
    Ok(kind)
}

/// The parameters of TailClipper's discipline. The paper leaves open what c counts and where an old arrival goes.
fn oldest_first(call: &mut DisciplineText) -> Result<LimitedSharingParameters, String> {
    let usual = LimitedSharingParameters::oldest_first(call.key("c")?, call.time("slice")?);
    let count = call.word("count", &[("pool", LimitScope::Pool), ("queue", LimitScope::Queue)])?;
    let entrances = [
        ("back", PoolEntrance::Back),
        ("front", PoolEntrance::Front),
        ("preempt", PoolEntrance::Preempt),
        ("wait", PoolEntrance::Wait),
    ];
    let entrance = call.word("entrance", &entrances)?;
    Ok(LimitedSharingParameters {
        count: count.unwrap_or(usual.count),
        entrance: entrance.unwrap_or(usual.entrance),
        ..usual
    })
}

/// A name with arguments that have not been taken yet.
struct DisciplineText<'a> {
    text: &'a str,
    name: &'a str,
    left: Vec<&'a str>,
}

impl<'a> DisciplineText<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self { text, name: text, left: Vec::new() });
        };
        let arguments = rest.strip_suffix(')').ok_or_else(|| format!("'{text}': expected ')' at the end"))?;
        Ok(Self { text, name: name.trim(), left: arguments.split(',').map(str::trim).collect() })
    }

    /// Takes the value of a key, if it is given.
    fn optional<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        for index in 0..self.left.len() {
            if let Some((name, value)) = self.left[index].split_once('=')
                && name.trim() == key
            {
                self.left.remove(index);
                return self.parse(value).map(Some);
            }
        }
        Ok(None)
    }

    /// Takes the value of a key that must be one of some words. Returns the meaning of the word.
    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(given) = self.optional::<String>(key)? else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == given) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                Err(format!("'{}': expected {key}={}, found '{given}'", self.text, words.join(" or ")))
            }
        }
    }

    /// Takes the value of a key that must be given.
    fn key<T: FromStr>(&mut self, key: &str) -> Result<T, String> {
        let text = self.text;
        self.optional(key)?.ok_or_else(|| format!("'{text}': expected {key}=…"))
    }

    fn time(&mut self, key: &str) -> Result<u64, String> {
        Ok(self.key::<Nanos>(key)?.0)
    }

    /// Takes all arguments that are left, one for each class.
    fn list<T: FromStr>(&mut self) -> Result<Vec<T>, String> {
        if self.left.is_empty() {
            return Err(format!("'{}': expected a value per class", self.text));
        }
        std::mem::take(&mut self.left).into_iter().map(|value| self.parse(value)).collect()
    }

    /// Takes all arguments that are left as times, one for each class; none where the classes have SLOs.
    fn times(&mut self) -> Result<Vec<u64>, String> {
        let times = std::mem::take(&mut self.left);
        times.into_iter().map(|time| Ok(self.parse::<Nanos>(time)?.0)).collect()
    }

    fn parse<T: FromStr>(&self, value: &str) -> Result<T, String> {
        let value = value.trim();
        value
            .parse()
            .map_err(|_| format!("'{}': '{value}' is not what is expected there; {EXPECTED}", self.text))
    }

    /// Fails unless every argument has been taken.
    fn end(self) -> Result<(), String> {
        match self.left.first() {
            Some(left) => Err(format!("'{}': nothing is known of '{left}'; {EXPECTED}", self.text)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_arrive() {
        assert_eq!(parse_discipline("fifo"), Ok(DisciplineSpec::Fifo));
        let orf = LimitedSharingParameters::oldest_first(8, 50_000);
        assert_eq!(parse_discipline(" orf(slice=50us, c = 8) "), Ok(DisciplineSpec::Limited(orf)));
        let letter =
            LimitedSharingParameters { count: LimitScope::Queue, entrance: PoolEntrance::Front, ..orf };
        assert_eq!(
            parse_discipline("orf(c=8, slice=50us, count=queue, entrance=front)"),
            Ok(DisciplineSpec::Limited(letter))
        );
        assert_eq!(
            parse_discipline("orf(c=8, slice=50us, count=pool, entrance=back)"),
            Ok(DisciplineSpec::Limited(orf))
        );
        assert_eq!(
            parse_discipline("edf(1ms, 2ms)"),
            Ok(DisciplineSpec::Deadline { allowed: vec![1_000_000, 2_000_000] })
        );
        let sharing = LimitedSharingParameters { entrance: PoolEntrance::Preempt, ..orf };
        assert_eq!(
            parse_discipline("edf-limited(c=8, slice=50us, entrance=preempt, 1ms, 2ms)"),
            Ok(DisciplineSpec::LimitedDeadline { sharing, allowed: vec![1_000_000, 2_000_000] })
        );
        assert_eq!(parse_discipline("edf"), Ok(DisciplineSpec::Deadline { allowed: Vec::new() }));
        assert_eq!(parse_discipline("sharing"), Ok(DisciplineSpec::Sharing { limit: None }));
    }

    #[test]
    fn errors_name_the_cause() {
        for (text, part) in [
            ("fife", "found 'fife'"),
            ("orf(c=8)", "expected slice="),
            ("orf(c=0, slice=1us)", "at least 1"),
            ("edf-limited(c=0, slice=1us, 1ms)", "at least 1"),
            ("edf-limited(1ms, 2ms)", "expected c="),
            ("edf-limited(c=2, slice=1us, wait=1ms)", "'wait=1ms'"),
            ("proportional", "expected a value per class"),
            ("orf(c=8, slice=-1us)", "'-1us'"),
            ("fifo(c=8)", "'c=8'"),
            ("orf(c=8, slice=1us, count=heap)", "expected count=pool or queue"),
            ("limited(c=8, slice=1us, entrance=front)", "'entrance=front'"),
            ("round-robin(slice=1us", "expected ')'"),
        ] {
            let fault = parse_discipline(text).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }
}
