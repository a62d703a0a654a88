//! Parser of the kernel's type information (BTF), as far as loading the scheduler needs it: numbers of
//! functions, members of structures, values of constants.
//!
//! The format is described in the kernel's `Documentation/bpf/btf.rst`. Truncated or inconsistent data is
//! refused.

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;

/// A structure of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelStructure {
    /// Number among the kernel's types.
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    /// Names of its members and their offsets in bytes.
    pub(crate) members: Vec<(String, usize)>,
}

impl KernelStructure {
    /// Returns the number of a member and its offset in bytes.
    pub(crate) fn member(&self, name: &str) -> Option<(u32, usize)> {
        let place = self.members.iter().position(|(member, _)| member == name)?;
        Some((u32::try_from(place).ok()?, self.members[place].1))
    }
}

/// Parsed types of the kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelTypes {
    functions: BTreeMap<String, u32>,
    structures: BTreeMap<String, KernelStructure>,
    constants: BTreeMap<String, u64>,
}

impl KernelTypes {
    /// Parses the functions, structures and constants whose names satisfy `is_wanted`.
    pub(crate) fn parse(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Self, String> {
        let sections =
            TypeSections::of(bytes).ok_or("the kernel's account of its types has no valid header")?;
        let mut found = Self::default();
        let mut at = 0;
        let mut number = 1;
        while at < sections.types.len() {
            let record = TypeRecord::at(&sections, at)
                .ok_or_else(|| format!("the kernel's account of its types is broken at type {number}"))?;
            if record.kind == Kind::Constants || is_wanted(record.name) {
                found.keep(&record, number, &sections, &is_wanted);
            }
            at += TYPE_BYTES + record.detail.len();
            number += 1;
        }
        Ok(found)
    }

    fn keep(
        &mut self,
        record: &TypeRecord<'_>,
        number: u32,
        sections: &TypeSections<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) {
        match record.kind {
            Kind::Function => {
                self.functions.insert(record.name.to_owned(), number);
            }
            Kind::Structure => {
                let members = record.members(sections);
                let structure = KernelStructure { number, bytes: record.size, members };
                self.structures.insert(record.name.to_owned(), structure);
            }
            Kind::Constants => {
                let wanted = record.constants(sections).into_iter().filter(|(name, _)| is_wanted(name));
                self.constants.extend(wanted.map(|(name, value)| (name.to_owned(), value)));
            }
            Kind::Other => {}
        }
    }

    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    pub(crate) fn structure(&self, name: &str) -> Option<&KernelStructure> {
        self.structures.get(name)
    }

    pub(crate) fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }
}

struct TypeSections<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

impl<'a> TypeSections<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let header = word(bytes, 4)?;
        let section = |at: usize| {
            let begin = word(bytes, at)?.checked_add(header)?;
            bytes.get(begin..begin.checked_add(word(bytes, at + 4)?)?)
        };
        (magic == MAGIC).then_some(())?;
        Some(Self { types: section(8)?, strings: section(16)? })
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        let text = self.strings.get(at..)?;
        std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_ne_bytes(four.try_into().ok()?)).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Structure,
    Constants,
    Function,
    Other,
}

struct TypeRecord<'a> {
    kind: Kind,
    name: &'a str,
    /// Size of a structure in bytes.
    size: u32,
    /// The structure has bit fields: the upper 8 bits of a member's offset are the size of its field.
    has_bit_fields: bool,
    /// Size of an element behind the type, bytes.
    element: usize,
    detail: &'a [u8],
}

