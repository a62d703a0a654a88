//! Pages and stream of `tailwright controller`: as a browser shows them, and as an attacker tries them.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};
use support::chromium::Browser;
use support::service::{Events, HOSTS, Service};

/// Widths of screens in pixels.
const WIDTHS: [u32; 3] = [400, 800, 1400];
/// A name that would run a script and break every attribute, if it were not escaped.
const HOSTILE: &str = "\"'><img src=x onerror=\"window.owned=1\"><b>${{&lt;";
/// Another tenant, whose name no page of the first may have.
const OTHER: &str = "zebra-bank";
const OTHER_WORKLOAD: &str = "okapi-ledger";

/// Questions, which are admitted, refused, and not understood.
const YES: &str = "/what-if?slo=99%25+%3C+400ms&reads=50&writes=2&size=1KiB&burst=5&address=127.0.0.30&host=";
const NO: &str = "/what-if?slo=99%25+%3C+500us&reads=50&size=1KiB&burst=5&address=127.0.0.30";
const UNCLEAR: &str = "/what-if?slo=soon&reads=%22%3E%3Cimg+src%3Dx+onerror%3D%22window.owned%3D3%22%3E";

/// A cluster with workloads of two tenants, of which one is withdrawn with a reason that names the others'.
fn populated() -> Service {
    let mut service = Service::start();
    service.issue("shop", &["--for-tenant", "shop"]);
    service.issue("other", &["--for-tenant", OTHER]);
    for (tenant, name, slo, address) in [
        ("shop", "mail", "99% < 100ms", "127.0.0.2"),
        (OTHER, OTHER_WORKLOAD, "99% < 50ms", "127.0.0.3"),
        ("shop", HOSTILE, "99.9% < 150ms", "127.0.0.4"),
    ] {
        let said = service.request(tenant, name, slo, address).expect_code(0).stdout;
        assert!(said.starts_with("yes"), "{said}");
        service.apply();
    }
    service.request("shop", "impossible", "99% < 500us", "127.0.0.5").expect_code(1);
    service.request("shop", "taken-back", "99% < 1s", "127.0.0.6").expect_code(0);
    service.refuse(&format!(
        "</td><script>window.owned=2</script> workload '{OTHER}/{OTHER_WORKLOAD}' has no room"
    ));
    service.apply();
    service
}

/// Pages with their addresses.
fn pages(is_operator: bool) -> Vec<String> {
    let hostile: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let workload = |name: &str| format!("/workload?tenant=shop&name={name}");
    let mut pages =
        vec!["/".to_owned(), "/workloads".to_owned(), "/decisions".to_owned(), "/what-if".to_owned()];
    pages.extend([YES, NO, UNCLEAR].map(str::to_owned));
    pages.extend(["mail", "impossible", "taken-back", &hostile].map(workload));
    if is_operator {
        pages.extend(["/servers", "/agents", "/events", "/server?name=cache-1"].map(str::to_owned));
    }
    pages
}

