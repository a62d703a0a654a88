package dev.tailwright.gat;

import java.time.Instant;

/** CLOCK_REALTIME in nanoseconds since 1970. */
final class RealClock {
    private static final long NS_PER_S = 1_000_000_000;

    private RealClock() {}

    static long nowNs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * NS_PER_S + now.getNano();
    }
}
