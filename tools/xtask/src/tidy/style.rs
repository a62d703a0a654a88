//! Habits of style that the tree gives up step by step: each has a count in `limits.txt`, which only falls.
//!
//! Counted are whole files, tests and benchmarks too. `cargo xtask tidy --counts` prints the files that have most.

use crate::syntax::{Comment, comments};
use crate::workspace::{Language, SourceFile};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The file of limits, from the workspace's root: lines of a name and a number.
pub(crate) const LIMITS_FILE: &str = "tools/xtask/limits.txt";

/// One thing that is counted.
pub(crate) struct StyleRule {
    /// Name in the file of limits.
    pub(crate) name: &'static str,
    /// Advice to the author of one more.
    advice: &'static str,
    count: fn(&SourceFile) -> Result<usize, String>,
}

pub(crate) const RULES: [StyleRule; 3] = [
    StyleRule {
        name: "tuple-bindings",
        advice: "write `let (a, b) = (x, y)` as two statements",
        count: tuple_bindings,
    },
    StyleRule {
        name: "openings",
        advice: "begin a comment with a noun or a verb, not with What, How, Whether, Who or Where",
        count: openings,
    },
    StyleRule {
        name: "people-words",
        advice: "whoever, nobody and somebody are people: name the request, thread or program",
        count: people_words,
    },
];

/// The occurrences of one rule.
pub(crate) struct StyleCount {
    pub(crate) rule: &'static StyleRule,
    /// Files with occurrences, most first.
    pub(crate) files: Vec<(String, usize)>,
}

impl StyleCount {
    pub(crate) fn total(&self) -> usize {
        self.files.iter().map(|(_, count)| count).sum()
    }
}

/// Counts the occurrences of every rule.
///
/// # Errors
/// A file that is not Rust.
pub(crate) fn count(sources: &[SourceFile]) -> Result<Vec<StyleCount>, String> {
    let of_rule = |rule: &'static StyleRule| {
        let mut files = Vec::new();
        for source in sources {
            let count = (rule.count)(source)?;
            if count > 0 {
                files.push((source.path.clone(), count));
            }
        }
        files.sort_by(|(path, count), (other_path, other)| other.cmp(count).then(path.cmp(other_path)));
        Ok(StyleCount { rule, files })
    };
    RULES.iter().map(of_rule).collect()
}

/// Result of comparing counts with their limits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) complaints: Vec<String>,
    /// Limits that can be lowered.
    pub(crate) notes: Vec<String>,
}

/// Compares totals by rule with the text of the file of limits.
pub(crate) fn judge(limits: &str, totals: &[(&StyleRule, usize)]) -> Judgement {
    let mut judgement = Judgement::default();
    for &(rule, total) in totals {
        let name = rule.name;
        match limit(limits, name) {
            None => judgement.complaints.push(format!("{LIMITS_FILE}: expected a line '{name} {total}'")),
            Some(limit) if total > limit => judgement.complaints.push(format!(
                "{name}: {total}, at most {limit} ({LIMITS_FILE}); {}; `cargo xtask tidy --counts` lists files",
                rule.advice
            )),
            Some(limit) if total < limit => {
                judgement.notes.push(format!("{LIMITS_FILE}: lower {name} from {limit} to {total}"));
            }
            Some(_) => {}
        }
    }
    judgement
}

fn limit(limits: &str, name: &str) -> Option<usize> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    limits.lines().find_map(value)
}

fn tuple_bindings(source: &SourceFile) -> Result<usize, String> {
    if source.language != Language::Rust {
        return Ok(0);
    }
    let tokens: TokenStream = source.text.parse().map_err(|error| format!("{}: {error}", source.path))?;
    Ok(bindings_in(tokens))
}

/// Statements `let (…, …) = (…, …);`, also in arguments of macros. With `else` they match patterns, and do not count.
fn bindings_in(tokens: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => count += bindings_in(group.stream()),
            TokenTree::Ident(word) if word == "let" => count += usize::from(is_binding(&tokens[at + 1..])),
            _ => {}
        }
    }
    count
}

/// True if the tokens after `let` bind the values of a tuple to a tuple of names.
fn is_binding(after: &[TokenTree]) -> bool {
    let Some((pattern, rest)) = after.split_first() else { return false };
    let end = rest.iter().position(|token| is_sign(token, ';')).unwrap_or(rest.len());
    let Some(equals) = rest[..end].iter().position(|token| is_sign(token, '=')) else { return false };
    let is_typed = rest.first().is_some_and(|token| is_sign(token, ':'));
    let value = &rest[equals + 1..end];
    is_tuple(pattern) && (equals == 0 || is_typed) && value.len() == 1 && is_tuple(&value[0])
}

