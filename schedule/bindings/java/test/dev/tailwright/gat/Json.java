package dev.tailwright.gat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON of the shared cases: objects are maps, arrays are lists. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.next() != 0) {
            throw new IllegalArgumentException("more behind the value, at " + json.at);
        }
        return value;
    }

    /** The next character that is no white space; 0 at the end. */
    private char next() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean took(char expected) {
        boolean isThere = next() == expected;
        at += isThere ? 1 : 0;
        return isThere;
    }

    private void take(char expected) {
        if (!took(expected)) {
            throw new IllegalArgumentException("expected '" + expected + "' at " + at);
        }
    }

    private Object value() {
        return switch (next()) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            default -> word();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        take('{');
        while (!took('}')) {
            next();
            String name = string();
            take(':');
            members.put(name, value());
            took(',');
        }
        return members;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        take('[');
        while (!took(']')) {
            items.add(value());
            took(',');
        }
        return items;
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        take('"');
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            found.append(c == '\\' ? escaped() : c);
        }
        return found.toString();
    }

    private char escaped() {
        char c = text.charAt(at++);
        if (c == 'u') {
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }
        return switch (c) {
            case 't' -> '\t';
            case 'n' -> '\n';
            default -> c;
        };
    }

    private Object word() {
        for (Object value : new Object[] {true, false}) {
            if (text.startsWith(value.toString(), at)) {
                at += value.toString().length();
                return value;
            }
        }
        if (!text.startsWith("null", at)) {
            throw new IllegalArgumentException("expected a value at " + at);
        }
        at += 4;
        return null;
    }
}
