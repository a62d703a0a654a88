//! Simulation of request streams through the queues of a server.
