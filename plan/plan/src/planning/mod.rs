//! Computes plans: the server, limits and guarantee of every workload. Only this module calls the search of
//! `placement`.

mod compare;
mod defaults;
mod derivation;
mod document;
mod enforced_curves;
mod fleet;
mod hosts;
mod kept;
mod migration;
mod names;
mod objectives;
mod policy;
mod recipe;
mod request;
mod search;
mod solution;
mod survival;

pub use compare::{MethodComparison, OrderComparison, compare};
pub use defaults::{DefaultCost, default_costs, describe_default_costs};
pub use derivation::{
    ClientDerivation, DeviceUse, GuaranteeDerivation, LinkDelay, ServerNeighbour, StageDelay, derive,
};
pub use document::PlanDocument;
pub use fleet::{ClassAlone, ClassUse, FleetPrices, MissingServers};
pub(crate) use kept::device_queue;
pub use kept::{KeptChanges, MovedWorkload};
pub use migration::{
    MigrationPlan, MigrationQuestion, MigrationStage, PolicyCopy, PolicyMove, RenamedServer, StageKind,
    plan_migration,
};
pub use objectives::ObjectiveBound;
pub use policy::policy_of;
pub use recipe::{Placing, PlanningRecipe, RecipeError, RecipeSettings, parse_method, recipe_of_policy};
pub use request::{
    GuaranteeExplanation, PlanRun, PlanningQuestion, RefusalExplanation, explain, plan_cluster,
};
pub(crate) use search::class_variants;
pub use search::plan;
pub use solution::{HostUse, PlannedCluster, WorkloadPlace};
pub use survival::{FailOverMove, FailedWorkload, PlanSurvival, ServerFailure, TightestWorkload};
