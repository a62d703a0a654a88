"""M/M/1 and a chain of three M/M/3 in SimPy and Ciw, for `engine.rs`: prints name, jobs, CPU seconds, mean response."""

import random
import sys
import time


def simpy_chain(workers, load, jobs, seed):
    import simpy

    draw = random.Random(seed)
    environment = simpy.Environment()
    tiers = [simpy.Resource(environment, capacity=c) for c in workers]
    responses = []

    def job():
        arrived = environment.now
        for tier in tiers:
            with tier.request() as turn:
                yield turn
                yield environment.timeout(draw.expovariate(1.0))
        responses.append(environment.now - arrived)

    def source():
        for _ in range(jobs):
            yield environment.timeout(draw.expovariate(load))
            environment.process(job())

    environment.process(source())
    environment.run()
    return responses


def ciw_chain(workers, load, jobs, seed):
    import ciw

    ciw.seed(seed)
    tiers = len(workers)
    arrivals = [ciw.dists.Exponential(rate=load)] + [None] * (tiers - 1)
    routing = [[1.0 if to == at + 1 else 0.0 for to in range(tiers)] for at in range(tiers)]
    network = ciw.create_network(
        arrival_distributions=arrivals,
        service_distributions=[ciw.dists.Exponential(rate=1.0) for _ in workers],
        routing=routing,
        number_of_servers=list(workers),
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(jobs, method="Finish")
    spent = {}
    for record in simulation.get_all_records():
        spent[record.id_number] = spent.get(record.id_number, 0.0) + record.exit_date - record.arrival_date
    return list(spent.values())


def main():
    jobs = int(sys.argv[1])
    for model, workers, load in (("M/M/1", [1], 0.8), ("chain of 3 M/M/3", [3, 3, 3], 2.4)):
        for name, run in (("SimPy", simpy_chain), ("Ciw", ciw_chain)):
            try:
                begun = time.process_time()
                responses = run(workers, load, jobs, 1)
                seconds = time.process_time() - begun
            except ImportError:
                print(f"{model}\t{name}\tmissing")
                continue
            print(f"{model}\t{name}\t{len(responses)}\t{seconds}\t{sum(responses) / len(responses)}")


main()
