package dev.tailwright.gat;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.FutureTask;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.BiPredicate;
import java.util.function.Supplier;

/** What the instrumented classes call. It is public because they are in other packages; services use {@link Gat}. */
public final class Propagation {
    /** The name of the header. */
    public static final String HEADER = "baggage";
    /** Accepts every header. */
    public static final BiPredicate<String, String> EVERY = (name, value) -> true;

    private static final ThreadLocal<Tag> CURRENT = new ThreadLocal<>();
    /** The tags of tasks and calls, of the requests in which they were made. */
    private static final WeakIdentityMap<Tag> TAGS = new WeakIdentityMap<>();
    /** Whether a class of executors looks at the tasks that it runs, so that they cannot be exchanged. */
    private static final ClassValue<Boolean> LOOKS_AT_TASKS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return overrides(type, "beforeExecute") || overrides(type, "afterExecute");
        }
    };

    private static volatile Role role;
    private static volatile HostList hosts = new HostList("");

    private Propagation() {}

    static void configure(Role newRole, HostList newHosts) {
        role = newRole;
        hosts = newHosts;
    }

    static Role role() {
        return role;
    }

    /** The tag of the request that this thread works for; null outside of requests. */
    public static Tag current() {
        return CURRENT.get();
    }

    /** Sets the current tag, null for none, and gives the former one. */
    public static Tag exchange(Tag tag) {
        Tag former = CURRENT.get();
        if (tag != former) {
            restore(tag);
        }
        return former;
    }

    /** Sets the current tag. */
    public static void restore(Tag tag) {
        if (tag == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(tag);
        }
    }

    /** Decides on the tag of a request that comes in, for a decoded path. */
    public static Tag receive(List<String> values, String path) {
        return role.receive(values, path);
    }

    /** The value of the header that the service sees. */
    public static String seen(List<String> values, Tag tag) {
        return Baggage.write(values, tag);
    }

    /** Without tags. */
    public static List<String> strip(List<String> values) {
        return Baggage.strip(values);
    }

    /** The values of a call to a host whose own ones are these, with this tag, or null. */
    public static List<String> outgoing(List<String> values, Tag tag, String host) {
        if (!hosts.contains(host)) {
            return Baggage.strip(values);
        }
        return tag == null ? values : List.of(Baggage.write(values, tag));
    }

    /** The same for all headers of a call, whose names are in any case; the map itself where nothing changes. */
    public static Map<String, List<String>> outgoing(Map<String, List<String>> headers, Tag tag, String host) {
        List<String> before = headers.entrySet().stream()
                .filter(entry -> entry.getKey().equalsIgnoreCase(HEADER))
                .flatMap(entry -> entry.getValue().stream())
                .toList();
        List<String> after = outgoing(before, tag, host);
        if (after.equals(before)) {
            return headers;
        }
        Map<String, List<String>> changed = new HashMap<>(headers);
        changed.keySet().removeIf(name -> name.equalsIgnoreCase(HEADER));
        if (!after.isEmpty()) {
            changed.put(HEADER, after);
        }
        return changed;
    }

    /** Trailers of a reply without tags. */
    public static Supplier<Map<String, String>> withoutTags(Supplier<Map<String, String>> trailers) {
        return trailers == null ? null : () -> {
            Map<String, String> stripped = new TreeMap<>(trailers.get());
            for (Iterator<Map.Entry<String, String>> each = stripped.entrySet().iterator(); each.hasNext(); ) {
                Map.Entry<String, String> entry = each.next();
                List<String> rest = entry.getKey().equalsIgnoreCase(HEADER) ? strip(List.of(entry.getValue())) : List.of("");
                if (rest.isEmpty()) {
                    each.remove();
                } else if (entry.getKey().equalsIgnoreCase(HEADER)) {
                    entry.setValue(rest.get(0));
                }
            }
            return stripped;
        };
    }

    /** All that an iterator gives. */
    public static List<String> all(Iterator<String> values) {
        List<String> found = new ArrayList<>();
        values.forEachRemaining(found::add);
        return found;
    }

    /** Remembers the request in which an object was made. */
    public static void made(Object object) {
        Tag tag = CURRENT.get();
        if (tag != null) {
            TAGS.put(object, tag);
        }
    }

    /** The same for an object that is made from others: one of them may belong to a request already. */
    public static void madeFrom(Object object, Object[] others) {
        for (Object other : others) {
            Tag tag = other == null ? null : TAGS.get(other);
            if (tag != null) {
                TAGS.put(object, tag);
                return;
            }
        }
        made(object);
    }

    /** The tag of the request in which an object was made; null if it was made outside of requests. */
    public static Tag of(Object object) {
        return TAGS.get(object);
    }

    /** Gives a request a tag. */
    public static void put(Object object, Tag tag) {
        TAGS.put(object, tag);
    }

    /** The task that an executor shall run for one that is submitted now: it has the current tag. */
    public static Runnable submitted(ThreadPoolExecutor executor, Runnable task) {
        Tag tag = CURRENT.get();
        boolean hasOwnTag = task == null || task instanceof FutureTask || task instanceof ForkJoinTask
                || task instanceof CompletableFuture.AsynchronousCompletionTask || task instanceof TaggedTask
                || task instanceof ExchangedTask;
        if (tag == null || hasOwnTag || LOOKS_AT_TASKS.get(executor.getClass())
                || executor.getQueue() instanceof PriorityBlockingQueue) {
            return task;
        }
        return new ExchangedTask(new TaggedTask(task, tag));
    }

    /** The task that was submitted. One that the service tagged itself stays as it is. */
    public static Runnable original(Runnable task) {
        return task instanceof ExchangedTask exchanged ? exchanged.task() : task;
    }

    /** The same for all of a list. */
    public static void toOriginals(List<Runnable> tasks) {
        tasks.replaceAll(Propagation::original);
    }

    /** Removes a task that was exchanged when it was submitted. */
    public static boolean removed(ThreadPoolExecutor executor, Runnable task) {
        for (Runnable queued : executor.getQueue()) {
            if (queued instanceof ExchangedTask exchanged && exchanged.task().equals(task)) {
                return executor.getQueue().remove(queued);
            }
        }
        return false;
    }

    /** A task with the current tag, for a thread of any kind. */
    public static Runnable tagged(Runnable task) {
        Tag tag = CURRENT.get();
        return tag == null || task == null ? task : new TaggedTask(task, tag);
    }

    private static boolean overrides(Class<?> type, String name) {
        for (Class<?> at = type; at != null && at != ThreadPoolExecutor.class; at = at.getSuperclass()) {
            for (Method method : at.getDeclaredMethods()) {
                if (method.getName().equals(name)) {
                    return true;
                }
            }
        }
        return false;
    }
}