impl<'a> TypeRecord<'a> {
    fn at(sections: &TypeSections<'a>, at: usize) -> Option<Self> {
        let info = word(sections.types, at + 4)?;
        let kind = info >> 24 & 0x1f;
        let count = info & 0xffff;
        // By kind: size of an element behind the type, and the number of elements.
        let (kind, element, times) = match kind {
            1 | 14 | 17 => (Kind::Other, 4, 1),
            2 | 7..=11 | 16 | 18 => (Kind::Other, 0, 0),
            12 => (Kind::Function, 0, 0),
            3 => (Kind::Other, 12, 1),
            4 => (Kind::Structure, 12, count),
            5 => (Kind::Other, 12, count),
            6 => (Kind::Constants, 8, count),
            13 => (Kind::Other, 8, count),
            15 => (Kind::Other, 12, count),
            19 => (Kind::Constants, 12, count),
            _ => return None,
        };
        let begin = at + TYPE_BYTES;
        Some(Self {
            kind,
            name: sections.name(word(sections.types, at)?)?,
            size: u32::try_from(word(sections.types, at + 8)?).ok()?,
            has_bit_fields: info >> 31 == 1,
            element,
            detail: sections.types.get(begin..begin + element * times)?,
        })
    }

    fn members(&self, sections: &TypeSections<'a>) -> Vec<(String, usize)> {
        let member = |element: &[u8]| {
            let bits = word(element, 8)?;
            let bits = if self.has_bit_fields { bits & 0xff_ffff } else { bits };
            Some((sections.name(word(element, 0)?)?.to_owned(), bits / 8))
        };
        self.detail.chunks_exact(self.element).filter_map(member).collect()
    }

    fn constants(&self, sections: &TypeSections<'a>) -> Vec<(&'a str, u64)> {
        let constant = |element: &[u8]| {
            let low = word(element, 4)? as u64;
            let high = if self.element == 12 { word(element, 8)? as u64 } else { 0 };
            Some((sections.name(word(element, 0)?)?, high << 32 | low))
        };
        self.detail.chunks_exact(self.element).filter_map(constant).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds type information with these types and names.
    pub(crate) fn account(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let types_bytes = u32::try_from(types.len() * 4).unwrap();
        let strings_bytes = u32::try_from(strings.len()).unwrap();
        for word in [24, 0, types_bytes, types_bytes, strings_bytes].iter().chain(types) {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    /// Names at 1 (s), 3 (a), 5 (b), 7 (SCX_X), 13 (f).
    const STRINGS: &[u8] = b"\0s\0a\0b\0SCX_X\0f\0";

    #[test]
    fn structures_constants_and_functions_are_found() {
        let types = [
            [1, 4 << 24 | 2, 16, 3, 9, 0, 5, 9].as_slice(),
            &[64, 0, 19 << 24 | 1, 8, 7, 5, 1],
            &[13, 12 << 24, 1],
        ]
        .concat();
        let types = KernelTypes::parse(&account(&types, STRINGS), |_| true).unwrap();
        let structure = types.structure("s").unwrap();
        assert_eq!((structure.number, structure.bytes, structure.member("b")), (1, 16, Some((1, 8))));
        assert_eq!(types.constant("SCX_X"), Some(1 << 32 | 5));
        assert_eq!(types.function("f"), Some(3));
        assert_eq!((types.function("g"), types.constant("f"), structure.member("c")), (None, None, None));
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let whole = account(&[1, 4 << 24 | 2, 16, 3, 9, 0, 5, 9, 64], STRINGS);
        assert!(KernelTypes::parse(&whole, |_| true).is_ok());
        for length in 0..whole.len() {
            assert!(KernelTypes::parse(&whole[..length], |_| true).is_err(), "{length}");
        }
        assert!(KernelTypes::parse(&account(&[1, 31 << 24, 0], STRINGS), |_| true).is_err());
    }

    #[test]
    fn the_account_of_this_kernel_is_read() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            return testkit::skip("this kernel does not describe its types");
        };
        let types = KernelTypes::parse(&bytes, |name| ["task_struct", "schedule"].contains(&name)).unwrap();
        assert!(types.structure("task_struct").and_then(|task| task.member("pid")).is_some());
        assert!(types.function("schedule").is_some());
    }
}
