package dev.tailwright.gat;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/** The options of the agent, {@code role=edge;hosts=store,*.svc;slos=/search=50ms}, or else TAILWRIGHT_ROLE and so on. */
final class Settings {
    private static final Set<String> NAMES = Set.of("role", "hosts", "slos");

    private final Map<String, String> options = new HashMap<>();
    private final UnaryOperator<String> environment;

    Settings(String text, UnaryOperator<String> environment) {
        this.environment = environment;
        for (String piece : text == null ? new String[0] : text.split(";")) {
            int equals = piece.indexOf('=');
            String name = equals < 0 ? piece : piece.substring(0, equals);
            if (!piece.isBlank() && (equals < 0 || !NAMES.contains(name.strip()))) {
                throw new IllegalArgumentException(
                        "'" + piece + "' is no option of the agent: expected role=, hosts= or slos=, separated by semicolons");
            }
            options.put(name.strip(), piece.substring(equals + 1).strip());
        }
    }

    private String get(String name, String otherwise) {
        String set = options.getOrDefault(name, environment.apply("TAILWRIGHT_" + name.toUpperCase(Locale.ROOT)));
        return set == null ? otherwise : set;
    }

    Role role() {
        String name = get("role", "inner");
        String slos = get("slos", null);
        if (name.equals("edge")) {
            return new Edge(new PathSlos(slos == null ? "" : slos), RealClock::nowNs);
        }
        if (!name.equals("inner")) {
            throw new IllegalArgumentException("the role is '" + name + "': expected edge or inner");
        }
        if (slos != null) {
            throw new IllegalArgumentException("SLOs need the role edge");
        }
        return new InnerTier(RealClock::nowNs);
    }

    HostList hosts() {
        return new HostList(get("hosts", ""));
    }
}