fn is_tuple(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    group.delimiter() == Delimiter::Parenthesis
        && group.stream().into_iter().any(|token| is_sign(&token, ','))
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}

fn openings(source: &SourceFile) -> Result<usize, String> {
    if source.language == Language::Markdown {
        return Ok(0);
    }
    Ok(comments(&source.text).iter().filter(|comment| opens_with_a_question(comment)).count())
}

fn opens_with_a_question(comment: &Comment) -> bool {
    let first = comment.text.split(|next: char| !next.is_alphanumeric()).next().unwrap_or_default();
    ["What", "How", "Whether", "Who", "Where"].contains(&first)
}

/// Sentences about people, by file.
const PEOPLE: &[(&str, &str)] =
    &[("schedule/sched-hint/src/lib.rs", "Whoever may write the array decides who runs.")];

fn people_words(source: &SourceFile) -> Result<usize, String> {
    let prose = match source.language {
        Language::Markdown => source.text.clone(),
        Language::Rust | Language::C => {
            comments(&source.text).into_iter().map(|comment| comment.text + "\n").collect()
        }
    };
    let mut prose = without_code(&prose).split_whitespace().collect::<Vec<_>>().join(" ");
    for (_, sentence) in PEOPLE.iter().filter(|(path, _)| *path == source.path) {
        prose = prose.replace(sentence, "");
    }
    let words = prose.split(|next: char| !next.is_alphanumeric());
    Ok(words.filter(|word| is_of_people(word)).count())
}

fn is_of_people(word: &str) -> bool {
    ["whoever", "nobody", "somebody"].iter().any(|person| person.eq_ignore_ascii_case(word))
}

/// Text without what stands between backticks: `nobody` is also a user of Unix.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(language: Language, text: &str) -> SourceFile {
        SourceFile { path: "base/x/src/lib.rs".to_owned(), text: text.to_owned(), language }
    }

    fn bindings(statement: &str) -> usize {
        tuple_bindings(&source(Language::Rust, &format!("fn f() {{ {statement} }}"))).expect("Rust")
    }

    #[test]
    fn tuples_of_values_bound_to_names_count() {
        for statement in [
            "let (a, b) = (1, 2);",
            "let (mut a, b): (u8, Vec<u8>) = (1, vec![]);",
            "g(|| { let (a, b) = (f(1), 2); a });",
            "proptest! { fn f(x in 0..1) { let (a, b) = (x, x); } }",
        ] {
            assert_eq!(bindings(statement), 1, "{statement}");
        }
    }

    #[test]
    fn other_bindings_do_not_count() {
        for statement in [
            "let (a, b) = f(1, 2);",
            "let (a, b) = (1, 2).swap();",
            "let a = (1, 2);",
            "let (a) = (1);",
            "let (Some(a), Some(b)) = (f(), g()) else { return };",
            "if let (Some(a), Some(b)) = (f(), g()) {}",
            "let Pair(a, b) = (1, 2); let c = (1, 2);",
        ] {
            assert_eq!(bindings(statement), 0, "{statement}");
        }
    }

    #[test]
    fn comments_that_open_with_a_question_count() {
        let text = "/// What a knob sets.\nfn f() {} // Whether it is set.\n/// However it is.\n/// What not.\n\n// Sets\n";
        assert_eq!(openings(&source(Language::Rust, text)), Ok(2));
        assert_eq!(openings(&source(Language::C, "/* How many. */")), Ok(1));
        assert_eq!(openings(&source(Language::Markdown, "What it is.")), Ok(0));
    }

    #[test]
    fn words_for_people_count_in_prose_only() {
        let text = "// Nobody's turn, or\n// somebody's; `nobody`.\nlet nobody = \"whoever\";";
        assert_eq!(people_words(&source(Language::Rust, text)), Ok(2));
        assert_eq!(people_words(&source(Language::Markdown, "whoever and nobodyness")), Ok(1));
        let (path, sentence) = PEOPLE[0];
        let text = format!("//! {}\n// Nobody.", sentence.replacen(' ', "\n//! ", 3));
        let allowed = SourceFile { path: path.to_owned(), ..source(Language::Rust, &text) };
        assert_eq!(people_words(&allowed), Ok(1));
    }

    #[test]
    fn counts_may_fall_and_not_rise() {
        let limits = "# Counts.\nopenings 3\n";
        let judged = |total| judge(limits, &[(&RULES[1], total)]);
        assert_eq!(judged(3), Judgement::default());
        assert!(judged(4).complaints[0].contains("openings: 4, at most 3"));
        assert!(judged(2).notes[0].contains("lower openings from 3 to 2"));
        assert!(judge(limits, &[(&RULES[0], 1)]).complaints[0].contains("a line 'tuple-bindings 1'"));
    }
}
