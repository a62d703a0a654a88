package dev.tailwright.gat;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * Carries the start of a request from the edge to every service on its way, in the W3C {@code baggage} header.
 *
 * <pre>TAILWRIGHT_HOSTS='store,*.svc.cluster.local' java -javaagent:tailwright-gat.jar -jar service.jar</pre>
 *
 * <p>Instrumented classes of the JDK see only what the bootstrap loader has: the classes of this package are loaded there. This
 * one is loaded before that, and names none of them.
 */
public final class Agent {
    private Agent() {}

    /** Called by Java before the main method. A wrong option ends the program; so does an exception. */
    public static void premain(String options, Instrumentation instrumentation) throws Exception {
        JarFile jar = new JarFile(new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI()));
        instrumentation.appendToBootstrapClassLoaderSearch(jar);
        Class.forName("dev.tailwright.gat.Start", true, null)
                .getMethod("start", String.class, Instrumentation.class, JarFile.class)
                .invoke(null, options, instrumentation, jar);
    }
}
