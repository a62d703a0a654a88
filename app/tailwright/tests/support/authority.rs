//! An authority of certificates, made by openssl.

use super::Folder;
use std::process::Command;

/// Validity of a certificate for now.
pub(crate) const VALID: [&str; 2] = ["20240101000000Z", "20991231235959Z"];
/// Validity of a certificate that has ended.
pub(crate) const ENDED: [&str; 2] = ["20240101000000Z", "20240201000000Z"];

const CONFIGURATION: &str = "\
[ca]\ndefault_ca = own\n\
[own]\ndatabase = index\nnew_certs_dir = .\nrand_serial = yes\ndefault_md = sha256\npolicy = any\nunique_subject = no\n\
[any]\ncommonName = supplied\n\
[authority]\nbasicConstraints = critical, CA:true\nkeyUsage = critical, keyCertSign\n";

/// A root with an authority between it and the certificates of servers, in files of a folder.
pub(crate) struct Authority<'a> {
    folder: &'a Folder,
    name: &'static str,
}

impl<'a> Authority<'a> {
    /// Makes `NAME-root.pem`; none where openssl is not installed.
    pub(crate) fn make(folder: &'a Folder, name: &'static str) -> Option<Self> {
        testkit::program("openssl")?;
        folder.write("authority.cnf", CONFIGURATION);
        folder.write("index", "");
        let own = Self { folder, name };
        own.key_and_request(&format!("{name}-root"));
        own.key_and_request(&format!("{name}-between"));
        own.sign(&format!("{name}-root"), None, VALID, &["-extensions", "authority"]);
        let root = format!("{name}-root");
        own.sign(&format!("{name}-between"), Some(&root), VALID, &["-extensions", "authority"]);
        Some(own)
    }

    /// Makes `SERVER.pem`, the certificate of a server followed by that of the authority between, and `SERVER.key`.
    pub(crate) fn certify(&self, server: &str, names: &str, validity: [&str; 2]) {
        self.folder.write("names", &format!("subjectAltName = {names}\n"));
        self.key_and_request(server);
        let between = format!("{}-between", self.name);
        self.sign(server, Some(&between), validity, &["-extfile", "names"]);
        let alone = self.folder.read(&format!("{server}.pem"));
        self.folder.write(&format!("{server}-alone.pem"), &alone);
        let chain = alone + &self.folder.read(&format!("{between}.pem"));
        self.folder.write(&format!("{server}.pem"), &chain);
    }

    fn key_and_request(&self, name: &str) {
        let subject = format!("/CN={name}");
        let fixed = "req -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -config /dev/null -subj";
        let files = ["-keyout", &format!("{name}.key"), "-out", &format!("{name}.csr")];
        let arguments: Vec<&str> = fixed.split(' ').chain([subject.as_str()]).chain(files).collect();
        self.openssl(&arguments);
    }

    /// Signs by another certificate, or by the own key.
    fn sign(&self, name: &str, by: Option<&str>, validity: [&str; 2], more: &[&str]) {
        let request = format!("{name}.csr");
        let signed = format!("{name}.pem");
        let key = format!("{}.key", by.unwrap_or(name));
        let certificate = format!("{}.pem", by.unwrap_or(name));
        let fixed = ["ca", "-batch", "-notext", "-config", "authority.cnf", "-in", &request, "-out", &signed];
        let times = ["-startdate", validity[0], "-enddate", validity[1], "-keyfile", &key];
        let signer = if by.is_some() { ["-cert", &certificate].to_vec() } else { vec!["-selfsign"] };
        self.openssl(&[&fixed[..], &times, &signer, more].concat());
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(self.folder.path()).output();
        let output = output.expect("openssl starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
