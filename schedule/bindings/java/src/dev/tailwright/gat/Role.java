package dev.tailwright.gat;

import java.util.List;

/** Decides on the tag of a request that comes in. */
interface Role {
    /** The tag of a request with these values of baggage headers, for a decoded path, as the server routes by it; null without one. */
    Tag receive(List<String> values, String path);
}
