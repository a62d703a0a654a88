//! Man pages, from the definitions that the help is made of.

use clap::Command;
use clap_mangen::Man;
use std::io;

/// A man page and the name of its file.
pub(crate) struct ManPage {
    /// The name of the file, such as `tailwright-plan.1`.
    pub(crate) file: String,
    /// The page in the language of roff.
    pub(crate) text: String,
}

/// The pages of a program and of everything that it can be told to do.
pub(crate) fn pages(mut program: Command) -> Vec<ManPage> {
    program.build();
    let mut pages = Vec::new();
    add_pages(&program, &mut pages);
    pages
}

fn add_pages(command: &Command, pages: &mut Vec<ManPage>) {
    for verb in command.get_subcommands() {
        if !verb.is_hide_set() && verb.get_name() != "help" {
            add_pages(verb, pages);
        }
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    render(&page, command, &mut text).expect("a vector can be written");
    let text = String::from_utf8(text).expect("help is UTF-8");
    pages.push(ManPage { file: page.get_filename(), text });
}

fn render(page: &Man, command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    page.render_title(text)?;
    page.render_name_section(text)?;
    page.render_synopsis_section(text)?;
    page.render_description_section(text)?;
    page.render_options_section(text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(text)?;
    }
    if let Some(notes) = command.get_after_help() {
        text.extend(notes_section(&notes.to_string()).into_bytes());
    }
    Ok(())
}

/// Longer lines that are not indented are paragraphs.
const FILLED_OVER: usize = 76;

/// Examples and the like, line by line as they are written, but for paragraphs, which are filled.
fn notes_section(notes: &str) -> String {
    let mut section = String::from(".SH NOTES\n.nf\n");
    for line in notes.lines() {
        let is_paragraph = !line.starts_with(' ') && line.chars().count() > FILLED_OVER;
        // A line that begins with one of these would be a command of roff.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        section += &match is_paragraph {
            true => format!(".fi\n{guard}{line}\n.nf\n"),
            false => format!("{guard}{line}\n"),
        };
    }
    section + ".fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_literal() {
        let section = notes_section("a \\\n.b --c\n'd");
        assert_eq!(section, ".SH NOTES\n.nf\na \\e\n\\&.b \\-\\-c\n\\&'d\n.fi\n");
    }

    #[test]
    fn paragraphs_are_filled() {
        let paragraph = "word ".repeat(30);
        let section = notes_section(&format!("Examples:\n  a\n\n{paragraph}"));
        assert_eq!(section, format!(".SH NOTES\n.nf\nExamples:\n  a\n\n.fi\n{paragraph}\n.nf\n.fi\n"));
    }
}
