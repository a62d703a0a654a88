//! Trees of values with their lines, from YAML and JSON.
//!
//! A bounded tree: depth and number of nodes have a maximum, and an alias is not expanded but stands for an empty text.

use saphyr_parser::{Event, Parser};

/// Maximum depth of a tree.
const DEPTH_MAX: usize = 64;
/// Maximum number of values of a file.
const NODES_MAX: usize = 2_000_000;

/// A value and the line on which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: NodeValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    Text(String),
    List(Vec<Node>),
    /// Fields in the order of the file.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Returns the field of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.fields().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the value at the end of a path of fields.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns the text at the end of a path of fields.
    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.text()
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Returns the fields of a map, none of anything else.
    pub(crate) fn fields(&self) -> &[(String, Self)] {
        if let NodeValue::Map(fields) = &self.value { fields } else { &[] }
    }

    /// Returns the items of a list, none of anything else.
    pub(crate) fn items(&self) -> &[Self] {
        if let NodeValue::List(items) = &self.value { items } else { &[] }
    }
}

/// A list or map that is being read.
struct OpenNode {
    line: usize,
    is_map: bool,
    children: Vec<Node>,
}

impl OpenNode {
    fn close(self) -> Node {
        let Self { line, is_map, children } = self;
        if !is_map {
            return Node { line, value: NodeValue::List(children) };
        }
        let mut fields = Vec::with_capacity(children.len() / 2);
        let mut children = children.into_iter();
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            fields.push((key.text().unwrap_or_default().to_owned(), value));
        }
        Node { line, value: NodeValue::Map(fields) }
    }
}

/// Reads all documents of a YAML or JSON text.
///
/// # Errors
///
/// When the text is neither, is deeper than 64 levels or has more than two million values.
pub(crate) fn documents(text: &str) -> Result<Vec<Node>, String> {
    let mut documents = Vec::new();
    let mut first = 0;
    // kubectl prints several JSON objects one after the other, which YAML does not allow.
    let mut rest = text;
    while let Some(end) = rest.find("\n}\n{") {
        let (object, after) = rest.split_at(end + "\n}\n".len());
        read_into(object, first, &mut documents)?;
        first += object.lines().count();
        rest = after;
    }
    read_into(rest, first, &mut documents)?;
    Ok(documents)
}

/// Appends the documents of a text whose first line comes after `lines` others.
fn read_into(text: &str, lines: usize, documents: &mut Vec<Node>) -> Result<(), String> {
    let mut open: Vec<OpenNode> = Vec::new();
    let mut count = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| format!("line {}: {}", lines + error.marker().line(), error.info()))?;
        let line = lines + span.start.line();
        let done = match event {
            Event::Scalar(text, ..) => Some(Node { line, value: NodeValue::Text(text.into_owned()) }),
            Event::Alias(_) => Some(Node { line, value: NodeValue::Text(String::new()) }),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_map = matches!(event, Event::MappingStart(..));
                open.push(OpenNode { line, is_map, children: Vec::new() });
                if open.len() > DEPTH_MAX {
                    return Err(format!("line {line}: nested deeper than {DEPTH_MAX} levels"));
                }
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(OpenNode::close),
            _ => None,
        };
        let Some(node) = done else { continue };
        count += 1;
        if count > NODES_MAX {
            return Err(format!("line {line}: more than {NODES_MAX} values"));
        }
        match open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => documents.push(node),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let documents = documents("a: 1\nb:\n  - x\n  - y: 2\n---\nc: 3\n").expect("YAML");
        assert_eq!(documents.len(), 2);
        let y = documents[0].get("b").expect("there").items()[1].get("y").expect("there");
        assert_eq!((y.text(), y.line), (Some("2"), 4));
        assert_eq!(documents[1].text_at(&["c"]), Some("3"));
    }

    #[test]
    fn json_is_read_as_well() {
        let documents = documents("[{\"a\":{\"b\":\"x\"}},\n{\"a\":1.5e3}]").expect("JSON");
        let items = documents[0].items();
        assert_eq!(items[0].text_at(&["a", "b"]), Some("x"));
        assert_eq!((items[1].text_at(&["a"]), items[1].line), (Some("1.5e3"), 2));
    }

    #[test]
    fn aliases_do_not_multiply() {
        let mut text = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..60 {
            text += &format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
        }
        assert_eq!(documents(&text).expect("YAML")[0].fields().len(), 60);
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(documents(&"[".repeat(100_000)).is_err());
    }
}
