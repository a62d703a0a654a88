package dev.tailwright.gat;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;

/** Accepts tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival. */
final class InnerTier implements Role {
    private static final long NS_PER_S = 1_000_000_000;
    /** By how much a start may be in the future. */
    private static final long AHEAD_NS_MAX = NS_PER_S;
    /** How old a request can be. */
    private static final long AGE_NS_MAX = 3600 * NS_PER_S;

    private final LongSupplier clockNs;
    private final AtomicLongArray counts = new AtomicLongArray(TagCase.values().length);

    InnerTier(LongSupplier clockNs) {
        this.clockNs = clockNs;
    }

    private record Judgement(Tag tag, TagCase situation) {}

    @Override
    public Tag receive(List<String> values, String path) {
        Judgement judgement = judge(values, clockNs.getAsLong());
        counts.incrementAndGet(judgement.situation.ordinal());
        return judgement.tag;
    }

    Map<TagCase, Long> counts() {
        Map<TagCase, Long> copy = new EnumMap<>(TagCase.class);
        for (TagCase situation : TagCase.values()) {
            copy.put(situation, counts.get(situation.ordinal()));
        }
        return copy;
    }

    private static Judgement judge(List<String> values, long nowNs) {
        Tag tag;
        try {
            tag = Baggage.read(values);
        } catch (MalformedTagException error) {
            return new Judgement(Tag.startingAt(nowNs), TagCase.MALFORMED);
        }
        if (tag == null) {
            return new Judgement(Tag.startingAt(nowNs), TagCase.UNTAGGED);
        }
        if (isAfter(tag.startNs(), nowNs + AHEAD_NS_MAX)) {
            return new Judgement(Tag.startingAt(nowNs), TagCase.FUTURE);
        }
        long oldestNs = Math.max(nowNs - AGE_NS_MAX, 0);
        boolean isTooOld = isAfter(oldestNs, tag.startNs());
        return judgeDeadline(isTooOld ? new Tag(oldestNs, tag.deadlineNs()) : tag, isTooOld);
    }

    /** Of a tag with a possible start. */
    private static Judgement judgeDeadline(Tag tag, boolean isTooOld) {
        TagCase situation = isTooOld ? TagCase.TOO_OLD : TagCase.ACCEPTED;
        if (!tag.hasDeadline()) {
            return new Judgement(tag, situation);
        }
        boolean isBefore = isAfter(tag.startNs(), tag.deadlineNs());
        boolean isTooFar = isAfter(tag.deadlineNs(), tag.startNs() + PathSlos.SLO_NS_MAX);
        if (!isBefore && !isTooFar) {
            return new Judgement(tag, situation);
        }
        TagCase wrong = isBefore ? TagCase.DEADLINE_BEFORE_START : TagCase.DEADLINE_TOO_FAR;
        return new Judgement(Tag.startingAt(tag.startNs()), isTooOld ? situation : wrong);
    }

    private static boolean isAfter(long oneNs, long otherNs) {
        return Long.compareUnsigned(oneNs, otherNs) > 0;
    }
}
