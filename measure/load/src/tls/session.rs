//! One TLS session, as a conversion between bytes.

use rustls::ClientConnection;
use std::io::{Read as _, Write as _};

/// A TLS session whose handshake is done.
#[derive(Debug)]
pub(crate) struct TlsSession {
    connection: ClientConnection,
    /// True after the server has announced that it sends nothing more.
    is_closed: bool,
}

impl TlsSession {
    pub(super) fn new(mut connection: ClientConnection) -> Self {
        // The engine bounds its output itself.
        connection.set_buffer_limit(None);
        Self { connection, is_closed: false }
    }

    /// Returns the application protocol that the server chose.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// True after the server has announced that it sends nothing more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Encrypts `plain` and appends it to `out`, behind what TLS has to send itself.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        self.connection.writer().write_all(plain).map_err(|error| error.to_string())?;
        while self.connection.wants_write() {
            self.connection.write_tls(out).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Takes received bytes, and appends the content of records that are complete to `plain`. [`Self::seal`] sends what
    /// TLS has to answer. Content before an error is still appended.
    pub(crate) fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        loop {
            if !received.is_empty() {
                self.connection.read_tls(&mut received).map_err(|error| error.to_string())?;
            }
            let state =
                self.connection.process_new_packets().map_err(|error| format!("TLS failed: {error}"))?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut plain[start..]).map_err(|error| error.to_string())?;
            self.is_closed = state.peer_has_closed();
            // It takes nothing more after the end of the session.
            if received.is_empty() || self.is_closed {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::insecure::AcceptAny;
    use super::*;
    use proptest::test_runner::{Config, TestRunner};
    use rustls::crypto::ring;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ClientConfig, ServerConfig, ServerConnection};
    use std::process::Command;
    use std::sync::Arc;

    /// A client and a server whose handshake is done, in memory.
    fn pair(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> (TlsSession, ServerConnection) {
        let name = "localhost".try_into().expect("a name");
        let mut client = ClientConnection::new(client.clone(), name).expect("a client");
        let mut server = ServerConnection::new(server.clone()).expect("a server");
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).expect("memory");
            }
            server.read_tls(&mut &bytes[..]).expect("memory");
            server.process_new_packets().expect("a client's handshake");
            bytes.clear();
            // The client gets the last bytes, among them tickets, with the content.
            while server.wants_write() && client.is_handshaking() {
                server.write_tls(&mut bytes).expect("memory");
            }
            client.read_tls(&mut &bytes[..]).expect("memory");
            client.process_new_packets().expect("a server's handshake");
        }
        (TlsSession::new(client), server)
    }

    fn configurations() -> Option<(Arc<ClientConfig>, Arc<ServerConfig>)> {
        let openssl = testkit::program("openssl")?;
        let folder = tempfile::tempdir().expect("a folder");
        let arguments =
            "req -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -x509 -subj /CN=x -keyout k -out c";
        let mut command = Command::new(openssl);
        let output = command.args(arguments.split(' ')).current_dir(folder.path()).output().expect("openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let certificate = CertificateDer::from_pem_file(folder.path().join("c")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(folder.path().join("k")).expect("a key");
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate and its key");
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
            .with_no_client_auth();
        Some((Arc::new(client), Arc::new(server)))
    }

    /// Bytes arrive in any pieces, from one byte on, and content comes out whole and in order, before the end of the
    /// session.
    #[test]
    fn content_does_not_depend_on_pieces() {
        let Some((client, server)) = configurations() else { return };
        let mut runner = TestRunner::new(Config::with_cases(40));
        let pieces = proptest::collection::vec(1..20_000usize, 0..40);
        let content: Vec<u8> = (0..70_000u32).map(|number| number.to_le_bytes()[0]).collect();
        let check = |pieces: Vec<usize>| {
            let (mut session, mut server) = pair(&client, &server);
            let mut sent = Vec::new();
            for part in content.chunks(30_000) {
                server.writer().write_all(part).expect("memory");
                while server.wants_write() {
                    server.write_tls(&mut sent).expect("memory");
                }
            }
            server.send_close_notify();
            server.write_tls(&mut sent).expect("memory");
            let mut plain = Vec::new();
            let mut rest = &sent[..];
            for piece in pieces.into_iter().chain(std::iter::repeat_n(1, sent.len())) {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                rest = later;
                session.open(now, &mut plain).expect("content");
                assert!(content.starts_with(&plain));
                assert_eq!(session.is_closed(), rest.is_empty());
            }
            assert_eq!(plain, content);
            // And what is sealed here is read there, after the server has closed its half.
            let mut sealed = Vec::new();
            session.seal(b"request", &mut sealed).expect("memory");
            server.read_tls(&mut &sealed[..]).expect("memory");
            server.process_new_packets().expect("a record");
            let mut request = [0; 7];
            server.reader().read_exact(&mut request).expect("a request");
            assert_eq!(&request, b"request");
            Ok(())
        };
        runner.run(&pieces, check).expect("it holds");
    }

    #[test]
    fn damaged_records_are_errors() {
        let Some((client, server)) = configurations() else { return };
        let (mut session, mut server) = pair(&client, &server);
        let mut sent = Vec::new();
        for part in [&b"good"[..], b"bad"] {
            server.writer().write_all(part).expect("memory");
            while server.wants_write() {
                server.write_tls(&mut sent).expect("memory");
            }
        }
        *sent.last_mut().expect("a record") ^= 1;
        let mut plain = Vec::new();
        let error = session.open(&sent, &mut plain).expect_err("a damaged record");
        assert!(error.starts_with("TLS failed"), "{error}");
    }
}
