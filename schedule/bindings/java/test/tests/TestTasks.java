package tests;

import static tests.Expect.expect;
import static tests.Expect.inRequest;

import dev.tailwright.gat.Gat;
import dev.tailwright.gat.Propagation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.RejectedExecutionHandler;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Tags on other threads, under the agent: of the request that made the task, on no other, and on no thread afterwards. */
public final class TestTasks {
    private static final long A = 1_000;
    private static final long B = 2_000;

    public static void main(String[] arguments) throws Exception {
        Expect.endWhenOneFails();
        ExecutorService pool = Executors.newSingleThreadExecutor();
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
        ForkJoinPool forks = new ForkJoinPool(1);
        for (ExecutorService each : List.of(pool, timer, forks, ForkJoinPool.commonPool(), Executors.newCachedThreadPool())) {
            submissions(each);
        }
        expect(inRequest(A, () -> timer.schedule(TestTasks::start, 1, TimeUnit.MILLISECONDS)).get(), A, "a task for later");
        periodic(timer);
        sameTaskOfTwoRequests(pool);
        futures(pool);
        parallelStreams();
        exchangedTasks();
        rejectedTasks();
        tasksThatAreHandedBack();
        executorsThatLookAtTasks();
        Runnable tagged = inRequest(A, () -> Gat.tagged(() -> expect(start(), A, "a task with a tag")));
        tagged.run();
        expect(start(), null, "afterwards");
        expect(Propagation.current(), null, "this thread");
        System.exit(0);
    }

    private static Long start() {
        return Gat.current() == null ? null : Gat.current().startNs();
    }

    private static void submissions(ExecutorService pool) throws Exception {
        expect(inRequest(A, () -> pool.submit(TestTasks::start)).get(), A, pool);
        expect(pool.submit(TestTasks::start).get(), null, pool);
        CompletableFuture<Long> seen = new CompletableFuture<>();
        inRequest(B, () -> {
            pool.execute(() -> seen.complete(start()));
            return null;
        });
        expect(seen.get(), B, pool);
        List<Callable<Long>> two = List.of(TestTasks::start, TestTasks::start);
        for (Future<Long> each : inRequest(A, () -> pool.invokeAll(two))) {
            expect(each.get(), A, pool);
        }
        Callable<Long> nested = () -> inRequest(B, () -> start()) + start();
        expect(inRequest(A, () -> pool.submit(nested)).get(), A + B, "the parent's tag comes back");
        Future<Long> fails = inRequest(A, () -> pool.submit((Callable<Long>) () -> {
            throw new IllegalStateException("a task that fails");
        }));
        try {
            fails.get();
        } catch (java.util.concurrent.ExecutionException expected) {
            expect(pool.submit(TestTasks::start).get(), null, "after a failure");
        }
    }

    private static void periodic(ScheduledExecutorService timer) throws Exception {
        LinkedBlockingQueue<Long> seen = new LinkedBlockingQueue<>();
        Future<?> task = inRequest(A, () -> timer.scheduleAtFixedRate(() -> seen.add(start()), 0, 1, TimeUnit.MILLISECONDS));
        expect(List.of(seen.take(), seen.take(), seen.take()), List.of(A, A, A), "every run");
        task.cancel(false);
        expect(timer.submit(TestTasks::start).get(), null, "after the runs");
    }

    /** One object, submitted by two requests before it runs. */
    private static void sameTaskOfTwoRequests(ExecutorService pool) throws Exception {
        CountDownLatch both = new CountDownLatch(1);
        pool.execute(() -> Expect.await(both));
        LinkedBlockingQueue<Long> seen = new LinkedBlockingQueue<>();
        Runnable task = () -> seen.add(start() == null ? 0 : start());
        for (long request : new long[] {A, B}) {
            inRequest(request, () -> {
                pool.execute(task);
                return null;
            });
        }
        pool.execute(task);
        both.countDown();
        expect(List.of(seen.take(), seen.take(), seen.take()), List.of(A, B, 0L), "three submissions");
    }

    /** Steps run for the request that added them, whoever completes the future. */
    private static void futures(ExecutorService pool) throws Exception {
        CompletableFuture<Void> shared = new CompletableFuture<>();
        List<CompletableFuture<Long>> steps = new ArrayList<>();
        for (long request : new long[] {A, B}) {
            steps.add(inRequest(request, () -> shared.thenApply(nothing -> start())));
            steps.add(inRequest(request, () -> shared.thenApplyAsync(nothing -> start(), pool)));
            steps.add(inRequest(request, () -> shared.thenCompose(nothing -> CompletableFuture.supplyAsync(TestTasks::start))));
            steps.add(inRequest(request, () -> shared.handle((nothing, error) -> start())));
            steps.add(inRequest(request, () -> shared.thenCombine(shared, (one, other) -> start())));
        }
        CompletableFuture<Long> ofNobody = shared.thenApply(nothing -> start());
        inRequest(3_000, () -> shared.complete(null));
        for (int at = 0; at < steps.size(); at++) {
            expect(steps.get(at).get(), at < steps.size() / 2 ? A : B, "step " + at);
        }
        expect(ofNobody.get(), null, "a step outside of requests");
        expect(inRequest(A, () -> CompletableFuture.supplyAsync(TestTasks::start, pool)).get(), A, "supplyAsync");
        expect(inRequest(A, () -> CompletableFuture.supplyAsync(TestTasks::start, Runnable::run)).get(), A, "on the same thread");
    }

