//! Prices of servers: all classes have one, or none has.

use super::rules::{RuleSite, SitedError};
use model::{Cluster, ServerClass};

/// Prices beyond this add up with too few digits.
const PRICE_MAX: f64 = 1e12;

/// Checks that prices are positive, and that every class has one if any has.
pub(super) fn check_prices(cluster: &Cluster) -> Result<(), SitedError> {
    let priced = cluster.servers.iter().find(|class| class.price.is_some());
    for (index, class) in cluster.servers.iter().enumerate() {
        let name = &class.class;
        let error = |what: String| Err((RuleSite::Server(index), format!("server class '{name}': {what}")));
        match (class.price, priced) {
            (Some(price), _) if !(price > 0.0 && price <= PRICE_MAX) => {
                return error(format!(
                    "price is {price}, expected a number above 0 and at most {PRICE_MAX:e}"
                ));
            }
            (None, Some(priced)) => {
                return error(format!(
                    "it has no price, but class '{}' has one: expected a price of every class, or of none",
                    priced.class
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the price of a server by class; empty if servers have none.
pub(crate) fn prices(servers: &[ServerClass]) -> Vec<f64> {
    servers.iter().filter_map(|class| class.price).collect()
}
