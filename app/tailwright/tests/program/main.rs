//! Words, documents, pages, files and shell completions that all verbs have in common.
//!
//! Tests of one kind share a program, since linking one takes longer than most of them run.

#[path = "../support/mod.rs"]
mod support;

mod completions;
mod docs;
mod first_examples;
mod json_documents;
mod mistaken_files;
mod output;
mod pages;
mod python;
mod tables;
mod wording;
