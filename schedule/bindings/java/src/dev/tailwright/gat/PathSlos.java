package dev.tailwright.gat;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * SLOs of requests by their paths: {@code /search=50ms,/api/*=5s}. The first that matches counts.
 *
 * <p>Paths are decoded, as servers route by them. One that another layer of the service may read as another path has the
 * longest SLO, so that no spelling buys a shorter one.
 */
final class PathSlos {
    /** A day: what is longer is a mistake of a unit. */
    static final long SLO_NS_MAX = 86_400L * 1_000_000_000L;
    private static final Pattern ENTRY = Pattern.compile("(/[^*=]*\\*?)=([0-9]{1,18})(ns|us|ms|s)");
    private static final Map<String, Long> UNITS_NS = Map.of("ns", 1L, "us", 1_000L, "ms", 1_000_000L, "s", 1_000_000_000L);

    /** No slash at the begin, an empty segment that is not the last, dots alone, and what may be decoded or cut off once more. */
    private static final Pattern AMBIGUOUS = Pattern.compile("\\A(?!/)|//|/\\.\\.?(?:/|\\z)|[;%\\\\\\p{Cntrl}\uFFFD]");

    private final Map<String, Long> slosNs = new LinkedHashMap<>();

    PathSlos(String text) {
        for (String piece : text.split(",")) {
            if (!piece.isBlank()) {
                add(piece.strip());
            }
        }
    }

    private void add(String entry) {
        Matcher matcher = ENTRY.matcher(entry);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("'" + entry + "' is no SLO: expected PATH=TIME, for example /search=50ms or /api/*=5s");
        }
        long unitNs = UNITS_NS.get(matcher.group(3));
        long number = Long.parseLong(matcher.group(2));
        if (number == 0 || number > SLO_NS_MAX / unitNs) {
            throw new IllegalArgumentException("'" + entry + "': expected an SLO of more than zero and at most a day");
        }
        if (AMBIGUOUS.matcher(matcher.group(1)).find()) {
            throw new IllegalArgumentException("'" + entry + "': expected a decoded path without //, /./, /../, ; % and \\");
        }
        if (slosNs.put(matcher.group(1), number * unitNs) != null) {
            throw new IllegalArgumentException("'" + entry + "': the path has two SLOs");
        }
    }

    /** Nanoseconds for a decoded path, null if there is none; 0 without an SLO. */
    long ofPath(String path) {
        if (path == null || AMBIGUOUS.matcher(path).find()) {
            return longestNs();
        }
        for (Map.Entry<String, Long> entry : slosNs.entrySet()) {
            String pattern = entry.getKey();
            boolean isPrefix = pattern.endsWith("*");
            if (isPrefix ? path.startsWith(pattern.substring(0, pattern.length() - 1)) : path.equals(pattern)) {
                return entry.getValue();
            }
        }
        return 0;
    }

    /** None is the longest: some paths have none if nothing matches all. */
    private long longestNs() {
        return slosNs.containsKey("/*") ? Collections.max(slosNs.values()) : 0;
    }
}
