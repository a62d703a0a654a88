//! Open-loop load against real servers.
