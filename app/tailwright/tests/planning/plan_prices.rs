//! Prices of servers: the cheapest fleet by the servers that are printed, and files that cannot be meant.

use crate::support::cluster::Cluster;
use crate::support::judge;
use serde_json::Value;

/// A class of servers with these lines more; its links have `network`.
fn class(name: &str, count: usize, network: &str, more: &str) -> String {
    format!(
        "[[server]]\nclass = \"{name}\"\ncount = {count}\nstorage = \"ssd.json\"\nnetwork = \"{network}\"\n{more}\n"
    )
}

/// A cluster of these classes, whose workloads have these SLOs.
fn cluster(classes: &[String], slos: &[&str]) -> Cluster {
    let cluster = Cluster::new(slos.len(), 1);
    describe(&cluster, classes, slos);
    cluster
}

fn describe(cluster: &Cluster, classes: &[String], slos: &[&str]) {
    let mut text = classes.concat();
    for (w, slo) in slos.iter().enumerate() {
        text += &format!("[[workload]]\nname = \"w{w}\"\ntrace = \"w{w}.csv\"\nslo = \"99.9% < {slo}\"\n");
    }
    cluster.folder.write("cluster.toml", &text);
}

fn plan(cluster: &Cluster, more: &[&str], code: i32) -> Value {
    let args = [&["plan", "cluster.toml", "--json"], more].concat();
    cluster.folder.run(&args).expect_code(code).json()
}

/// The price of the servers that a plan lists, by the first letter of their names.
fn price_of(plan: &Value, prices: &[(char, f64)]) -> f64 {
    let servers = plan["servers"].as_array().expect("a plan has servers").iter();
    let price = |server: &Value| {
        let name = server["name"].as_str().expect("a server has a name");
        prices.iter().find(|(class, _)| name.starts_with(*class)).expect("a class that has a price").1
    };
    servers.map(price).sum()
}

#[test]
fn every_class_has_a_price_or_none_has_and_it_is_positive() {
    for (classes, line, parts) in [
        (["price = 3", ""], ":7:", vec!["class 'b'", "it has no price, but class 'a' has one"]),
        (["", "price = 3"], ":1:", vec!["class 'a'", "it has no price, but class 'b' has one"]),
        (["price = 0", "price = 3"], ":1:", vec!["class 'a'", "price is 0, expected a number above 0"]),
        (["price = 1", "price = -2.5"], ":7:", vec!["class 'b'", "price is -2.5"]),
        (["price = 1", "price = inf"], ":7:", vec!["price is inf"]),
        (["price = nan", "price = 1"], ":1:", vec!["price is NaN"]),
        (["price = 1e13", "price = 1"], ":1:", vec!["at most 1e12"]),
        (["price = \"3 EUR\"", "price = 1"], "cluster.toml", vec!["price", "invalid type: string"]),
    ] {
        let classes = [class("a", 1, "125MB/s", classes[0]), class("b", 1, "125MB/s", classes[1])];
        let cluster = cluster(&classes, &["1s"]);
        for verb in ["plan", "admit", "bound"] {
            let outcome = cluster.folder.run(&[verb, "cluster.toml"]).expect_code(2);
            for part in parts.iter().copied().chain([line]) {
                assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
            }
        }
    }
}

#[test]
fn survival_with_prices_is_refused() {
    let cluster = cluster(&[class("a", 2, "125MB/s", "price = 1")], &["1s"]);
    let outcome = cluster.folder.run(&["plan", "cluster.toml", "--survive", "1"]).expect_code(2);
    assert!(
        outcome.stderr.contains("--survive looks for few servers, not for cheap ones"),
        "{}",
        outcome.stderr
    );
}

/// The same servers with other prices give other fleets, each of which keeps all SLOs; without prices nothing is said of any.
#[test]
fn prices_decide_which_servers_are_used() {
    let classes = |a: f64, b: f64| {
        [
            class("a", 8, "125MB/s", &format!("price = {a}")),
            class("b", 8, "1250MB/s", &format!("price = {b}")),
        ]
    };
    let slos = ["1s"; 6];
    let cluster = cluster(&classes(100.0, 101.0), &slos);
    let mut used = Vec::new();
    for (a, b) in [(100.0, 101.0), (101.0, 100.0), (1.0, 1000.0)] {
        describe(&cluster, &classes(a, b), &slos);
        for order in [&[][..], &["--order", "given"], &["--method", "knee"]] {
            let plan = plan(&cluster, order, 0);
            judge::check_promises(&plan);
            let fleet = &plan["fleet"];
            let price = fleet["price"].as_f64().unwrap();
            assert!((price - price_of(&plan, &[('a', a), ('b', b)])).abs() < 1e-9, "{fleet}");
            assert!(fleet["price_lower_bound"].as_f64().unwrap() <= price * (1.0 + 1e-9), "{fleet}");
            for class in fleet["classes"].as_array().unwrap() {
                let alone = &class["alone"];
                let holds =
                    alone["workloads_refused"] == 0 && alone["servers"].as_u64() <= class["count"].as_u64();
                assert!(!holds || price <= alone["price"].as_f64().unwrap() * (1.0 + 1e-9), "{fleet}");
            }
            if order.is_empty() {
                used.push(fleet["classes"][0]["servers"].as_u64().unwrap());
            }
        }
    }
    assert!(used[1] == 0 && used[2] > 0, "{used:?}");
    let text = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0).stdout;
    assert!(text.lines().next().is_some_and(|line| line.contains(" at a price of ")), "{text}");
    assert!(text.contains("of class 'a' alone"), "{text}");
    describe(&cluster, &[class("a", 8, "125MB/s", ""), class("b", 8, "1250MB/s", "")], &slos);
    let without = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0).stdout;
    assert!(!without.contains("price"), "{without}");
}

