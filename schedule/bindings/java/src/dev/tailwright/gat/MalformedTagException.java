package dev.tailwright.gat;

/** Something with our name is no tag. */
final class MalformedTagException extends Exception {
    private static final long serialVersionUID = 1;

    MalformedTagException(String message) {
        // Hostile headers shall not cost a walk of the stack.
        super(message, null, false, false);
    }
}
