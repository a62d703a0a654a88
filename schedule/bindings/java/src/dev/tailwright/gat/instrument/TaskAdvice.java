package dev.tailwright.gat.instrument;

import dev.tailwright.gat.Propagation;
import dev.tailwright.gat.Tag;
import java.util.List;
import java.util.concurrent.ThreadPoolExecutor;
import net.bytebuddy.asm.Advice;

/** Tasks, which run for the request in which they were made, on any thread. */
final class TaskAdvice {
    private TaskAdvice() {}

    /** A task that is made for one submission: FutureTask, ForkJoinTask, the steps of a CompletableFuture. */
    static final class Make {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object task) {
            Propagation.made(task);
        }
    }

    /** Such a task runs. One that was made outside of requests runs for none. */
    static final class Run {
        @Advice.OnMethodEnter
        static Tag enter(@Advice.This Object task) {
            return Propagation.exchange(Propagation.of(task));
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Enter Tag former) {
            Propagation.restore(former);
        }
    }

    /** A task of the service is submitted, perhaps not for the first time. */
    static final class Execute {
        @Advice.OnMethodEnter
        static void enter(@Advice.This ThreadPoolExecutor executor, @Advice.Argument(value = 0, readOnly = false) Runnable task) {
            task = Propagation.submitted(executor, task);
        }
    }

    /** A task is removed before it runs. */
    static final class Remove {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This ThreadPoolExecutor executor,
                @Advice.Argument(0) Runnable task,
                @Advice.Return(readOnly = false) boolean isRemoved) {
            isRemoved = isRemoved || Propagation.removed(executor, task);
        }
    }

    /** A task is rejected: handlers are given what was submitted. */
    static final class Reject {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Runnable task) {
            task = Propagation.original(task);
        }
    }

    /** Tasks that have not begun are handed back. */
    static final class ShutdownNow {
        @Advice.OnMethodExit
        static void exit(@Advice.Return List<Runnable> tasks) {
            Propagation.toOriginals(tasks);
        }
    }
}