#[test]
fn pages_in_a_browser_are_live_and_lose_nothing() {
    let Some(mut browser) = Browser::start() else { return };
    let mut service = populated();
    let base = format!("http://{}", service.address);

    // The form leads to the page that was wanted.
    browser.look(800, "light");
    browser.open(&format!("{base}/server?name=cache-1"));
    // A browser moves the focus with its next frame.
    browser.wait("the focus on the token", "document.activeElement.name === 'token'");
    browser.type_text("wrong");
    browser.press("Enter", 13, "\r");
    browser.wait("the complaint", "document.body.innerText.includes('The token is unknown')");
    browser.evaluate("document.querySelector('input[name=token]').focus()");
    browser.type_text(&service.token("cluster/operator"));
    browser.press("Enter", 13, "\r");
    browser.wait("the page", "document.querySelector('h1').textContent === 'Server cache-1'");
    assert_eq!(browser.text("document.cookie"), "", "scripts cannot read the session");

    let pictures = std::env::var_os("TAILWRIGHT_PICTURES");
    for (number, page) in pages(true).iter().enumerate() {
        for theme in ["light", "dark"] {
            for width in WIDTHS {
                browser.look(width, theme);
                browser.open(&format!("{base}{page}"));
                if let Some(folder) = &pictures {
                    browser.screenshot(&Path::new(folder).join(format!("{number}-{theme}-{width}.png")));
                }
                check_layout(&mut browser, &format!("{page} at {width}, {theme}"), width);
            }
        }
        assert_eq!(browser.evaluate("window.owned"), Value::Null, "{page}");
        check_keyboard(&mut browser, page);
    }

    // Without scripts a page is the same.
    let of_text = "Array.from(document.querySelectorAll('main td, main h1, main h2')).map(e => e.textContent).join('|')";
    browser.open(&format!("{base}/"));
    let scripted = browser.text(of_text);
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.call("Page.navigate", json!({ "url": format!("{base}/") }));
    browser.wait(
        "the page",
        "document.readyState === 'complete' && document.querySelector('.cut-note') === null",
    );
    assert_eq!(browser.text(of_text), scripted);
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": false }));

    check_question(&mut browser, &service, &base);
    check_news(&mut browser, &service, &base);
    check_loss(&mut browser, &mut service, &base);
}

/// The form of `/what-if` is filled in and sent by the keyboard, without scripts, and changes nothing.
#[track_caller]
fn check_question(browser: &mut Browser, service: &Service, base: &str) {
    let seq = || service.ctl(&["list", "events"]).expect_code(0).stdout.matches("\"seq\"").count();
    let before = seq();
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.call("Page.navigate", json!({ "url": format!("{base}/what-if") }));
    browser.wait("the form", "document.querySelector('input[name=slo]') !== null");
    for (field, text) in
        [("slo", "99% < 400ms"), ("reads", "50"), ("size", "1KiB"), ("burst", "5"), ("address", "127.0.0.30")]
    {
        browser.evaluate(&format!("document.querySelector('input[name={field}]').focus()"));
        browser.type_text(text);
    }
    browser.press("Enter", 13, "\r");
    browser.wait("the answer", "document.querySelector('main').textContent.includes('Yes: within')");
    assert_eq!(browser.text("document.querySelector('input[name=slo]').value"), "99% < 400ms");
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": false }));
    assert_eq!(seq(), before);
}

/// Nothing is outside the screen, without contrast or without a word of explanation.
#[track_caller]
fn check_layout(browser: &mut Browser, at: &str, width: u32) {
    let view = browser.measured();
    assert_eq!(view["width"].as_u64(), Some(u64::from(width)), "{at}");
    assert!(view["content"].as_u64().expect("a number") <= u64::from(width), "{at} scrolls sideways: {view}");
    for problem in support::browser::PROBLEMS {
        let found = view[problem].as_array().expect("a list");
        assert!(found.is_empty(), "{problem}, {at}: {found:#?}");
    }
}

/// The key for the next element reaches all links, buttons and folds.
#[track_caller]
fn check_keyboard(browser: &mut Browser, at: &str) {
    const LINKS: &str =
        "Array.from(document.querySelectorAll('a, button, summary, input')).filter(e => e.checkVisibility())";
    let count = browser.evaluate(&format!("(window.wanted = {LINKS}).length")).as_u64().expect("a number");
    browser.evaluate("window.reached = new Set(); document.activeElement.blur(); scrollTo(0, 0)");
    // Headings of tables, and boxes that scroll, are between them.
    let steps = browser
        .evaluate("document.querySelectorAll('a, button, summary, input, th, .table, pre').length + 5");
    for _ in 0..steps.as_u64().expect("a number") {
        browser.press("Tab", 9, "");
        browser.evaluate("reached.add(document.activeElement)");
    }
    let missed = browser.text("wanted.filter(e => !reached.has(e)).map(e => e.outerHTML).join('\\n')");
    assert!(count > 3 && missed.is_empty(), "{at}: the keyboard does not reach {missed}");
}

