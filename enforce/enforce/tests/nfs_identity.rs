//! Attribution of requests to a real NFS server: by the handle, independent of other mounts, addresses
//! and timing. And the server's own rules about addresses, through the proxy.

mod ganesha;
mod proxy;

use enforce::deployment::Deployment;
use enforce::storage::{ProxyOptions, ProxySnapshot};
use ganesha::{FOR_EVERYBODY, NOBODY, ROOT, RpcClient, export, in_namespaces, start_server};
use proxy::{Running, policy, profile};
use std::process::Command;

const COUNT: u32 = 20;

fn hosts(fields: &str) -> String {
    format!(
        r#"
        host = [{{ name = "here", device.v0 = "1Gbps" }}]
        [[server]]
        name = "ssd"
        host = "here"
        address = ["10.99.0.1"]
        [server.storage]
        profile = "none"
        front = [{{ protocol = "nfs", listen = "10.99.0.1", forward = "127.0.0.1", {fields} }}]
        [[client]]
        workload = "gold"
        host = "here"
        export = "/gold"
        [[client]]
        workload = "gold"
        host = "here"
        export = "/none"
        [[client]]
        workload = "bulk"
        host = "here"
        export = "/export""#
    )
}

fn start(fields: &str) -> Running {
    start_with(&hosts(fields))
}

fn start_with(hosts: &str) -> Running {
    let deployment = Deployment::parse(hosts).unwrap_or_else(|error| panic!("{error}\n{hosts}"));
    let policy = policy(&[("gold", 0, &[(1.0, 1.0)]), ("bulk", 1, &[(1.0, 1.0)])]);
    Running::start(ProxyOptions::new("ssd", deployment, Some(policy), profile()))
}

fn two_exports() -> [String; 2] {
    [export(1, "/export", FOR_EVERYBODY), export(2, "/gold", FOR_EVERYBODY)]
}

/// Returns the reads and writes of gold, of bulk, and of unknown clients.
fn seen(proxy: &Running) -> [u64; 3] {
    let snapshot: ProxySnapshot = proxy.remote.status().expect("it runs");
    ["gold", "bulk", "(unknown)"].map(|name| {
        let found = snapshot.workloads.iter().find(|seen| seen.workload == name);
        found.map_or(0, |seen| seen.requests)
    })
}

/// Returns the number of requests added to each while `work` runs.
fn added(proxy: &Running, work: impl FnOnce()) -> [u64; 3] {
    let before = seen(proxy);
    work();
    let after = seen(proxy);
    [0, 1, 2].map(|place| after[place] - before[place])
}

#[test]
fn requests_are_of_the_export_of_their_handles() {
    in_namespaces("requests_are_of_the_export_of_their_handles", &["nfs-ls"], || {
        let _server = start_server(&two_exports());
        let proxy = start("");
        // One host that uses both, over one connection.
        let mut client = RpcClient::nfs("10.99.0.2");
        let mut files = Vec::new();
        for path in ["/gold", "/export"] {
            let root = RpcClient::mountd("10.99.0.2").mount(ROOT, path).expect("it is granted");
            files.push(client.create(&root, "file"));
        }
        let each = u64::from(COUNT);
        let both = |client: &mut RpcClient| {
            for _ in 0..COUNT {
                assert!(client.read(&files[0], 1) && client.read(&files[1], 1));
            }
        };
        assert_eq!(added(&proxy, || both(&mut client)), [each, each, 0]);

        // Another client on the same host mounts other exports and a folder inside one, and unmounts
        // nothing.
        for (path, is_granted) in
            [("/gold", true), ("/export", true), ("/export/folder", true), ("/none", false)]
        {
            let granted = RpcClient::mountd("10.99.0.2").mount(NOBODY, path);
            assert_eq!(granted.is_ok(), is_granted, "{path}: {granted:?}");
        }
        assert_eq!(added(&proxy, || both(&mut client)), [each, each, 0]);

        // NFSv4 has no MOUNT.
        let cat = |path: &str| {
            let url = format!("nfs://10.99.0.1{path}/file?version=4");
            let program = testkit::program("nfs-ls").expect("looked for outside").with_file_name("nfs-cat");
            let output = Command::new(program).arg(&url).output().expect("a client starts");
            assert_eq!(output.stdout.len(), 4096, "{url}: {}", String::from_utf8_lossy(&output.stderr));
        };
        assert_eq!(added(&proxy, || cat("/gold"))[1..], [0, 0]);
        assert_eq!(added(&proxy, || cat("/export"))[0], 0);
        assert!(added(&proxy, || (cat("/gold"), cat("/export")).1).iter().take(2).all(|count| *count > 0));

        // Another proxy: clients keep their handles and do not mount again.
        drop(client);
        proxy.drain();
        let proxy = start("");
        let mut client = RpcClient::nfs("10.99.0.2");
        assert_eq!(added(&proxy, || both(&mut client)), [each, each, 0]);
        assert!(added(&proxy, || cat("/gold"))[0] > 0);
        drop(client);
        assert_eq!(proxy.drain().snapshot.cut, 0);
    });
}