    private static void parallelStreams() throws Exception {
        long seen = inRequest(A, () -> IntStream.range(0, 1000).parallel().mapToLong(each -> start()).distinct().sum());
        expect(seen, A, "all threads of a stream");
    }

    /** What a service knows of its tasks still holds. */
    private static void exchangedTasks() throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        CountDownLatch gate = new CountDownLatch(1);
        pool.execute(() -> Expect.await(gate));
        LinkedBlockingQueue<String> ran = new LinkedBlockingQueue<>();
        Runnable removed = () -> ran.add("removed");
        boolean wasThere = inRequest(A, () -> {
            pool.execute(removed);
            return pool.remove(removed);
        });
        expect(wasThere, true, "a task that is removed before it runs");
        expect(pool.remove(removed), false, "a task that is not there");
        pool.execute(() -> ran.add("other"));
        gate.countDown();
        expect(ran.take(), "other", "the task after it");
    }

    /** A task of a class of the service, which knows its own tasks by that class. */
    private record Named(String name, LinkedBlockingQueue<Long> seen) implements Runnable {
        @Override
        public void run() {
            seen.add(start() == null ? 0 : start());
        }
    }

    /** Handlers are given what was submitted, in the request that submitted it. */
    private static void rejectedTasks() throws Exception {
        LinkedBlockingQueue<Runnable> rejected = new LinkedBlockingQueue<>();
        Named task = new Named("rejected", new LinkedBlockingQueue<>());
        Runnable tagged = inRequest(B, () -> Gat.tagged(task));
        RejectedExecutionHandler runs = (each, pool) -> {
            rejected.add(each);
            each.run();
        };
        for (RejectedExecutionHandler handler : List.of(runs, new ThreadPoolExecutor.CallerRunsPolicy())) {
            CountDownLatch gate = new CountDownLatch(1);
            ThreadPoolExecutor pool = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(1), handler);
            pool.execute(() -> Expect.await(gate));
            pool.execute(() -> { });
            inRequest(A, () -> {
                pool.execute(task);
                pool.execute(tagged);
                return null;
            });
            pool.execute(task);
            expect(List.of(task.seen().take(), task.seen().take(), task.seen().take()), List.of(A, B, 0L), handler);
            gate.countDown();
            pool.shutdown();
        }
        expect(new ArrayList<>(rejected), List.of(task, tagged, task), "what the handler is given");
    }

    /** What shutdownNow gives is what was submitted. */
    private static void tasksThatAreHandedBack() throws Exception {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        CountDownLatch runs = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        pool.execute(() -> {
            runs.countDown();
            try {
                gate.await();
            } catch (InterruptedException expected) {
                Thread.currentThread().interrupt();
            }
        });
        runs.await();
        Named task = new Named("queued", new LinkedBlockingQueue<>());
        Runnable tagged = inRequest(B, () -> Gat.tagged(task));
        inRequest(A, () -> {
            pool.execute(task);
            pool.execute(tagged);
            return null;
        });
        pool.execute(task);
        expect(pool.shutdownNow(), List.of(task, tagged, task), "tasks that have not begun");
    }

    /** They are given what was submitted. */
    private static void executorsThatLookAtTasks() throws Exception {
        LinkedBlockingQueue<Runnable> seen = new LinkedBlockingQueue<>();
        ThreadPoolExecutor looks = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>()) {
            @Override
            protected void afterExecute(Runnable task, Throwable error) {
                seen.add(task);
            }
        };
        Runnable task = () -> { };
        inRequest(A, () -> {
            looks.execute(task);
            return null;
        });
        expect(seen.take(), task, "what the executor sees");
        record Ordered(int order) implements Runnable, Comparable<Ordered> {
            @Override
            public void run() { }

            @Override
            public int compareTo(Ordered other) {
                return Integer.compare(order, other.order);
            }
        }
        ThreadPoolExecutor ordered = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new PriorityBlockingQueue<>());
        inRequest(A, () -> {
            IntStream.range(0, 10).forEach(each -> ordered.execute(new Ordered(each)));
            return null;
        });
        ordered.shutdown();
        expect(ordered.awaitTermination(60, TimeUnit.SECONDS), true, "tasks with an order");
        expect(ordered.getCompletedTaskCount(), 10L, "tasks with an order");
    }
}
