//! A real NFS server with its portmapper, in namespaces of its own.

use testkit::nfs::{FOR_EVERYBODY, GaneshaServer, NamespacedTest, ProcessNumbers, nfs_export};

/// Runs a test's `inside` in namespaces, by running the test of this name there.
pub(crate) fn in_namespaces(test: &str, inside: impl FnOnce(&mut GaneshaServer)) {
    let test =
        NamespacedTest { name: test, processes: ProcessNumbers::Own, programs: &["nfs-ls"], set_up: "true" };
    test.run(|| inside(&mut GaneshaServer::start(None, &[nfs_export(1, "/export", FOR_EVERYBODY)])));
}