#[test]
fn a_refused_mount_gives_nothing() {
    in_namespaces("a_refused_mount_gives_nothing", &[], || {
        let _server = start_server(&two_exports()[..1]);
        let proxy = start("");
        let root = RpcClient::mountd("10.99.0.3").mount(ROOT, "/export").expect("it is granted");
        let file = RpcClient::nfs("10.99.0.3").create(&root, "file");
        for paths in [["/none", "/export"], ["/export", "/none"]] {
            let mut mountd = RpcClient::mountd("10.99.0.4");
            // Both before an answer.
            paths.iter().zip(1..).for_each(|(path, xid)| {
                mountd.send(ROOT, |call| call.mount(xid, path.as_bytes()));
            });
            drop((mountd.reply(), mountd.reply()));
            let of = added(&proxy, || assert!(RpcClient::nfs("10.99.0.4").read(&file, COUNT)));
            assert_eq!(of, [0, COUNT.into(), 0], "{paths:?}");
        }
    });
}

#[test]
fn an_address_and_an_export_are_both_needed() {
    in_namespaces("an_address_and_an_export_are_both_needed", &[], || {
        let _server = start_server(&two_exports());
        let with_address =
            hosts("").replacen("export = \"/gold\"", "export = \"/gold\"\naddress = [\"10.99.0.2\"]", 1);
        let proxy = start_with(&with_address);
        let root = RpcClient::mountd("10.99.0.2").mount(ROOT, "/gold").expect("it is granted");
        let file = RpcClient::nfs("10.99.0.2").create(&root, "file");
        let each = u64::from(COUNT);
        for (address, expected) in [("10.99.0.2", [each, 0, 0]), ("10.99.0.3", [0, 0, each])] {
            // The server gives the handle to all.
            assert_eq!(RpcClient::mountd(address).mount(ROOT, "/gold"), Ok(root.clone()));
            let of = added(&proxy, || assert!(RpcClient::nfs(address).read(&file, COUNT)));
            assert_eq!(of, expected, "{address}");
        }
    });
}

#[test]
fn the_servers_rules_about_addresses_hold_through_the_proxy() {
    in_namespaces("the_servers_rules_about_addresses_hold_through_the_proxy", &[], || {
        let only = "Access_Type = NONE; CLIENT { Clients = 10.99.0.2; Access_Type = RW; }";
        let _server = start_server(&[export(1, "/export", only), export(2, "/gold", FOR_EVERYBODY)]);
        let proxy = start("source = \"client\"");
        let root = RpcClient::mountd("10.99.0.2").mount(ROOT, "/export").expect("it is the right client");
        let file = RpcClient::nfs("10.99.0.2").create(&root, "file");
        assert!(RpcClient::nfs("10.99.0.2").read(&file, 1));
        assert!(RpcClient::mountd("10.99.0.3").mount(ROOT, "/export").is_err(), "it is the wrong one");
        // Even with the handle.
        assert!(!RpcClient::nfs("10.99.0.3").read(&file, 1));
        proxy.drain();
        // From the proxy's address the server cannot tell the wrong client from the right one.
        let proxy = start("");
        assert!(RpcClient::mountd("10.99.0.2").mount(ROOT, "/export").is_err());
        drop(proxy);
    });
}

#[test]
fn a_server_that_trusts_only_root_serves_the_proxy() {
    in_namespaces("a_server_that_trusts_only_root_serves_the_proxy", &[], || {
        let secure = "Access_Type = RW; PrivilegedPort = true;";
        let _server = start_server(&[export(1, "/export", secure), export(2, "/gold", FOR_EVERYBODY)]);
        let proxy = start("source = \"reserved\"");
        let root = RpcClient::mountd("10.99.0.2").mount(ROOT, "/export").expect("the port is root's");
        let file = RpcClient::nfs("10.99.0.2").create(&root, "file");
        proxy.drain();
        let proxy = start("");
        assert!(!RpcClient::nfs("10.99.0.2").read(&file, 1), "the port is anybody's");
        drop(proxy);
    });
}
