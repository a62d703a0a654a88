package dev.tailwright.gat;

/**
 * When a request entered, and when its answer is due: nanoseconds since 1970, as unsigned numbers. No deadline is 0.
 *
 * @param startNs when it entered
 * @param deadlineNs when its answer is due
 */
public record Tag(long startNs, long deadlineNs) {
    static Tag startingAt(long startNs) {
        return new Tag(startNs, 0);
    }

    boolean hasDeadline() {
        return deadlineNs != 0;
    }
}
