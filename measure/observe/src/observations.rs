//! Observed requests as those who judge want them.

use crate::request::{ObservedRequest, RequestPoint, STAGE_NAMES};
use model::{Observation, Observations, Op, RequestOutcome};
use std::collections::BTreeSet;
use units::{Bytes, Nanos};

/// The requests as observations, with a workload for each port, `port-11211`. A request counts from T0, when it came
/// from the wire, to T6; when the client meant to send it is not known here. The kernel does not know what is read and
/// what is written: every request counts as a read of the bytes of its answer.
pub fn observations(mut requests: Vec<ObservedRequest>) -> Observations {
    requests.sort_by_key(|request| (request.at(RequestPoint::Wire), request.peer, request.points));
    let origin = requests.first().map_or(0, |first| first.at(RequestPoint::Wire));
    let ports: BTreeSet<u16> = requests.iter().map(|request| request.port).collect();
    let ports: Vec<u16> = ports.into_iter().collect();
    Observations {
        workloads: ports.iter().map(|port| format!("port-{port}")).collect(),
        stages: STAGE_NAMES.map(str::to_owned).to_vec(),
        requests: requests.iter().map(|request| observation(request, &ports, origin)).collect(),
        stage_times: requests.iter().flat_map(|request| request.stages().map(Nanos)).collect(),
    }
}

/// A request whose workload is the place of its port, and whose instants count from `origin`.
fn observation(request: &ObservedRequest, ports: &[u16], origin: u64) -> Observation {
    let since = |point| Nanos(request.at(point) - origin);
    let workload = ports.binary_search(&request.port).expect("all ports are there");
    Observation {
        workload: u32::try_from(workload).expect("there are 2^16 ports"),
        op: Op::Read,
        size: Bytes(request.answer_bytes),
        intended: since(RequestPoint::Wire),
        sent: since(RequestPoint::Wire),
        outcome: RequestOutcome::Done(since(RequestPoint::Transmitted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::POINTS;
    use crate::testing;

    fn request(port: u16, wire: u64) -> ObservedRequest {
        testing::request(5, port, std::array::from_fn(|point| wire + point as u64))
    }

    #[test]
    fn requests_are_sorted_and_count_from_the_first() {
        let made = observations(vec![request(80, 1050), request(443, 1000), request(80, 1020)]);
        assert_eq!(made.workloads, ["port-80", "port-443"]);
        let rows: Vec<(u32, u64)> = made.requests.iter().map(|row| (row.workload, row.intended.0)).collect();
        assert_eq!(rows, [(1, 0), (0, 20), (0, 50)]);
        assert_eq!(made.requests[2].latency(), Some(Nanos(POINTS as u64 - 1)));
        assert_eq!(made.stage_times, vec![Nanos(1); 3 * made.stages.len()]);
        assert_eq!(observations(Vec::new()), Observations { stages: made.stages, ..Observations::default() });
    }
}