/// A decision is on the page without loading it again, and without a loss of focus, place, order or open folds.
#[track_caller]
fn check_news(browser: &mut Browser, service: &Service, base: &str) {
    browser.look(800, "light");
    browser.open(&format!("{base}/workload?tenant=shop&name=impossible"));
    let rows = "document.querySelectorAll('tbody tr').length";
    let before = browser.evaluate(rows).as_u64().expect("a number");
    browser.evaluate(
        "window.marker = 1; document.querySelector('th').click(); document.querySelector('td a').focus()",
    );
    browser.evaluate("window.focused = document.activeElement");
    service.request("shop", "impossible", "99% < 400us", "127.0.0.5").expect_code(1);
    browser.wait("the decision", &format!("{rows} === {}", before + 1));
    assert_eq!(browser.evaluate("window.marker"), 1);
    assert_eq!(browser.text("document.activeElement.textContent"), "shop/impossible");
    assert_eq!(browser.evaluate("focused !== document.activeElement"), true, "its row is a new one");
    assert_eq!(browser.text("document.querySelector('th').getAttribute('aria-sort')"), "ascending");

    browser.open(&format!("{base}/"));
    browser.evaluate("window.marker = 1; scrollTo(0, 400)");
    let heading = "document.querySelectorAll('h2')[1].getBoundingClientRect().top";
    let place = browser.evaluate(heading).as_f64().expect("a number");
    let begun = Instant::now();
    service.request("shop", "fresh", "99% < 200ms", "127.0.0.8").expect_code(0);
    browser.wait("the workload", "document.querySelector('main').textContent.includes('shop/fresh')");
    println!("from the command to the page: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert_eq!(browser.evaluate("window.marker"), 1);
    let moved = browser.evaluate(heading).as_f64().expect("a number") - place;
    assert!(moved.abs() < 400.0, "the page jumped by {moved}");
    browser.evaluate("scrollTo(0, 0)");

    // An open fold stays open when the part with it changes: a workload with a tighter SLO goes before this one.
    browser.open(&format!("{base}/workload?tenant=shop&name=mail"));
    let bound = "document.querySelectorAll('.facts dd')[1].textContent";
    let before = browser.text(bound);
    browser.evaluate(
        "window.marker = 1; document.querySelectorAll('details').forEach(fold => { fold.open = true; })",
    );
    browser.evaluate("window.fold = document.querySelector('details')");
    service.request("shop", "urgent", "99% < 20ms", "127.0.0.9").expect_code(0);
    browser.wait("another bound", &format!("{bound} !== '{before}'"));
    assert_eq!(browser.evaluate("fold.isConnected"), false, "its part is a new one");
    assert_eq!(browser.evaluate("document.querySelector('details').open"), true);
    assert_eq!(browser.evaluate("window.marker"), 1);
}

/// The page says that the connection is lost, and that the session has ended.
#[track_caller]
fn check_loss(browser: &mut Browser, service: &mut Service, base: &str) {
    browser.open(&format!("{base}/decisions"));
    service.controller = None;
    browser.wait(
        "the loss",
        "document.querySelector('.news').textContent.includes('connection to the controller is lost')",
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('tbody tr').length > 3"),
        true,
        "the content stays"
    );
    service.run_controller();
    browser.wait("the end", "document.querySelector('.news').textContent.includes('The session has ended')");
    browser.evaluate("document.querySelector('.news a').click()");
    browser.wait("the form", "document.querySelector('input[name=token]') !== null");
    browser.evaluate("document.querySelector('input[name=token]').focus()");
    browser.type_text(&service.token("shop"));
    browser.press("Enter", 13, "\r");
    browser.wait("the page again", "document.querySelector('h1').textContent === 'Decisions'");
    // The tenant's page has the tenant's decisions only, and ends with its token.
    assert!(!browser.text("document.documentElement.outerHTML").contains(OTHER));
    browser.wait("the stream", "document.querySelector('.news').textContent === ''");
    service.ctl(&["token", "shop", "--revoke"]).expect_code(0);
    browser.wait("the end", "document.querySelector('.news').textContent.includes('The session has ended')");
}

/// No answer to a tenant has the name of another, with a session or with its token.
#[test]
fn no_answer_to_a_tenant_names_another() {
    let mut service = populated();
    let session = service.sign_in("shop");
    let bearer = format!("authorization: Bearer {}", service.token("shop"));
    let names = [OTHER, OTHER_WORKLOAD];
    let mut asked: Vec<String> = pages(true);
    asked.extend(
        pages(false)
            .iter()
            .map(|page| format!("{page}{}before=4", if page.contains('?') { "&" } else { "?" })),
    );
    let others = [
        "/v1/workloads",
        "/v1/workloads/shop/mail",
        "/v1/decisions",
        "/v1/decisions?after=3&limit=1",
        "/v1/events",
        "/v1/servers",
        "/v1/servers/cache-1/policy",
        "/v1/agents",
        "/v1/tokens",
        "/v1/classes",
        "/v1/hosts",
        "/v1/watch/",
        "/nowhere",
    ];
    asked.extend(others.map(str::to_owned));
    let mut statuses = BTreeSet::new();
    for path in &asked {
        for header in [&session, &bearer] {
            let answer = service.send("GET", path, &[header], "");
            statuses.insert(answer.status);
            let text = answer.head.clone() + &answer.body;
            for name in names {
                assert!(!text.contains(name), "{path} with {header} names {name}: {text}");
            }
        }
    }
    assert!(statuses.contains(&200) && statuses.contains(&403), "{statuses:?}");
    // The derivation of a bound counts the workloads of others.
    let json = "content-type: application/json";
    let trace =
        service.send("POST", "/v1/traces?file=mail.csv", &[&bearer], &service.folder.read("mail.csv"));
    let trace: Value = serde_json::from_str(&trace.body).expect("JSON");
    let clients = json!([{ "host": null, "address": ["127.0.0.12"], "export": null }]);
    let question =
        json!({ "name": "asked", "slo": "99% < 100ms", "trace": trace["trace"], "clients": clients });
    let answer = service.send("POST", "/v1/what-if", &[&bearer, json], &question.to_string());
    assert!(answer.body.contains("another tenant's workload 1"), "{answer:?}");
    assert!(names.iter().all(|name| !answer.body.contains(name)), "{answer:?}");
    // For another tenant's names the answer is the same as for names that do not exist.
    let path = |tenant: &str, name: &str| format!("/workload?tenant={tenant}&name={name}");
    let real = service.send("GET", &path(OTHER, OTHER_WORKLOAD), &[&session], "");
    let unreal = service.send("GET", &path("no-one", "nothing"), &[&session], "");
    assert_eq!((real.status, unreal.status), (403, 403));
    assert_eq!(real.body.contains(OTHER), unreal.body.contains("no-one"));
    // An operator sees them.
    let operator = service.sign_in("cluster/operator");
    for path in
        ["/", "/decisions", "/events", "/server?name=cache-1", "/workload?tenant=shop&name=taken-back"]
    {
        let answer = service.send("GET", path, &[&operator], "");
        assert!(answer.status == 200 && answer.body.contains(OTHER), "{path}: {}", answer.body);
    }

    // The stream from the beginning, while others and the tenant itself ask, are refused and withdrawn.
    let mut events = Events::open(&service, "/v1/watch?after=0", &[&session]);
    service.request(OTHER, &format!("{OTHER_WORKLOAD}-2"), "99% < 70ms", "127.0.0.9").expect_code(0);
    service.refuse(&format!("'{OTHER}/{OTHER_WORKLOAD}' is in the way"));
    service.apply();
    service.request("shop", "late", "99% < 200ms", "127.0.0.10").expect_code(0);
    service.refuse(&format!("'{OTHER}/{OTHER_WORKLOAD}' is in the way"));
    service.apply();
    let mut kinds = BTreeSet::new();
    for (kind, _, data) in events.by_ref() {
        assert!(names.iter().all(|name| !data.contains(name)), "{data}");
        let is_last = data.contains("withdrawn") && data.contains("\"late\"");
        kinds.insert(kind);
        if is_last {
            break;
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["decision", "workload"]);
}

/// A session opens pages and the stream. It commands nothing, and ends with its token, with signing out and with another
/// site's form.
#[test]
fn a_session_reads_and_changes_nothing() {
    let service = populated();
    let form = "content-type: application/x-www-form-urlencoded";
    for (token, status) in [("", 401), ("0123", 401), (&*service.token("here"), 403)] {
        let answer = service.send("POST", "/sign-in", &[form], &format!("token={token}&next=/decisions"));
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let session = service.sign_in("cluster/operator");
    let seq = || service.ctl(&["list", "events"]).expect_code(0).stdout.matches("\"seq\"").count();
    let before = seq();
    let json = "content-type: application/json";
    for (method, path, body) in [
        ("DELETE", "/v1/workloads/shop/mail", ""),
        ("POST", "/v1/tokens", "{\"name\": \"x\", \"role\": \"operator\"}"),
        ("DELETE", "/v1/tokens/shop", ""),
        ("PUT", "/v1/hosts", HOSTS),
        ("PUT", "/v1/classes", "{\"safety_margin\": 1.0, \"classes\": []}"),
        ("POST", "/v1/workloads", "{}"),
        ("POST", "/v1/what-if", "{}"),
        ("POST", "/v1/traces", "x"),
        ("GET", "/v1/events", ""),
    ] {
        let answer = service.send(method, path, &[&session, json], body);
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
    assert_eq!(seq(), before);

    let page = service.send("GET", "/", &[&session], "");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(!page.body.contains("http://") && !page.body.contains("https://"), "it loads nothing");
    let cookie = service.send("POST", "/sign-in", &[form], &format!("token={}", service.token("shop")));
    let cookie = cookie.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&service.token("shop")), "the cookie is not the token");

    // Ways into another page, and forms of other sites.
    let wanted = service.send("GET", "/server?name=cache-1", &[], "");
    assert_eq!(
        (wanted.status, wanted.header("location")),
        (303, Some("/sign-in?next=%2Fserver%3Fname%3Dcache-1"))
    );
    let token = service.token("shop");
    let away = service.send("POST", "/sign-in", &[form], &format!("token={token}&next=//evil.example/"));
    assert_eq!((away.status, away.header("location")), (303, Some("/")));
    for origin in ["origin: http://evil.example", "origin: null", "sec-fetch-site: cross-site"] {
        let forged = service.send("POST", "/sign-out", &[&session, origin, form], "");
        assert_eq!(forged.status, 403, "{origin}");
    }

    // Ends: the tenant's by its token, the operator's by signing out.
    let shop = service.sign_in("shop");
    let mut events = Events::open(&service, "/v1/watch", &[&shop]);
    service.ctl(&["token", "shop", "--revoke"]).expect_code(0);
    assert_eq!(events.next(), None, "the stream ends with the token");
    assert_eq!(service.send("GET", "/", &[&shop], "").status, 303);
    assert_eq!(service.send("GET", "/v1/watch", &[&shop], "").status, 401);
    let mut events = Events::open(&service, "/v1/watch", &[&session]);
    assert_eq!(service.send("POST", "/sign-out", &[&session, form], "").status, 303);
    assert_eq!(events.next(), None, "the stream ends with the session");
    assert_eq!(service.send("GET", "/", &[&session], "").status, 303);
}

/// The page answers as a request would be, keeps nothing, and shows a tenant nothing of others.
#[test]
fn a_question_changes_nothing() {
    let mut service = populated();
    let session = service.sign_in("shop");
    let operator = service.sign_in("cluster/operator");
    let seq =
        |service: &Service| service.ctl(&["list", "events"]).expect_code(0).stdout.matches("\"seq\"").count();
    let before = seq(&service);
    let ask = |service: &Service, path: &str, session: &String| {
        let answer = service.send("GET", path, &[session], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    };
    for (path, part) in [
        ("/what-if", "The question changes nothing"),
        (YES, "Yes: within "),
        (NO, "would be admitted with"),
        (UNCLEAR, "SLO: "),
        ("/what-if?slo=99%25+%3C+1s&reads=1&size=1KiB&address=nowhere", "clients: "),
        ("/what-if?slo=99%25+%3C+1s&reads=1&size=1KiB&address=127.0.0.30&host=elsewhere", "no host"),
        ("/what-if?slo=99%25+%3C+1s&reads=1e300&size=1KiB&address=127.0.0.30", "a form takes at most"),
        ("/what-if?slo=99%25+%3C+1s&reads=1&size=99999999999TB&address=127.0.0.30", "question is not clear"),
        ("/what-if?slo=99%25+%3C+1s&reads=1&size=1KiB&address=127.0.0.2", "another workload"),
    ] {
        for session in [&session, &operator] {
            let page = ask(&service, path, session);
            assert!(page.contains(part), "{path}: {part}: {page}");
            assert!(!page.contains("<img"), "{page}");
        }
    }
    // The tenant of a tenant is its own, whatever the address says.
    for path in [YES, NO] {
        let page = ask(&service, &format!("{path}&tenant={OTHER}"), &session);
        assert!(!page.contains(OTHER) && !page.contains(OTHER_WORKLOAD), "{page}");
    }
    assert!(ask(&service, YES, &operator).contains(OTHER_WORKLOAD), "the derivation names its company");
    assert_eq!(seq(&service), before);
    let left = std::fs::read_dir(service.folder.join("cluster/uploads")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "what stood for a trace is deleted");
    // The bound of the page is that of the request with the same limits.
    service
        .folder
        .write("asked.limits", "op,size_bytes,rate_per_s,burst_requests\nread,1024,50,5\nwrite,1024,2,5\n");
    let asked = ["request", "asked", "99% < 400ms", "asked.limits", "--address", "127.0.0.30", "--no-wait"];
    let said = service.ctl_as("shop", &asked).expect_code(0).stdout;
    let bound = said.split("at most ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a bound");
    service.apply();
    let page = service.send("GET", "/workload?tenant=shop&name=asked", &[&session], "").body;
    let shown =
        page.split("Within ").nth(1).and_then(|rest| rest.split(" on ").next()).expect("a bound").to_owned();
    service.ctl_as("shop", &["remove", "asked"]).expect_code(0);
    service.apply();
    let page = ask(&service, YES, &session);
    assert!(page.contains(&format!("Yes: within {shown},")), "{bound}, {shown}: {page}");
    // Without a session it is the way to sign in.
    assert_eq!(service.send("GET", YES, &[], "").status, 303);
    assert_eq!(service.send("POST", "/what-if", &[&session], "").status, 405);
}

/// The stream is the history: from any position, once, in order, to the end of the service.
#[test]
fn the_stream_is_the_history() {
    let mut service = populated();
    let bearer = format!("authorization: Bearer {}", service.token("cluster/operator"));
    let listed = service.ctl(&["list", "events"]).expect_code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let listed = listed["events"].as_array().expect("a list").clone();
    let all: Vec<_> = Events::open(&service, "/v1/watch?after=0", &[&bearer]).take(listed.len()).collect();
    for (at, (kind, seq, data)) in all.iter().enumerate() {
        assert_eq!((kind.as_str(), *seq), ("event", at as u64 + 1));
        assert_eq!(serde_json::from_str::<Value>(data).expect("JSON"), listed[at]);
    }
    // A client that connects again names the last event that it has.
    let last = "last-event-id: 5";
    let resumed: Vec<_> =
        Events::open(&service, "/v1/watch?after=0", &[&bearer, last]).take(listed.len() - 5).collect();
    assert_eq!(resumed, all[5..]);
    // One that names none gets what happens from now on.
    let mut news = Events::open(&service, "/v1/watch", &[&bearer]);
    service.request("shop", "news", "99% < 1us", "127.0.0.11").expect_code(1);
    let (_, seq, data) = news.next().expect("an event");
    assert_eq!(seq, all.len() as u64 + 1);
    assert!(data.contains("workload-refused"), "{data}");
    // A token holds a bounded number of streams; those of above may not be counted out yet.
    let mut held = Vec::new();
    let refused = loop {
        let mut stream = BufReader::new(service.connect("GET", "/v1/watch", &[&bearer], ""));
        let mut status = String::new();
        stream.read_line(&mut status).expect("a status");
        if !status.contains(" 200 ") {
            break status;
        }
        held.push(stream);
        assert!(held.len() < 32, "there is no end");
    };
    assert!(refused.contains(" 429 ") && held.len() >= 28, "{refused} after {}", held.len());
    drop(held);
    // The end of the service ends streams, and does not wait for them.
    let controller = service.controller.take().expect("it runs");
    controller.signal("TERM");
    assert_eq!(news.next(), None);
    assert!(controller.ends_well());
}

/// An operator who replaces what another has replaced meanwhile is told, and replaces nothing.
#[test]
fn two_operators_do_not_overwrite_each_other() {
    let service = Service::start();
    let bearer = format!("authorization: Bearer {}", service.token("cluster/operator"));
    let read = service.send("GET", "/v1/hosts", &[&bearer], "");
    assert_eq!((read.status, read.body.as_str()), (200, HOSTS));
    let tag = read.header("etag").expect("a tag").to_owned();
    let condition = format!("if-match: {tag}");
    let path = "/v1/hosts?network=assumed";
    let first = service.send("PUT", path, &[&bearer, &condition], &format!("{HOSTS}# first\n"));
    assert_eq!(first.status, 204, "{first:?}");
    assert_ne!(first.header("etag"), Some(tag.as_str()));
    let second = service.send("PUT", path, &[&bearer, &condition], &format!("{HOSTS}# second\n"));
    assert_eq!(second.status, 412, "{second:?}");
    assert!(second.body.contains("have changed since they were read"), "{}", second.body);
    assert_eq!(service.send("GET", "/v1/hosts", &[&bearer], "").body, format!("{HOSTS}# first\n"));
    // The classes have a tag of their own, and `ctl` reads before it writes.
    let classes = service.send("GET", "/v1/classes", &[&bearer], "");
    let json = "content-type: application/json";
    assert_eq!(service.send("PUT", "/v1/classes", &[&bearer, json, &condition], &classes.body).status, 412);
    let condition = format!("if-match: \"other\", {}", classes.header("etag").expect("a tag"));
    assert_eq!(service.send("PUT", "/v1/classes", &[&bearer, json, &condition], &classes.body).status, 204);
    service.ctl(&["describe", "--hosts", "hosts.toml", "--assume-network"]).expect_code(0);
    assert_eq!(service.send("GET", "/v1/hosts", &[&bearer], "").body, HOSTS);
}

/// A client that does not read is cut, and the controller serves others meanwhile.
#[test]
fn a_client_that_does_not_read_is_cut() {
    let service = Service::start();
    let bearer = format!("authorization: Bearer {}", service.token("cluster/operator"));
    // Each event has the hosts file: more than all buffers of a connection hold.
    let large = format!("{HOSTS}# {}\n", "x".repeat(3 << 20));
    for round in 0..8 {
        let text = format!("{large}# {round}\n");
        let answer = service.send("PUT", "/v1/hosts?network=assumed", &[&bearer], &text);
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    let mut stream = service.connect("GET", "/v1/watch?after=0", &[&bearer], "");
    std::thread::sleep(Duration::from_secs(35));
    assert_eq!(service.send("GET", "/healthz", &[], "").status, 200);
    // Bytes that the kernel holds are read, and then the connection has ended, before all of the history.
    let all = 8 * (3 << 20);
    let mut rest = Vec::new();
    let ended = (&mut stream).take(all).read_to_end(&mut rest);
    assert!(rest.len() < usize::try_from(all).expect("a size"), "it was sent everything: {ended:?}");
}
