//! One module per verb: its arguments, what it calls, what it prints.

<<<<<<< HEAD
pub(crate) mod profile;
=======
pub(crate) mod trace;
>>>>>>> wt-trace