/// The servers that are said to be missing admit all, and with one fewer of them the search does not.
#[test]
fn missing_servers_are_of_the_class_that_is_named() {
    let classes =
        |count: usize| [class("a", count, "125MB/s", "price = 3"), class("b", 0, "125MB/s", "price = 7")];
    let slos = ["60ms"; 6];
    let cluster = cluster(&classes(1), &slos);
    let refused = plan(&cluster, &[], 1);
    let missing = refused["fleet"]["missing"].as_array().expect("servers are missing").clone();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0]["class"], "a");
    let count = usize::try_from(missing[0]["count"].as_u64().unwrap()).unwrap();
    assert_eq!(missing[0]["price"].as_f64(), Some(3.0 * count as f64));
    let text = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(1).stdout;
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("of class 'a' for 3"), "{unwrapped}");
    describe(&cluster, &classes(1 + count), &slos);
    let admitted = plan(&cluster, &[], 0);
    assert_eq!(admitted["workloads_admitted"], 6);
    describe(&cluster, &classes(count), &slos);
    plan(&cluster, &[], 1);
}

/// A kept policy opens the cheapest server that suits, whatever the order of the classes.
#[test]
fn kept_plans_open_cheap_servers() {
    let classes = [class("b", 4, "125MB/s", "price = 7"), class("a", 4, "125MB/s", "price = 3")];
    let cluster = cluster(&classes, &["60ms"]);
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let more = Cluster::new(6, 1);
    describe(&more, &classes, &["60ms"; 6]);
    more.folder.write("policy.json", &cluster.folder.read("policy.json"));
    let kept = plan(&more, &["--keep", "policy.json"], 0);
    let servers = [0, 1].map(|class| kept["fleet"]["classes"][class]["servers"].as_u64().unwrap());
    assert!(servers[0] == 0 && servers[1] > 1, "{}", kept["fleet"]);
}

/// The profile of a measured device model, by its rates of random requests of 4 KiB and of sequential bytes.
fn measured_profile(model: &str) -> Option<String> {
    let table = std::fs::read_to_string(testkit::shared("data/devices/models.tsv")?).expect("a table");
    let mut lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let row = lines.find(|row| row[1] == model).expect("the model is measured");
    let cell = |name: &str| -> f64 {
        let column = header.iter().position(|cell| *cell == name).expect("a column");
        row[column].parse().expect("a number")
    };
    let [read, write] = ["rrandiops", "wrandiops"].map(|name| 4096.0 * cell(name));
    let [read_large, write_large] = ["rbps", "wbps"].map(cell);
    Some(format!(
        r#"{{"format": "tailwright-device-1", "name": "measured", "device": {{"ssd": {{"bandwidth": [
            {{"request_bytes": 4096, "read_bytes_per_s": {read}, "write_bytes_per_s": {write}}},
            {{"request_bytes": 1048576, "read_bytes_per_s": {read_large}, "write_bytes_per_s": {write_large}}}]}}}}}}"#
    ))
}

/// The 41 traces on the device of their profile and on a measured one: the plan costs no more than any class alone, and at
/// some prices less.
#[test]
fn a_mix_beats_one_class_on_real_traces() {
    let Some(traces) = testkit::shared("traces") else { return };
    let Some(profile) = measured_profile("INTEL_SSDPEKKA256G7") else { return };
    let cluster = Cluster::new(1, 1);
    cluster.folder.write("measured.json", &profile);
    let path = |name: &str| traces.join(name).to_str().expect("the path is text").to_owned();
    let mut workloads = String::new();
    for line in std::fs::read_to_string(path("slos.csv")).expect("a table").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let trace = path(cells[2]);
        workloads += &format!(
            "[[workload]]\nname = \"{}\"\ntrace = \"{trace}\"\nslo = \"{}% < {}s\"\n",
            cells[1], cells[3], cells[4]
        );
    }
    let mut beats = 0;
    for (ssd, measured) in [(100.0, 130.0), (100.0, 180.0), (100.0, 400.0)] {
        let classes = [
            class("s", 41, "125MB/s", &format!("price = {ssd}"))
                .replace("ssd.json", &path("ssd-profile.json")),
            class("m", 41, "125MB/s", &format!("price = {measured}")).replace("ssd.json", "measured.json"),
        ];
        cluster.folder.write("cluster.toml", &(classes.concat() + &workloads));
        let plan = plan(&cluster, &[], 0);
        judge::check_promises(&plan);
        let fleet = &plan["fleet"];
        let price = fleet["price"].as_f64().unwrap();
        assert!((price - price_of(&plan, &[('s', ssd), ('m', measured)])).abs() < 1e-9, "{fleet}");
        assert!(fleet["price_lower_bound"].as_f64().unwrap() <= price, "{fleet}");
        let alone = fleet["classes"].as_array().unwrap().iter().map(|class| &class["alone"]);
        let alone: Vec<f64> = alone.map(|alone| alone["price"].as_f64().unwrap()).collect();
        assert!(alone.iter().all(|alone| price <= *alone), "{fleet}");
        beats += usize::from(alone.iter().all(|alone| price < *alone));
    }
    assert!(beats > 0, "no mix beats one class");
}
