//! The short text of distributions and arrival patterns, read and printed so that it reads back to the same value
//! (shares that are no decimal percentage, to the last digit of a double).
//!
//! `name(argument, key=argument, …)`; a bare time is a constant. An error says at which column and what was
//! expected there.

mod error;
mod expression;
mod parse;
mod print;

pub use error::ExpressionError;
