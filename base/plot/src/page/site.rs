//! Parts of a page that a service serves: links to its other pages, forms, and a stream that renews its content.

use crate::xml::{AttributeValue, Xml};

/// A link to another page.
#[derive(Debug, Clone)]
pub struct Link {
    text: String,
    address: String,
    is_current: bool,
}

impl Link {
    /// Creates a link to an address.
    pub fn new(text: impl Into<String>, address: impl Into<String>) -> Self {
        Self { text: text.into(), address: address.into(), is_current: false }
    }

    /// Marks the link to the page that it is on.
    #[must_use]
    pub fn current(mut self, is_current: bool) -> Self {
        self.is_current = is_current;
        self
    }
}

/// A form that sends fields by POST.
#[derive(Debug, Clone)]
pub struct Form {
    action: String,
    button: String,
    fields: Vec<Field>,
    /// True if the fields are a part of the address of the answer.
    is_question: bool,
}

#[derive(Debug, Clone)]
enum Field {
    Hidden { name: &'static str, value: String },
    Secret { name: &'static str, label: String },
    Text { name: &'static str, label: String, value: String },
}

impl Form {
    /// Creates a form without fields; `button` is the text of its button.
    pub fn new(action: impl Into<String>, button: impl Into<String>) -> Self {
        Self { action: action.into(), button: button.into(), fields: Vec::new(), is_question: false }
    }

    /// Adds a field with a fixed value, which is not visible.
    #[must_use]
    pub fn hidden(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push(Field::Hidden { name, value: value.into() });
        self
    }

    /// Adds a field for a password or token.
    #[must_use]
    pub fn secret(mut self, name: &'static str, label: impl Into<String>) -> Self {
        self.fields.push(Field::Secret { name, label: label.into() });
        self
    }

    /// Adds a field for a line of text.
    #[must_use]
    pub fn text(mut self, name: &'static str, label: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push(Field::Text { name, label: label.into(), value: value.into() });
        self
    }

    /// Makes it a form that changes nothing: it is sent by GET, and its answer has an address.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.is_question = true;
        self
    }

    pub(crate) fn write(&self, xml: &mut Xml) {
        let method = if self.is_question { "get" } else { "post" };
        let attributes = [("method", method.into()), ("action", self.action.as_str().into())];
        xml.element("form", &attributes, |xml| {
            for field in &self.fields {
                match field {
                    Field::Hidden { name, value } => {
                        let attributes = [
                            ("type", "hidden".into()),
                            ("name", (*name).into()),
                            ("value", value.as_str().into()),
                        ];
                        xml.shape("input", &attributes, "");
                    }
                    Field::Text { name, label, value } => xml.element("label", &[], |xml| {
                        xml.text_element("span", &[], label);
                        let attributes = [
                            ("type", "text".into()),
                            ("name", (*name).into()),
                            ("value", value.as_str().into()),
                            ("autocomplete", "off".into()),
                        ];
                        xml.shape("input", &attributes, "");
                    }),
                    Field::Secret { name, label } => xml.element("label", &[], |xml| {
                        xml.text_element("span", &[], label);
                        let attributes = [
                            ("type", "password".into()),
                            ("name", (*name).into()),
                            ("autocomplete", "current-password".into()),
                            ("required", "required".into()),
                            ("autofocus", "autofocus".into()),
                        ];
                        xml.shape("input", &attributes, "");
                    }),
                }
            }
            xml.text_element("button", &[("type", "submit".into())], &self.button);
        });
    }
}

/// The frame of the pages of a service.
#[derive(Debug, Clone)]
pub struct Site {
    nonce: String,
    links: Vec<Link>,
    form: Option<Form>,
    stream: Option<String>,
}

impl Site {
    /// Creates a frame. `nonce` is a random text by which the content security policy knows the page's own script.
    pub fn new(nonce: impl Into<String>) -> Self {
        Self { nonce: nonce.into(), links: Vec::new(), form: None, stream: None }
    }

    /// Sets the links above the page.
    #[must_use]
    pub fn links(mut self, links: impl IntoIterator<Item = Link>) -> Self {
        self.links = links.into_iter().collect();
        self
    }

    /// Sets a form beside the links, such as a button to sign out.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// Renews the content when this stream of server-sent events has one.
    #[must_use]
    pub fn stream(mut self, address: impl Into<String>) -> Self {
        self.stream = Some(address.into());
        self
    }

    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns true if the content of the page is renewed.
    pub(crate) fn is_renewed(&self) -> bool {
        self.stream.is_some()
    }

    pub(crate) fn attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        self.stream.iter().map(|stream| ("data-stream", stream.as_str().into())).collect()
    }

    pub(crate) fn write_header(&self, xml: &mut Xml) {
        xml.element("header", &[("class", "site".into())], |xml| {
            write_links(xml, &self.links, "Pages");
            if let Some(form) = &self.form {
                form.write(xml);
            }
        });
        if self.stream.is_some() {
            // Readers are told of a change of its text, for which it has to be there before.
            xml.text_element("p", &[("class", "news".into()), ("role", "status".into())], "");
        }
    }
}

pub(crate) fn write_links(xml: &mut Xml, links: &[Link], label: &str) {
    if links.is_empty() {
        return;
    }
    xml.element("nav", &[("class", "links".into()), ("aria-label", label.into())], |xml| {
        xml.element("ul", &[], |xml| {
            for link in links {
                xml.element("li", &[], |xml| {
                    let mut attributes = vec![("href", link.address.as_str().into())];
                    if link.is_current {
                        attributes.push(("aria-current", "page".into()));
                    }
                    xml.text_element("a", &attributes, &link.text);
                });
            }
        });
    });
}

/// Styles of what only served pages have.
pub(crate) const CSS: &str = r#"
a{color:var(--p0);text-decoration:none}
a:hover{text-decoration:underline}
:focus-visible{outline:2px solid var(--p0);outline-offset:2px}
.site{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:8px 24px;max-width:1008px;margin:0 auto;padding:16px 24px 0;font-size:14px}
.site+main,.news+main{padding-top:24px}
.links ul{list-style:none;display:flex;flex-wrap:wrap;gap:6px 20px;margin:0;padding:0}
main .links{margin:14px 0;font-size:14px}
.links a{display:inline-block;padding:4px 0}
.links a[aria-current]{color:var(--ink);font-weight:600}
td a{overflow-wrap:anywhere}
main form{display:flex;flex-wrap:wrap;align-items:end;gap:12px;margin:20px 0}
label span{display:block;font-size:13px;color:var(--soft);margin-bottom:4px}
input,button{font:inherit;color:var(--ink);background:var(--panel);border:1px solid var(--soft);border-radius:6px;padding:6px 12px;max-width:100%}
input{width:22em;background:var(--paper)}
input[type=text]{width:15em}
button{cursor:pointer}
button:hover{border-color:var(--ink)}
.news:empty{display:none}
.news{position:sticky;top:0;z-index:1;max-width:none;margin:12px 0 0;padding:8px 24px;background:var(--panel);color:var(--ink);border:1px solid var(--warn);border-width:1px 0;text-align:center;font-size:14px}
@media screen and (max-width:760px){.site{padding:12px 16px 0}.site+main,.news+main{padding-top:16px}}
@media print{.site,.news,main .links{display:none}}
"#;

/// The parts of a page as they were served, before the script for all pages changes them.
pub(crate) const BEFORE_SCRIPT: &str = r#"
function texts(main){ return Array.from(main.children).map(function(part){ return part.outerHTML; }); }
var served = texts(document.querySelector("main"));
"#;

/// A script that renews a page when its stream has an event. It fetches the page again and replaces the parts that
/// differ, and keeps what the reader did to them: open folds, the order of tables, focus, and where they are scrolled to.
/// It is XML as [`SCRIPT`](super::style::SCRIPT) is.
pub(crate) const SCRIPT: &str = r#"
(function(){
  var address = document.body.dataset.stream;
  if (address === undefined) return;
  if (window.EventSource === undefined) return;
  var main = document.querySelector("main"), news = document.querySelector(".news");
  var stream = null, timer = null, busy = false, again = false, over = false, asOf = new Date();
  function say(text, link){
    if (news.textContent === text) return;
    news.textContent = text;
    if (link === undefined) return;
    var anchor = document.createElement("a");
    anchor.href = link;
    anchor.textContent = "Sign in again";
    news.append(" ", anchor);
  }
  function lost(){ say("The connection to the controller is lost; trying again. The page is as of " + asOf.toLocaleTimeString() + "."); }
  function ended(){
    over = true;
    if (stream) stream.close();
    say("The session has ended. The page is as of " + asOf.toLocaleTimeString() + ".", "/sign-in?next=" + encodeURIComponent(location.pathname + location.search));
  }
  function name(element){ return [element.tagName, element.textContent, element.getAttribute("href"), element.className].join(" "); }
  function alike(part, element){
    return Array.from(part.querySelectorAll(element.tagName)).filter(function(other){ return name(other) === name(element); });
  }
  function state(part){
    var active = part.contains(document.activeElement) ? document.activeElement : null;
    return {
      open: Array.from(part.querySelectorAll("details[open] > summary")).map(function(summary){ return summary.textContent; }),
      sorted: Array.from(part.querySelectorAll("table")).map(function(table){
        var heads = Array.from(table.querySelectorAll("thead th"));
        var column = heads.findIndex(function(head){ return head.hasAttribute("aria-sort"); });
        return { column: column, order: column === -1 ? "" : heads[column].getAttribute("aria-sort") };
      }),
      scrolled: Array.from(part.querySelectorAll(".table, pre")).map(function(box){ return [box.scrollLeft, box.scrollTop]; }),
      active: active, at: active ? alike(part, active).indexOf(active) : -1
    };
  }
  function restore(part, before){
    part.querySelectorAll("summary").forEach(function(summary){
      if (before.open.includes(summary.textContent)) summary.parentNode.open = true;
    });
    part.querySelectorAll("table").forEach(function(table, at){
      var sorted = before.sorted[at];
      if (sorted === undefined) return;
      var head = table.querySelectorAll("thead th")[sorted.column];
      if (head === undefined) return;
      head.click();
      if (sorted.order === "descending") head.click();
    });
    part.querySelectorAll(".table, pre").forEach(function(box, at){
      if (before.scrolled[at] !== undefined) box.scrollTo(before.scrolled[at][0], before.scrolled[at][1]);
    });
    if (before.active === null) return;
    var same = alike(part, before.active), element = same[Math.min(before.at, same.length - 1)];
    if (element !== undefined) element.focus({ preventScroll: true });
  }
  function replace(next){
    var parts = texts(next);
    // The part at the top of the screen stays there.
    var top = Array.from(main.children).findIndex(function(part){ return part.getBoundingClientRect().bottom > 0; });
    var offset = top === -1 ? 0 : main.children[top].getBoundingClientRect().top;
    if (parts.length === served.length) {
      Array.from(next.children).forEach(function(part, at){
        if (parts[at] === served[at]) return;
        var old = main.children[at], before = state(old), fresh = document.importNode(part, true);
        old.replaceWith(fresh);
        enhance(fresh);
        restore(fresh, before);
      });
    } else {
      var before = state(main);
      main.replaceChildren.apply(main, Array.from(next.children).map(function(part){ return document.importNode(part, true); }));
      enhance(main);
      restore(main, before);
    }
    served = parts;
    if (top !== -1) if (main.children[top] !== undefined) {
      var moved = main.children[top].getBoundingClientRect().top - offset;
      if (Math.abs(moved) > 1) scrollBy(0, moved);
    }
  }
  function renew(){
    timer = null;
    if (over) return;
    if (busy) { again = true; return; }
    busy = true;
    fetch(location.href, { cache: "no-store" }).then(function(answer){
      if (answer.redirected) return null;
      if (answer.status >= 500) throw new Error(answer.statusText);
      return answer.text();
    }).then(function(text){
      if (text === null) return ended();
      var page = new DOMParser().parseFromString(text, "text/html");
      replace(page.querySelector("main"));
      asOf = new Date();
      if (stream) if (stream.readyState === 1) say("");
    }).catch(lost).finally(function(){
      busy = false;
      if (again) { again = false; soon(); }
    });
  }
  function soon(){ if (timer === null) timer = setTimeout(renew, 150); }
  function listen(){
    stream = new EventSource(address);
    var isFirst = true, from = new URL(address, location.href);
    stream.onopen = function(){
      if (!isFirst) soon();
      if (isFirst) if (news.textContent !== "") soon();
      isFirst = false;
    };
    ["event", "decision", "workload"].forEach(function(kind){
      stream.addEventListener(kind, function(event){
        // A stream that is opened anew begins after what was seen.
        from.searchParams.set("after", event.lastEventId);
        address = from.href;
        soon();
      });
    });
    stream.onerror = function(){
      if (over) return;
      lost();
      // The browser connects again by itself, unless the answer was an error.
      if (stream.readyState !== 2) return;
      soon();
      setTimeout(function(){ if (!over) if (stream) if (stream.readyState === 2) listen(); }, 3000);
    };
  }
  document.addEventListener("visibilitychange", function(){
    if (over) return;
    // A browser has six connections to a server: pages that are not visible use none.
    if (document.hidden) { stream.close(); stream = null; return; }
    listen();
    soon();
  });
  if (!document.hidden) listen();
})();
"#;
