package dev.tailwright.gat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;

/** The cases that every language has to get right, the decoding of keys against a loop over layers, and its cost. */
public final class TestCases {
    private static final long NOW_NS = 1_700_000_000_000_000_000L;
    private static final String[] PIECES = {"%", "%", "25", "%25", "%2", "5", "3", "7", "f", "A", "x", "%74", "%3", "%zz", "\u00e9"};

    public static void main(String[] arguments) throws IOException {
        cases("../cases.json", 30).forEach(TestCases::header);
        cases("../received.json", 10).forEach(TestCases::received);
        cases("../hosts.json", 30).forEach(TestCases::host);
        cases("../paths.json", 30).forEach(TestCases::path);
        slos();
        settings();
        decoding();
        costs();
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> cases(String file, int least) throws IOException {
        List<Map<String, Object>> found = (List<Map<String, Object>>) Json.parse(Files.readString(Path.of(file)));
        expect(found.size() > least, true, file);
        return found;
    }

    static void expect(Object found, Object expected, Object what) {
        if (found == null ? expected != null : !found.equals(expected)) {
            throw new AssertionError(what + ": found " + found + ", expected " + expected);
        }
    }

    private static void expectRefused(Runnable refused, Object what) {
        try {
            refused.run();
        } catch (IllegalArgumentException error) {
            return;
        }
        throw new AssertionError(what + " is accepted");
    }

    private static List<String> pair(Tag tag) {
        return Arrays.asList(Long.toUnsignedString(tag.startNs()), tag.hasDeadline() ? Long.toUnsignedString(tag.deadlineNs()) : null);
    }

    @SuppressWarnings("unchecked")
    private static void header(Map<String, Object> one) {
        List<String> values = (List<String>) one.get("values");
        Object read;
        try {
            Tag tag = Baggage.read(values);
            read = tag == null ? null : pair(tag);
        } catch (MalformedTagException error) {
            read = "malformed";
        }
        List<String> stripped = Baggage.strip(values);
        String change = stripped == values ? "keep" : stripped.isEmpty() ? "remove" : stripped.get(0);
        expect(read, one.get("read"), one);
        expect(change, one.get("strip"), one);
        expect(Baggage.write(values, Tag.startingAt(NOW_NS)), one.get("written"), one);
    }

    @SuppressWarnings("unchecked")
    private static void received(Map<String, Object> one) {
        InnerTier tier = new InnerTier(() -> NOW_NS);
        expect(pair(tier.receive((List<String>) one.get("values"), "/")), one.get("tag"), one);
        TagCase situation = TagCase.valueOf(((String) one.get("case")).toUpperCase(Locale.ROOT));
        expect(tier.counts().get(situation), 1L, one);
    }

    private static void host(Map<String, Object> one) {
        String patterns = (String) one.get("patterns");
        if (one.containsKey("error")) {
            expectRefused(() -> new HostList(patterns), one);
        } else {
            expect(new HostList(patterns).contains((String) one.get("host")), one.get("contains"), one);
        }
    }

    private static void path(Map<String, Object> one) {
        String sloNs = (String) one.get("slo_ns");
        long expected = sloNs == null ? 0 : Long.parseLong(sloNs);
        expect(new PathSlos((String) one.get("slos")).ofPath((String) one.get("path")), expected, one);
    }

    private static void slos() {
        PathSlos slos = new PathSlos("/soon=50ms, /api/*=5s,/api/x=1us,/day=86400s,/*=7ns");
        Map<String, Long> expected = Map.of("/soon", 50_000_000L, "/api/x", 5_000_000_000L, "/day", PathSlos.SLO_NS_MAX, "/soon/", 7L);
        expected.forEach((path, sloNs) -> expect(slos.ofPath(path), sloNs, path));
        expect(new PathSlos("/a=7s,/*=1s").ofPath(null), 7_000_000_000L, "no path");
        for (String wrong : List.of("/a=0s", "/a=86401s", "/a=9999999999999999s", "/a=5", "a=5s", "/a*b=5s", "/a=-5s", "/a=5s,/a=6s", "=5s", "/a", "//a=5s", "/%61=5s", "/a;b=5s", "/a/../*=5s")) {
            expectRefused(() -> new PathSlos(wrong), wrong);
        }
        Edge edge = new Edge(slos, () -> NOW_NS);
        expect(edge.receive(List.of("tailwright-start=1"), "/soon"), new Tag(NOW_NS, NOW_NS + 50_000_000), "a request that enters");
        expect(edge.receive(List.of(), "/day").startNs(), NOW_NS + 1, "starts increase strictly");
    }

    private static void settings() {
        Map<String, String> environment = Map.of("TAILWRIGHT_ROLE", "edge", "TAILWRIGHT_HOSTS", "a", "TAILWRIGHT_SLOS", "/=1s");
        expect(new Settings(null, environment::get).role() instanceof Edge, true, "the environment says the role");
        expect(new Settings("hosts=b,c", environment::get).hosts().contains("a"), false, "options count more");
        expect(new Settings("hosts=b,c; role=inner", Map.<String, String>of()::get).hosts().contains("c"), true, "options");
        for (String wrong : List.of("role=Edge", "role=", "slos=/=1s", "host=a", "edge", "role=edge;slos=x", "role=edge,hosts=a")) {
            expectRefused(() -> new Settings(wrong, Map.<String, String>of()::get).role(), wrong);
        }
        expectRefused(() -> new Settings("hosts=http://a", environment::get).hosts(), "a URL");
    }

    private static String decodedSlowly(String text) {
        for (String before = null; !text.equals(before); ) {
            before = text;
            text = java.util.regex.Pattern.compile("%([0-9A-Fa-f]{2})").matcher(before)
                    .replaceAll(found -> java.util.regex.Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(found.group(1), 16))));
        }
        return text;
    }

    private static void decoding() {
        Random random = new Random(1);
        for (int round = 0; round < 20_000; round++) {
            StringBuilder text = new StringBuilder();
            for (int left = random.nextInt(20); left > 0; left--) {
                text.append(PIECES[random.nextInt(PIECES.length)]);
            }
            expect(Baggage.decoded(text.toString()), decodedSlowly(text.toString()), text);
        }
    }

    private static double fastestNs(String value) {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 200; round++) {
            long before = System.nanoTime();
            Baggage.strip(List.of(value));
            least = Math.min(least, System.nanoTime() - before);
        }
        return least;
    }

    /** Ten times the length takes ten times as long for linear work, a hundred times as long for quadratic. */
    private static void costs() {
        Map<String, IntFunction<String>> hostile = Map.of(
                "layers", length -> "%" + "25".repeat(length / 2) + "74ailwright-start=1",
                "blanks", length -> "a" + " ".repeat(length) + "b=1",
                "members", length -> "a%41=1,".repeat(length / 7));
        expect(Baggage.strip(List.of(hostile.get("layers").apply(1000))), List.of(), "a key in layers");
        hostile.forEach((name, make) -> {
            // Both take less time than the machine lets a program run before it lets another one.
            fastestNs(make.apply(20_000));
            double growth = fastestNs(make.apply(20_000)) / fastestNs(make.apply(2_000));
            expect(growth < 40, true, name + " cost " + growth + " times as much");
        });
    }
}
