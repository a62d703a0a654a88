package tests;

import dev.tailwright.gat.Propagation;
import dev.tailwright.gat.Tag;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;

/** What the tests share. */
final class Expect {
    private Expect() {}

    static void expect(Object found, Object expected, Object what) {
        if (found == null ? expected != null : !found.equals(expected)) {
            throw new AssertionError(what + ": found " + found + ", expected " + expected);
        }
    }

    /** Threads of servers and pools do not keep a program alive whose test has failed. */
    static void endWhenOneFails() {
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
    }

    /** Work for a request that began at this instant. */
    static <T> T inRequest(long startNs, Callable<T> work) throws Exception {
        Tag former = Propagation.exchange(new Tag(startNs, 0));
        try {
            return work.call();
        } finally {
            Propagation.restore(former);
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
