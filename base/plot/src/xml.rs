//! Writes XML that is well-formed by construction: elements are always closed, and text is escaped.

use crate::escape::escape;

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum AttributeValue {
    /// A coordinate or length in pixels, written to a tenth.
    Px(f64),
    /// Any text, which is escaped when written.
    Text(String),
}

impl From<f64> for AttributeValue {
    fn from(value: f64) -> Self {
        Self::Px(value)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Attributes in the order in which they are written.
pub(crate) type Attributes<'a> = &'a [(&'static str, AttributeValue)];

/// A document that is being written.
#[derive(Debug, Default)]
pub(crate) struct Xml(String);

impl Xml {
    /// The document as text.
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Writes an element with children.
    pub(crate) fn element(
        &mut self,
        tag: &str,
        attributes: Attributes<'_>,
        children: impl FnOnce(&mut Self),
    ) {
        self.start(tag, attributes);
        self.0.push('>');
        children(self);
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    /// Writes an element that contains text, without white space around it.
    pub(crate) fn text_element(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.element(tag, attributes, |xml| xml.text(text));
    }

    /// Writes an element that is empty, or contains only a tooltip if that is not empty.
    pub(crate) fn shape(&mut self, tag: &str, attributes: Attributes<'_>, tooltip: &str) {
        if tooltip.is_empty() {
            self.start(tag, attributes);
            self.0.push_str("/>\n");
        } else {
            self.element(tag, attributes, |xml| xml.text_element("title", &[], tooltip));
        }
    }

    /// Writes text, which is escaped.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push_str(&escape(text));
    }

    /// Writes markup that is known to be well-formed, such as constants of this crate.
    pub(crate) fn markup(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    fn start(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            let text = match value {
                AttributeValue::Px(value) => px(*value),
                AttributeValue::Text(text) => escape(text),
            };
            self.0.extend([" ", *name, "=\"", text.as_str(), "\""]);
        }
    }
}

/// Writes pixels to a tenth, without trailing zeros. Values far outside any drawing are clamped.
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
        xml.element("g", &[("class", "a\"b".into())], |xml| {
            xml.shape("rect", &[("x", 1.5.into())], "");
            xml.shape("rect", &[], "<tip>");
        });
        assert_eq!(
            xml.into_string(),
            "<g class=\"a&quot;b\"><rect x=\"1.5\"/>\n<rect><title>&lt;tip&gt;</title>\n</rect>\n</g>\n"
        );
    }
}
