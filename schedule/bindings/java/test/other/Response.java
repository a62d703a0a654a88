package org.apache.coyote;

/** A class of Tomcat without the methods that the agent knows. */
public final class Response {
    public static void main(String[] arguments) {
        System.out.println("it runs");
    }
}
