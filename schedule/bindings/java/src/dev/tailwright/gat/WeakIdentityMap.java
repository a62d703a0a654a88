package dev.tailwright.gat;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Values of objects as long as these exist, by identity. */
final class WeakIdentityMap<V> {
    private final ConcurrentMap<Object, V> entries = new ConcurrentHashMap<>();
    private final ReferenceQueue<Object> dead = new ReferenceQueue<>();

    private static final class Key extends WeakReference<Object> {
        private final int hash;

        Key(Object object, ReferenceQueue<Object> dead) {
            super(object, dead);
            hash = System.identityHashCode(object);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return this == other || other instanceof Key key && get() != null && get() == key.get();
        }
    }

    private record Lookup(Object object) {
        @Override
        public int hashCode() {
            return System.identityHashCode(object);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && key.get() == object;
        }
    }

    void put(Object object, V value) {
        for (Reference<?> gone = dead.poll(); gone != null; gone = dead.poll()) {
            entries.remove(gone);
        }
        entries.put(new Key(object, dead), value);
    }

    V get(Object object) {
        return entries.isEmpty() ? null : entries.get(new Lookup(object));
    }
}
