//! A writer whose output is well-formed by construction: elements close themselves, text is escaped.

use crate::escape::escape;

/// An attribute's value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A coordinate or length in pixels, written to a tenth.
    Px(f64),
    /// Any text.
    Text(String),
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Px(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Attributes in the order in which they are written.
pub(crate) type Attributes<'a> = &'a [(&'static str, Value)];

/// Markup being written.
#[derive(Debug, Default)]
pub(crate) struct Xml(String);

impl Xml {
    /// What was written.
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// An element with children.
    pub(crate) fn within(&mut self, tag: &str, attributes: Attributes<'_>, children: impl FnOnce(&mut Self)) {
        self.start(tag, attributes);
        self.0.push('>');
        children(self);
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    /// An element that holds text. No white space is added inside it.
    pub(crate) fn text(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.within(tag, attributes, |xml| xml.0.push_str(&escape(text)));
    }

    /// An empty element, or one that holds only a tooltip.
    pub(crate) fn shape(&mut self, tag: &str, attributes: Attributes<'_>, tooltip: &str) {
        if tooltip.is_empty() {
            self.start(tag, attributes);
            self.0.push_str("/>\n");
        } else {
            self.within(tag, attributes, |xml| xml.text("title", &[], tooltip));
        }
    }

    /// Text between elements.
    pub(crate) fn words(&mut self, text: &str) {
        self.0.push_str(&escape(text));
    }

    /// Markup that is known to be well-formed: constants of this crate and its own output.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    fn start(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            let text = match value {
                Value::Px(value) => px(*value),
                Value::Text(text) => escape(text),
            };
            self.0.extend([" ", *name, "=\"", text.as_str(), "\""]);
        }
    }
}

/// Pixels to a tenth without trailing zeros; far outside any drawing is far enough.
pub(crate) fn px(value: f64) -> String {
    assert!(!value.is_nan(), "a coordinate is a number");
    let tenths = (value.clamp(-1e5, 1e5) * 10.0).round();
    format!("{}", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, text) in
            [(1.0, "1"), (1.26, "1.3"), (-0.01, "0"), (f64::INFINITY, "100000"), (0.1 + 0.2, "0.3")]
        {
            assert_eq!(px(value), text);
        }
    }

    #[test]
    fn elements_close_and_text_is_escaped() {
        let mut xml = Xml::default();
        xml.within("g", &[("class", "a\"b".into())], |xml| {
            xml.shape("rect", &[("x", 1.5.into())], "");
            xml.shape("rect", &[], "<tip>");
        });
        assert_eq!(
            xml.into_string(),
            "<g class=\"a&quot;b\"><rect x=\"1.5\"/>\n<rect><title>&lt;tip&gt;</title>\n</rect>\n</g>\n"
        );
    }
}
