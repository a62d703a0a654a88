"""The cases that every language has to get right."""

import json

import tailwright_gat as gat


def read(values):
    try:
        tag = gat.read(values)
    except gat.Malformed:
        return "malformed"
    due = tag and tag.deadline_ns
    return tag and [str(tag.start_ns), None if due is None else str(due)]


with open("../cases.json", encoding="utf-8") as file:
    cases = json.load(file)
assert len(cases) > 30
for case in cases:
    values = case["values"]
    stripped = gat.strip(values)
    change = "keep" if stripped == values else stripped[0] if stripped else "remove"
    written = gat.write(values, gat.Tag(1_700_000_000_000_000_000))
    assert (read(values), change, written) == (case["read"], case["strip"], case["written"]), case

with open("../hosts.json", encoding="utf-8") as file:
    for case in json.load(file):
        try:
            domain = gat.Domain(case["patterns"])
        except ValueError:
            domain = None
        assert (domain is None) == case.get("error", False), case
        assert domain is None or domain.contains(case["host"]) == case["contains"], case

with open("../received.json", encoding="utf-8") as file:
    received = json.load(file)
assert len(received) > 10
for case in received:
    tier = gat.InnerTier(clock_ns=lambda: 1_700_000_000_000_000_000)
    tag = tier.receive(case["values"])
    due = None if tag.deadline_ns is None else str(tag.deadline_ns)
    assert [str(tag.start_ns), due] == case["tag"] and tier.counts()[case["case"]] == 1, case

for slo_ns in [0, -1, gat.SLO_NS_MAX + 1, 0.5, True, "1"]:
    for refused in [lambda: gat.Edge(slo_ns), lambda: gat.Edge(slo_ns_of=lambda _: slo_ns).receive([])]:
        try:
            refused()
        except ValueError:
            continue
        raise AssertionError(slo_ns)
