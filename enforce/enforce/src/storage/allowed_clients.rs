//! Clients that may connect at each front.

use crate::address::AddressPrefix;
use crate::deployment::ServerStorage;
use std::net::IpAddr;

/// Networks of each front whose clients may connect, by the number of the front; `None` if all may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AllowedClients(Vec<Option<Vec<AddressPrefix>>>);

impl AllowedClients {
    /// Collects the networks that the fronts of a server allow. A front has a number for each pair of its
    /// addresses.
    ///
    /// # Errors
    /// When an address of a front cannot be read.
    pub(super) fn new(storage: &ServerStorage) -> Result<Self, String> {
        let mut allowed = Vec::new();
        for front in &storage.front {
            allowed.extend(front.pairs()?.iter().map(|_| front.allow.clone()));
        }
        Ok(Self(allowed))
    }

    /// Returns true if a client at this address may connect at the front with this number.
    pub(super) fn permits(&self, front: usize, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let Some(Some(networks)) = self.0.get(front) else { return true };
        networks.iter().any(|network| network.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_a_front_has_its_list() {
        let storage: ServerStorage = toml::from_str(
            r#"
            profile = "-"
            front = [
                { protocol = "nfs", listen = "::", forward = "::1", allow = ["10.0.0.0/24", "fd00::7"] },
                { protocol = "nbd", listen = "::", forward = "::1" },
            ]"#,
        )
        .expect("fields of a hosts file");
        let allowed = AllowedClients::new(&storage).expect("addresses");
        for (address, is_permitted) in [
            ("10.0.0.7", true),
            ("::ffff:10.0.0.7", true),
            ("fd00::7", true),
            ("fd00::8", false),
            ("10.0.1.7", false),
            ("::ffff:10.0.1.7", false),
        ] {
            let address = address.parse().expect("an address");
            // NFS and MOUNT; NBD is open to all.
            let permits = [0, 1, 2].map(|front| allowed.permits(front, address));
            assert_eq!(permits, [is_permitted, is_permitted, true], "{address}");
        }
    }
}
