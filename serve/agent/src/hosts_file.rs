//! The hosts file that an assignment stands for: the operator's text, and the clients that tenants named.

use crate::messages::{ClientPlace, WorkloadClients};
use std::fmt::Write as _;

/// Appends clients to the text of a hosts file; `server_host` is the host of those that name none.
pub fn hosts_file(text: &str, server_host: &str, clients: &[WorkloadClients]) -> String {
    let mut whole = text.to_owned();
    for WorkloadClients { workload, clients } in clients {
        for ClientPlace { host, address, export } in clients {
            let host = host.as_deref().unwrap_or(server_host);
            let addresses: Vec<String> = address.iter().map(|address| quoted(address)).collect();
            let _ = write!(
                whole,
                "\n[[client]]\nworkload = {}\nhost = {}\naddress = [{}]\n",
                quoted(workload),
                quoted(host),
                addresses.join(", ")
            );
            if let Some(export) = export {
                let _ = writeln!(whole, "export = {}", quoted(export));
            }
        }
    }
    whole
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for next in text.chars() {
        match next {
            '"' | '\\' => quoted.extend(['\\', next]),
            next if next.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(next));
            }
            next => quoted.push(next),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tenants_stay_words() {
        let client =
            ClientPlace { host: None, address: vec!["10.0.0.1".into()], export: Some("a\"b\n".into()) };
        let clients = [WorkloadClients { workload: "t/mail".into(), clients: vec![client] }];
        assert_eq!(
            hosts_file("[[host]]", "store-1", &clients),
            "[[host]]\n[[client]]\nworkload = \"t/mail\"\nhost = \"store-1\"\naddress = [\"10.0.0.1\"]\n\
             export = \"a\\\"b\\u000A\"\n"
        );
    }
}
