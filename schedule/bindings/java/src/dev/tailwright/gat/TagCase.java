package dev.tailwright.gat;

/** What was done with the tag of one request. */
public enum TagCase {
    /** Taken as it was. */
    ACCEPTED,
    /** There was none: the request starts at its arrival. */
    UNTAGGED,
    /** It could not be read: the request starts at its arrival. */
    MALFORMED,
    /** It was too far in the future: the request starts at its arrival. */
    FUTURE,
    /** It was too old: the request has the greatest age. */
    TOO_OLD,
    /** The deadline was before the start, and is left out. */
    DEADLINE_BEFORE_START,
    /** The deadline was too long after the start, and is left out. */
    DEADLINE_TOO_FAR
}
