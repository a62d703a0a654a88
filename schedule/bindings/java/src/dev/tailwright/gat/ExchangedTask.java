package dev.tailwright.gat;

/** What an executor runs instead of a task that was submitted in a request. */
record ExchangedTask(TaggedTask tagged) implements Runnable {
    /** What was submitted. */
    Runnable task() {
        return tagged.task();
    }

    @Override
    public void run() {
        tagged.run();
    }
}
