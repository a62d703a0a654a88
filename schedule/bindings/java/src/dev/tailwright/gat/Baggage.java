package dev.tailwright.gat;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Tags in values of {@code baggage} headers, which are text whose characters stand for bytes (Latin-1). */
final class Baggage {
    static final String START_KEY = "tailwright-start";
    static final String DEADLINE_KEY = "tailwright-deadline";
    private static final int BYTES_MAX = 8192;
    private static final int MEMBERS_MAX = 180;
    private static final int DIGITS_MAX = 20;

    private Baggage() {}

    /** The members in order, without the white space around them; empty ones are left out. */
    private static List<String> members(List<String> values) {
        List<String> found = new ArrayList<>();
        for (String value : values) {
            for (int from = 0; from <= value.length(); ) {
                int comma = value.indexOf(',', from);
                int to = comma < 0 ? value.length() : comma;
                String member = trim(value.substring(from, to));
                if (!member.isEmpty()) {
                    found.add(member);
                }
                from = to + 1;
            }
        }
        return found;
    }

    /** Without spaces and tabs at both ends. */
    private static String trim(String text) {
        int from = 0;
        int to = text.length();
        while (from < to && isBlank(text.charAt(from))) {
            from++;
        }
        while (from < to && isBlank(text.charAt(to - 1))) {
            to--;
        }
        return text.substring(from, to);
    }

    private static boolean isBlank(char c) {
        return c == ' ' || c == '\t';
    }

    /** The tag in the values of all headers of a request; null without one. */
    static Tag read(List<String> values) throws MalformedTagException {
        Long start = null;
        Long deadline = null;
        for (String member : members(values)) {
            int equals = member.indexOf('=');
            String key = equals < 0 ? "" : trim(member.substring(0, equals));
            if (key.equals(START_KEY)) {
                start = once(start, number(valueOf(member, equals)));
            } else if (key.equals(DEADLINE_KEY)) {
                deadline = once(deadline, number(valueOf(member, equals)));
            }
        }
        if (deadline != null && (start == null || deadline == 0)) {
            throw new MalformedTagException("a deadline without a start, or of zero");
        }
        return start == null ? null : new Tag(start, deadline == null ? 0 : deadline);
    }

    private static String valueOf(String member, int equals) {
        int end = member.indexOf(';', equals);
        return trim(member.substring(equals + 1, end < 0 ? member.length() : end));
    }

    private static long number(String digits) throws MalformedTagException {
        boolean isNumber = !digits.isEmpty() && digits.length() <= DIGITS_MAX && digits.chars().allMatch(c -> '0' <= c && c <= '9');
        try {
            if (isNumber) {
                return Long.parseUnsignedLong(digits);
            }
        } catch (NumberFormatException tooLarge) {
            // The same as what is no number.
        }
        throw new MalformedTagException("no number of nanoseconds");
    }

    private static long once(Long former, long value) throws MalformedTagException {
        if (former != null && former != value) {
            throw new MalformedTagException("two members of one name differ");
        }
        return value;
    }

    /** The one value that takes the place of all: the tag, then all that is not ours, within 8192 bytes and 180 members. */
    static String write(List<String> values, Tag tag) {
        StringBuilder text = new StringBuilder(START_KEY).append('=').append(Long.toUnsignedString(tag.startNs()));
        int count = 1;
        if (tag.hasDeadline()) {
            text.append(',').append(DEADLINE_KEY).append('=').append(Long.toUnsignedString(tag.deadlineNs()));
            count++;
        }
        for (String member : others(values)) {
            if (count == MEMBERS_MAX || text.length() + 1 + member.length() > BYTES_MAX) {
                break;
            }
            text.append(',').append(member);
            count++;
        }
        return text.toString();
    }

    /** The values without anything of ours, and without what some library might take for it; themselves if there is nothing. */
    static List<String> strip(List<String> values) {
        List<String> rest = others(values);
        if (rest.size() == members(values).size()) {
            return values;
        }
        return rest.isEmpty() ? List.of() : List.of(String.join(",", rest));
    }

    private static List<String> others(List<String> values) {
        List<String> found = members(values);
        found.removeIf(Baggage::isOurs);
        return found;
    }

    private static boolean isOurs(String member) {
        int end = 0;
        while (end < member.length() && member.charAt(end) != '=' && member.charAt(end) != ';') {
            end++;
        }
        String key = folded(trim(member.substring(0, end)));
        return key.equals(START_KEY) || key.equals(DEADLINE_KEY);
    }

    /** Lower case; percent-encoding is undone, in as many layers as there are, and what libraries trim is left out. */
    private static String folded(String key) {
        if (key.chars().allMatch(Baggage::isUsual)) {
            return key.toLowerCase(Locale.ROOT);
        }
        String text = decoded(key);
        StringBuilder kept = new StringBuilder(text.length());
        text.chars().filter(c -> '!' <= c && c <= '~' && c != '+').forEach(c -> kept.append((char) c));
        return kept.toString().toLowerCase(Locale.ROOT);
    }

    static boolean isUsual(int c) {
        return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.';
    }

    /**
     * The text after percent-decoding until nothing is left to decode, in one pass: what a decoded byte completes is decoded
     * at once. No two escapes can overlap, so that the order makes no difference.
     */
    static String decoded(String text) {
        StringBuilder stack = new StringBuilder(text.length());
        for (int at = 0; at < text.length(); at++) {
            stack.append(text.charAt(at));
            for (int c = escaped(stack); c >= 0; c = escaped(stack)) {
                stack.setLength(stack.length() - 3);
                stack.append((char) c);
            }
        }
        return stack.toString();
    }

    /** The byte that the last three characters stand for; below 0 if they are no escape. */
    private static int escaped(StringBuilder stack) {
        int at = stack.length() - 3;
        if (at < 0 || stack.charAt(at) != '%') {
            return -1;
        }
        int high = hex(stack.charAt(at + 1));
        int low = hex(stack.charAt(at + 2));
        return high < 0 || low < 0 ? -1 : high * 16 + low;
    }

    /** Character.digit would accept digits of other scripts. */
    private static int hex(char c) {
        return c < 128 ? Character.digit(c, 16) : -1;
    }
}
