//! `tailwright simulate` of storage servers: verdicts, policies, faults with their place.

use crate::support::Folder;

const SERVER: &str = "[server]\nprofile = { bandwidthTable = [{ requestSize = 4096, readBandwidth = 1e7, writeBandwidth = 5e6 }] }\n\
    network = \"125MB/s\"\n";
const WEB: &str = "[[workload]]\nname = \"web\"\narrivals = \"poisson(500/s)\"\nrequests = 4000\nsize = \"4KiB\"\nop = \"read\"\n";

fn scenario(server: &str, workload: &str) -> String {
    format!("[run]\nreplications = 4\n{SERVER}{server}\n{WEB}{workload}\n")
}

#[test]
fn slos_are_met_or_missed() {
    let folder = Folder::new();
    let run = |slo: &str| {
        folder.write("s.toml", &scenario("", &format!("slo = \"{slo}\"")));
        folder.run(&["simulate", "s.toml", "--json"])
    };
    let found = run("99% < 100ms").expect_code(0).json();
    let web = &found["workloads"][0];
    assert!(web["verdict"] == "met" && web["name"] == "web" && web["over_slo"] == 0.0, "{web}");
    // M/D/1 at 20 % with a service of 0.41 ms.
    assert!((0.4e-3..2e-3).contains(&web["measured_s"].as_f64().unwrap()), "{web}");
    assert_eq!(run("99% < 100us").expect_code(1).json()["workloads"][0]["verdict"], "not_met");
    assert_eq!(run("99.9999% < 1s").expect_code(1).json()["workloads"][0]["verdict"], "too_few");
}

#[test]
fn disciplines_are_varied() {
    let folder = Folder::new();
    let vary = "[[vary]]\nname = \"d\"\nset = \"server.discipline\"\nvalues = [\"none\", \"edf\", \"by-slo\", \"feedback\", \"proportional\"]";
    folder.write("s.toml", &scenario("discipline = \"none\"", &format!("slo = \"99% < 100ms\"\n{vary}")));
    let found = folder.run(&["simulate", "s.toml", "--json", "--report", "p.html"]).expect_code(0).json();
    assert_eq!(found["variants"].as_array().expect("variants").len(), 5);
    assert!(folder.read("p.html").contains("Workloads"));
}

#[test]
fn faults_say_where() {
    let folder = Folder::new();
    let slo = "slo = \"99% < 100ms\"";
    let policy =
        "{\"format\": \"tailwright-policy-1\", \"policy_name\": \"x\", \"servers\": [], \"workloads\": []}";
    folder.write("policy.json", policy);
    let station = "[[station]]\nname = \"q\"\nworkers = 1\ndiscipline = \"fifo\"";
    for (text, part) in [
        (scenario("", "slo = \"fast\""), "99.9% < 200ms"),
        (scenario("", &slo.replace("slo", "best_effort = false #")), "expected an slo"),
        (scenario("", &format!("{slo}\n{station}")), "not both"),
        (scenario("", &format!("{slo}\n{WEB}{slo}")), "two workloads have the name 'web'"),
        (scenario("", &format!("{slo}\n[[workload]]\nname = \"t\"\ntrace = \"none.csv\"")), "none.csv"),
        (scenario("", &format!("{slo}\nrate = 2.0\nload = 0.5")), "rate or load"),
        (scenario("", &format!("{slo}\nload = -1.0")), "cannot be multiplied"),
        (scenario("channels = 0", slo), "channels"),
        (scenario("discipline = \"fastest\"", slo), "by-slo"),
        (scenario("discipline = { disk = \"edf\" }", slo), "no stage is named 'disk'"),
        (scenario("policy = \"policy.json\"", slo), "does not know workload 'web'"),
        (scenario("policy = \"nowhere.json\"", slo), "nowhere.json"),
        (scenario("policy = \"policy.json\"\ndiscipline = \"edf\"", slo), "not both"),
        (format!("{WEB}{slo}"), "needs a [server]"),
        (
            scenario("", slo).replace("replications = 4", "requests = 5\nduration = \"1s\""),
            "requests and warm_up, or",
        ),
    ] {
        folder.write("bad.toml", &text);
        let outcome = folder.run(&["simulate", "bad.toml"]).expect_code(2);
        assert!(
            outcome.stderr.contains("bad.toml") && outcome.stderr.contains(part),
            "'{part}': {}",
            outcome.stderr
        );
    }
    let alone = folder.run(&["simulate", "policy.json"]).expect_code(2);
    assert!(alone.stderr.contains("--cluster"), "{}", alone.stderr);
}
