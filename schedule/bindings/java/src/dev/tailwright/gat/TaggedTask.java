package dev.tailwright.gat;

/** A task that works for a request on whatever thread it runs. */
record TaggedTask(Runnable task, Tag tag) implements Runnable {
    @Override
    public void run() {
        Tag former = Propagation.exchange(tag);
        try {
            task.run();
        } finally {
            Propagation.restore(former);
        }
    }
}
