"""The whole system in one process, with a stopped clock and faults at every port; `proof.simulation` runs it by seeds."""
