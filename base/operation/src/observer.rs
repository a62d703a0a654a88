//! Reports to callers during a long operation: progress of its tasks, and notices.

/// Observer of the progress of an operation.
///
/// Methods are called from several threads at once.
pub trait ProgressObserver: Sync {
    /// Begins a task, such as "reading traces", that consists of `total` steps, counted in `unit`. The task
    /// ends when the returned value is dropped.
    fn begin(&self, task: &str, total: u64, unit: &str) -> Box<dyn TaskProgress + '_>;

    /// Reports an observation that is not an error and that the user should know.
    fn notice(&self, notice: Notice);
}

/// A task under way.
pub trait TaskProgress: Sync {
    /// One more of the units is done.
    fn advance(&self);

    /// So many units are done, of a total that may have changed.
    fn update(&self, done: u64, total: u64);

    /// The task is called this from now on, because it has found something worth showing.
    fn rename(&self, task: &str);
}

/// Something that is no error and that a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The answer may be other than expected.
    Warning(String),
    /// The question was read in one of several ways.
    Note(String),
    /// A part of the work is done; the text describes it.
    Done(String),
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ProgressObserver for Silent {
    fn begin(&self, _: &str, _: u64, _: &str) -> Box<dyn TaskProgress + '_> {
        Box::new(Self)
    }

    fn notice(&self, _: Notice) {}
}

impl TaskProgress for Silent {
    fn advance(&self) {}

    fn update(&self, _: u64, _: u64) {}

    fn rename(&self, _: &str) {}
}
