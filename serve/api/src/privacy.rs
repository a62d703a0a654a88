//! Decisions and derivations as a tenant may read them: nothing that names another tenant.
//!
//! A bound rests on all workloads of its server, and a host's complaint may be about any of them. Their limits are a part
//! of the derivation; their names are not.

use crate::documents::DecisionDocument;
use controller::full_name;
use serde_json::Value;

/// Reason of a withdrawal for tenants: the host's own words may name workloads of others.
const WITHDRAWN: &str = "a host could not apply the policy; operators see its reason";

/// Returns a decision as a tenant reads it; all of it for `None`, an operator.
pub(crate) fn decision_for(seen: Option<&str>, decision: DecisionDocument) -> DecisionDocument {
    if seen.is_none() || !decision.answer.ends_with("withdrawn") {
        return decision;
    }
    DecisionDocument { reason: Some(WITHDRAWN.to_owned()), ..decision }
}

/// Returns a derivation as a tenant reads it: workloads of others on the server have numbers instead of names.
pub(crate) fn derivation_for(seen: Option<&str>, mut derivation: Value) -> Value {
    let Some(tenant) = seen else { return derivation };
    let own = full_name(tenant, "");
    let neighbours = derivation.get_mut("company").and_then(Value::as_array_mut);
    let mut others = 0;
    for neighbour in neighbours.into_iter().flatten() {
        let is_own = neighbour["name"].as_str().is_some_and(|name| name.starts_with(&own));
        if !is_own {
            others += 1;
            neighbour["name"] = format!("another tenant's workload {others}").into();
        }
    }
    derivation
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn neighbours_of_other_tenants_have_no_names() {
        let derivation = || json!({ "company": [{ "name": "shop/mail" }, { "name": "shopper/mail" }, { "name": "bank/x" }] });
        let names = |seen| {
            let shown = derivation_for(seen, derivation());
            let names = shown["company"].as_array().expect("a list").iter();
            names.map(|it| it["name"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            names(Some("shop")),
            ["shop/mail", "another tenant's workload 1", "another tenant's workload 2"]
        );
        assert_eq!(names(None), ["shop/mail", "shopper/mail", "bank/x"]);
    }
}
