package dev.tailwright.gat;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Stamps requests from outside, whatever tags they carry. Starts of one Edge increase strictly. */
final class Edge implements Role {
    private final PathSlos slos;
    private final LongSupplier clockNs;
    private final AtomicLong lastNs = new AtomicLong();

    Edge(PathSlos slos, LongSupplier clockNs) {
        this.slos = slos;
        this.clockNs = clockNs;
    }

    @Override
    public Tag receive(List<String> values, String path) {
        long nowNs = clockNs.getAsLong();
        long startNs = lastNs.updateAndGet(last -> Math.max(last + 1, nowNs));
        long sloNs = slos.ofPath(path);
        return new Tag(startNs, sloNs == 0 ? 0 : startNs + sloNs);
    }
}
