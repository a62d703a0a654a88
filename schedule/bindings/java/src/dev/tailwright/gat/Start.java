package dev.tailwright.gat;

import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/** The start of the agent, in the bootstrap loader. */
public final class Start {
    private Start() {}

    /** Called by {@link Agent}. */
    public static void start(String options, Instrumentation instrumentation, JarFile jar) throws ReflectiveOperationException {
        try {
            Settings settings = new Settings(options, System::getenv);
            Propagation.configure(settings.role(), settings.hosts());
        } catch (IllegalArgumentException error) {
            System.err.println("tailwright-gat: " + error.getMessage());
            System.exit(2);
        }
        // Without sun.misc.Unsafe, of which newer versions of Java warn; the service's own copy of the library reads it, too.
        String former = System.setProperty("net.bytebuddy.safe", "true");
        try {
            Class.forName("dev.tailwright.gat.instrument.Installer", true, new IsolatedLoader(jar))
                    .getMethod("install", Instrumentation.class)
                    .invoke(null, instrumentation);
        } finally {
            if (former == null) {
                System.clearProperty("net.bytebuddy.safe");
            } else {
                System.setProperty("net.bytebuddy.safe", former);
            }
        }
    }
}
