//! Access that a deployment grants, probably unintentionally.

use crate::deployment::{Deployment, DeploymentClient};
use wire::ExportSource;

/// Returns warnings about entries that make any NBD client a client of the workload: those with an export
/// and without an address. The client chooses the name of its export, and many servers grant any name.
pub(super) fn open_exports(deployment: &Deployment, server: &str) -> Vec<String> {
    let server = deployment.servers.iter().find(|known| known.name == server);
    let storage = server.and_then(|server| server.storage.as_ref());
    let mut fronts = storage.iter().flat_map(|storage| &storage.front);
    if !fronts.any(|front| front.protocol.row().export == ExportSource::Handshake) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // An NFS server itself controls the access to exports.
        assert_eq!(warnings("nfs", ""), [""; 0]);
    }
}
