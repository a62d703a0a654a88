//! Giving up root: the whole process becomes an ordinary user, for good.

use nix::unistd::{self, Gid, Uid, User};
use std::ffi::CString;
use std::fs;
use std::io;
use std::str::FromStr;

/// A user that a process can become, with its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrdinaryUser {
    /// Numeric id of the user, never root's.
    pub user: u32,
    /// Numeric id of its main group.
    pub group: u32,
    /// Numeric ids of all its groups.
    groups: Vec<u32>,
}

impl FromStr for OrdinaryUser {
    type Err = String;

    /// Parses the name of a user, or numeric ids of a user and a group such as `65534:65534`, which need
    /// no passwd entry.
    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.split_once(':') {
            Some((user, group)) => {
                let numbers = user.parse().ok().zip(group.parse().ok());
                numbers.map(|(user, group)| Self { user, group, groups: Vec::new() })
            }
            None => named(text)?,
        };
        match found {
            Some(found) if found.user == 0 => Err(format!("'{text}' is root")),
            Some(found) => Ok(found),
            None => {
                Err(format!("'{text}' is no user of this machine and not two numbers such as 65534:65534"))
            }
        }
    }
}

fn named(name: &str) -> Result<Option<OrdinaryUser>, String> {
    let failed = |error: nix::Error| format!("'{name}' cannot be looked up: {error}");
    let Some(User { uid, gid, .. }) = User::from_name(name).map_err(failed)? else { return Ok(None) };
    let name_of = CString::new(name).map_err(|_| format!("'{name}' is not a name"))?;
    let groups = unistd::getgrouplist(&name_of, gid).map_err(failed)?;
    let groups = groups.into_iter().map(Gid::as_raw).collect();
    Ok(Some(OrdinaryUser { user: uid.as_raw(), group: gid.as_raw(), groups }))
}

/// Drops root in all threads of this process, and checks that none can regain it.
///
/// # Errors
/// When the process lacks the privilege, or a thread has kept some of root's. The process must then not
/// continue.
pub fn become_user(user: &OrdinaryUser) -> io::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    unistd::setgroups(&groups)?;
    let uid = Uid::from_raw(user.user);
    let gid = Gid::from_raw(user.group);
    unistd::setresgid(gid, gid, gid)?;
    unistd::setresuid(uid, uid, uid)?;
    if unistd::setuid(Uid::from_raw(0)).is_ok() {
        return Err(io::Error::other("this process can be root again"));
    }
    check_all_threads(user)
}

/// Returns an error if a thread has another user, another group or a capability.
fn check_all_threads(user: &OrdinaryUser) -> io::Result<()> {
    for thread in fs::read_dir("/proc/self/task")? {
        let status = match fs::read_to_string(thread?.path().join("status")) {
            Ok(status) => status,
            // The thread has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Some(line) = status.lines().find(|line| keeps_privileges(line, user)) {
            return Err(io::Error::other(format!("a thread has kept privileges: {line}")));
        }
    }
    Ok(())
}

/// Returns true if a line of a thread's status shows an id other than this user's.
fn keeps_privileges(line: &str, user: &OrdinaryUser) -> bool {
    let Some((field, values)) = line.split_once(':') else { return false };
    let is_not = |number: u32| values.split_whitespace().any(|value| value.parse() != Ok(number));
    match field {
        "Uid" => is_not(user.user),
        "Gid" => is_not(user.group),
        "CapPrm" | "CapEff" | "CapAmb" => !values.trim().trim_start_matches('0').is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_names_or_numbers() {
        let numbers: OrdinaryUser = "65534:65533".parse().expect("two numbers");
        assert_eq!((numbers.user, numbers.group), (65534, 65533));
        for (text, said) in
            [("0:0", "is root"), ("root", "is root"), ("no-such-user-here", "no user"), ("1:x", "no user")]
        {
            assert!(text.parse::<OrdinaryUser>().is_err_and(|error| error.contains(said)), "{text}");
        }
    }

    #[test]
    fn whoever_keeps_something_is_found() {
        let user: OrdinaryUser = "10:20".parse().expect("two numbers");
        for line in ["Uid:\t10\t10\t0\t10", "Gid:\t0\t20\t20\t20", "CapEff:\t0000000000001000"] {
            assert!(keeps_privileges(line, &user), "{line}");
        }
        for line in
            ["Uid:\t10\t10\t10\t10", "CapPrm:\t0000000000000000", "CapBnd:\t000001ffffffffff", "Name:\tx"]
        {
            assert!(!keeps_privileges(line, &user), "{line}");
        }
    }
}
