//! The stages of a shared storage server, and one value for each of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Index, IndexMut};

/// A queue that a request passes on its way through a shared storage server, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The network link into the server.
    NetworkIn,
    /// The storage device behind the server.
    Storage,
    /// The network link out of the server.
    NetworkOut,
}

impl Stage {
    /// Every stage, in the order in which a request passes them.
    pub const ALL: [Self; 3] = [Self::NetworkIn, Self::Storage, Self::NetworkOut];

    /// The name in files: `network-in`, `storage`, `network-out`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkIn => "network-in",
            Self::Storage => "storage",
            Self::NetworkOut => "network-out",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value for every stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerStage<T>([T; 3]);

impl<T> PerStage<T> {
    /// `value(stage)` for every stage, in path order.
    pub fn from_fn(mut value: impl FnMut(Stage) -> T) -> Self {
        Self(Stage::ALL.map(&mut value))
    }

    /// Stages and values in path order.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, &T)> {
        Stage::ALL.into_iter().zip(&self.0)
    }

    /// The values in path order.
    pub fn into_array(self) -> [T; 3] {
        self.0
    }

    /// The same stages with other values.
    pub fn map<U>(&self, mut change: impl FnMut(&T) -> U) -> PerStage<U> {
        PerStage::from_fn(|stage| change(&self[stage]))
    }
}

impl<T> Index<Stage> for PerStage<T> {
    type Output = T;
    fn index(&self, stage: Stage) -> &T {
        &self.0[stage as usize]
    }
}

impl<T> IndexMut<Stage> for PerStage<T> {
    fn index_mut(&mut self, stage: Stage) -> &mut T {
        &mut self.0[stage as usize]
    }
}
