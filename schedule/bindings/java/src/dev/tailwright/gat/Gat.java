package dev.tailwright.gat;

import java.util.Map;

/** What a service may ask. Tags pass without it. */
public final class Gat {
    private Gat() {}

    /** The tag of the request that this thread works for; null outside of requests, and without the agent. */
    public static Tag current() {
        return Propagation.current();
    }

    /** A task that has the current tag on whatever thread it runs. */
    public static Runnable tagged(Runnable task) {
        return Propagation.tagged(task);
    }

    /** How often each case occurred; empty at the edge, and without the agent. */
    public static Map<TagCase, Long> counts() {
        return Propagation.role() instanceof InnerTier tier ? tier.counts() : Map.of();
    }
}
