//! What a deployment allows that its author may not mean.

use crate::deployment::{Deployment, DeploymentClient, FrontProtocol, ServerStorage};
use model::{Policy, ServerEnforcement};
use std::fmt::{Arguments, Display};

/// The entries by which anybody can become a workload's client at a server of NBD: those with an export and no
/// address, because the client chooses the name of its export, and many servers grant any.
pub(super) fn open_exports(deployment: &Deployment, server: &str) -> Vec<String> {
    let server = deployment.servers.iter().find(|known| known.name == server);
    let storage = server.and_then(|server| server.storage.as_ref());
    let mut fronts = storage.iter().flat_map(|storage| &storage.front);
    if !fronts.any(|front| front.protocol == FrontProtocol::Nbd) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for DeploymentClient { workload, export, address, .. } in &deployment.clients {
        if let (Some(export), []) = (export, &address[..]) {
            warnings.push(format!(
                "client of {workload}: it has no address, so that whoever asks for the NBD export '{export}' is {workload}, if \
                 the server grants that name to every client"
            ));
        }
    }
    warnings
}

/// Where the hosts file has the devices of servers used in another way than the bounds of a policy count on.
pub fn broken_assumptions(policy: &Policy, deployment: &Deployment) -> Vec<String> {
    let mut warnings = Vec::new();
    for server in &deployment.servers {
        if let (Some(storage), Some(counted)) = (&server.storage, policy.enforcement_of(&server.name)) {
            let found = storage_assumptions(storage, counted).into_iter();
            warnings.extend(found.map(|warning| format!("server {}: {warning}", server.name)));
        }
    }
    warnings
}

/// What of the hosts file does not go with what the bounds of a policy count for the device.
pub(super) fn storage_assumptions(storage: &ServerStorage, counted: &ServerEnforcement) -> Vec<String> {
    let ServerEnforcement { channels, outstanding, reserve, .. } = *counted;
    let idle = "a channel may be idle while a request waits";
    let mut warnings = Vec::new();
    if let Some(own) = storage.outstanding.filter(|own| *own > outstanding) {
        let why = "a request may find more at the device than they count";
        warnings.push(breaks("outstanding", own, format_args!("{outstanding}"), why));
    }
    let beside = channels.saturating_sub(1);
    for (field, own, least) in [
        ("outstanding", storage.outstanding, channels),
        ("reads", storage.reads, channels),
        ("writes", storage.writes, channels),
        ("beside", storage.beside, beside),
    ] {
        if let Some(own) = own.filter(|own| *own < least) {
            warnings.push(breaks(field, own, format_args!("{least} or more"), idle));
        }
    }
    if let Some(own) = storage.reserve.filter(|own| *own < reserve) {
        let why = "more best-effort requests may be at the device than they count";
        warnings.push(breaks("reserve", own, format_args!("{reserve}"), why));
    }
    for (field, own) in [
        ("outstanding_bytes", storage.outstanding_bytes),
        ("reads_bytes", storage.reads_bytes),
        ("writes_bytes", storage.writes_bytes),
        ("beside_bytes", storage.beside_bytes),
    ] {
        warnings.extend(own.map(|own| breaks(field, own, format_args!("no bound on bytes"), idle)));
    }
    if let Some(own) = storage.batch.filter(|own| *own > 1) {
        let why = "a batch may exceed what they count at the device";
        warnings.push(breaks("batch", own, format_args!("1"), why));
    }
    warnings
}

fn breaks(field: &str, own: impl Display, counted: Arguments<'_>, why: &str) -> String {
    format!("storage.{field} is {own}, the policy's bounds count on {counted}: {why}, and they may not hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_do_not_count_is_named_with_both_values() {
        let warnings = |fields: &str| {
            let front = "{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }";
            let text = format!("profile = \"-\"\nfront = [{front}]\n{fields}");
            let storage = toml::from_str(&text).expect("fields of a hosts file");
            let counted = ServerEnforcement {
                channels: 4,
                outstanding: 6,
                beside: 5,
                reserve: 2,
                best_effort_request_s: 0.005,
                packet_bytes: 65536.0,
                proxy_s: 0.0,
            };
            storage_assumptions(&storage, &counted)
        };
        assert_eq!(warnings(""), [""; 0]);
        assert_eq!(warnings("outstanding = 6\nbeside = 3\nreserve = 2\nreads = 4\nbatch = 1"), [""; 0]);
        let more = warnings("outstanding = 7");
        assert_eq!(
            more,
            [
                "storage.outstanding is 7, the policy's bounds count on 6: a request may find more at the device than \
              they count, and they may not hold"
            ]
        );
        for (fields, said) in [
            (
                "outstanding = 3",
                "storage.outstanding is 3, the policy's bounds count on 4 or more: a channel",
            ),
            ("beside = 2", "storage.beside is 2, the policy's bounds count on 3 or more"),
            ("reads = 1", "storage.reads is 1"),
            ("writes = 3", "storage.writes is 3"),
            ("reserve = 1", "storage.reserve is 1, the policy's bounds count on 2: more best-effort"),
            ("outstanding_bytes = \"1MiB\"", "storage.outstanding_bytes is 1"),
            ("beside_bytes = \"1MiB\"", "storage.beside_bytes is 1"),
            ("batch = 8", "storage.batch is 8, the policy's bounds count on 1"),
        ] {
            let found = warnings(fields);
            assert!(found.len() == 1 && found[0].starts_with(said), "{fields}: {found:?}");
        }
    }

    #[test]
    fn an_export_without_an_address_is_open() {
        let text = |protocol: &str, address: &str| {
            format!(
                r#"
                host = [{{ name = "here", device.lo = "1Gbps" }}]
                [[server]]
                name = "ssd"
                host = "here"
                address = ["10.0.0.9"]
                storage = {{ profile = "-", front = [{{ protocol = "{protocol}", listen = "::1", forward = "::1" }}] }}
                [[client]]
                workload = "gold"
                host = "here"
                export = "disk"
                {address}"#
            )
        };
        let warnings = |protocol, address| {
            let deployment = Deployment::parse(&text(protocol, address)).expect("a hosts file");
            open_exports(&deployment, "ssd")
        };
        assert!(warnings("nbd", "")[0].contains("client of gold"));
        assert_eq!(warnings("nbd", "address = [\"10.0.0.1\"]"), [""; 0]);
        // A server of NFS says itself who has an export.
        assert_eq!(warnings("nfs", ""), [""; 0]);
    }
}
