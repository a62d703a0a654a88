//! A verb that is given the file of another one says what it is, and the command that reads it.

use crate::support::Folder;

#[test]
fn a_file_of_another_verb_is_named_with_its_command() {
    let folder = Folder::new();
    folder.write(
        "sc.toml",
        "[run]\n[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n[[entry]]\n",
    );
    folder.write(
        "cluster.toml",
        "[[server]]\nclass = \"a\"\ncount = 1\nstorage = \"ssd.json\"\nnetwork = \"1Gbps\"\n\
         [[workload]]\nname = \"a\"\ntrace = \"t.csv\"\nslo = \"99% < 1s\"\n",
    );
    folder.write("hosts.toml", "[[host]]\nname = \"h\"\ndevice.lo = \"1Gbps\"\n");
    folder.write("load.toml", "[[workload]]\nname = \"a\"\ntarget = \"http://127.0.0.1:1/\"\n");
    folder.write("policy.json", "{\"format\": \"tailwright.policy\", \"version\": 3}");
    for (args, found, command) in [
        (
            &["simulate", "cluster.toml"][..],
            "expected a scenario, found a cluster file",
            "tailwright plan cluster.toml",
        ),
        (&["simulate", "load.toml"], "found a load file", "tailwright load load.toml"),
        (&["plan", "sc.toml"], "expected a cluster file, found a scenario", "tailwright simulate sc.toml"),
        (&["plan", "hosts.toml"], "found a hosts file", "--hosts hosts.toml"),
        (&["plan", "policy.json"], "found a policy", "tailwright apply policy.json"),
        (
            &["load", "cluster.toml"],
            "expected a load file, found a cluster file",
            "tailwright plan cluster.toml",
        ),
        (
            &["apply", "policy.json", "--hosts", "cluster.toml"],
            "expected a hosts file, found a cluster file",
            "plan",
        ),
    ] {
        let error = folder.run(args).expect_code(2).stderr;
        assert!(error.contains(found) && error.contains(command), "{args:?}: {error}");
    }
}
