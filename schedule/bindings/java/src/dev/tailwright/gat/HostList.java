package dev.tailwright.gat;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Hosts that may see tags: names, addresses and *.SUFFIX, separated by commas; {@code *} is every host. */
final class HostList {
    private static final int IPV6_GROUPS = 8;

    private final List<String> patterns = new ArrayList<>();

    HostList(String text) {
        for (String piece : text.split(",")) {
            if (!piece.isBlank()) {
                patterns.add(pattern(piece.strip()));
            }
        }
    }

    /** Whether a host, without a port, may see tags. */
    boolean contains(String host) {
        String name = host == null ? "" : canonical(host);
        return !name.isEmpty() && patterns.stream().anyMatch(pattern -> matches(pattern, name));
    }

    private static boolean matches(String pattern, String name) {
        boolean isBelow = pattern.startsWith(".") && name.endsWith(pattern) && name.length() > pattern.length();
        return pattern.equals("*") || pattern.equals(name) || isBelow;
    }

    private static String pattern(String text) {
        if (text.equals("*")) {
            return text;
        }
        boolean isSuffix = text.startsWith("*.");
        String name = canonical(isSuffix ? text.substring(2) : text);
        if (!isHost(name)) {
            throw new IllegalArgumentException(
                    "'" + text + "' names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path");
        }
        return isSuffix ? "." + name : name;
    }

    private static boolean isHost(String name) {
        if (name.indexOf(':') >= 0) {
            return isIpv6(name);
        }
        return !name.isEmpty() && name.charAt(0) != '.' && name.chars().allMatch(Baggage::isUsual);
    }

    /** Groups of up to four hexadecimal digits, eight, or fewer around one pair of colons; the last two may be an IPv4 address. */
    private static boolean isIpv6(String name) {
        int gap = name.indexOf("::");
        if (gap < 0) {
            return groups(name, true) == IPV6_GROUPS;
        }
        String before = name.substring(0, gap);
        String after = name.substring(gap + 2);
        int first = before.isEmpty() ? 0 : groups(before, false);
        int last = after.isEmpty() ? 0 : groups(after, true);
        return first >= 0 && last >= 0 && first + last < IPV6_GROUPS;
    }

    /** How many groups of 16 bits the text is; below 0 if it is something else. */
    private static int groups(String text, boolean mayEndWithIpv4) {
        String[] pieces = text.split(":", -1);
        int count = 0;
        for (int at = 0; at < pieces.length; at++) {
            if (pieces[at].matches("[0-9a-f]{1,4}")) {
                count++;
            } else if (mayEndWithIpv4 && at == pieces.length - 1 && isIpv4(pieces[at])) {
                count += 2;
            } else {
                return Integer.MIN_VALUE;
            }
        }
        return count;
    }

    private static boolean isIpv4(String text) {
        return text.matches("((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\\.(?!$)|$)){4}");
    }

    /** Without brackets and the final dot, in lower case, and addresses of IPv6 in one spelling. */
    private static String canonical(String host) {
        boolean hasBrackets = host.startsWith("[") && host.endsWith("]") && host.length() > 1;
        String bare = hasBrackets ? host.substring(1, host.length() - 1) : host;
        String name = bare.endsWith(".") ? bare.substring(0, bare.length() - 1) : bare;
        String lower = name.toLowerCase(Locale.ROOT);
        return lower.indexOf(':') >= 0 && isIpv6(lower) ? oneSpelling(lower) : lower;
    }

    /** Java takes an IPv4 address in one of IPv6 for the former, which is another host in a list. */
    private static String oneSpelling(String ipv6) {
        try {
            InetAddress address = InetAddress.getByName(ipv6);
            String text = address.getHostAddress();
            return address instanceof Inet4Address ? "::ffff:" + text : text;
        } catch (UnknownHostException impossible) {
            return ipv6;
        }
    }
}
