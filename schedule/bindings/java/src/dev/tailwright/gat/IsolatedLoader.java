package dev.tailwright.gat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;

/** Loads what the agent alone uses, so that it does not meet other versions in the service: the folder "isolated" of its jar. */
final class IsolatedLoader extends ClassLoader {
    private final JarFile jar;

    IsolatedLoader(JarFile jar) {
        super(getPlatformClassLoader());
        this.jar = jar;
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        try {
            byte[] bytes = read("isolated/" + name.replace('.', '/') + ".class");
            if (bytes != null) {
                return defineClass(name, bytes, 0, bytes.length);
            }
        } catch (IOException error) {
            throw new ClassNotFoundException(name, error);
        }
        throw new ClassNotFoundException(name);
    }

    /** Class files as the agent reads them, also those of its other folders. */
    @Override
    public InputStream getResourceAsStream(String name) {
        try {
            byte[] bytes = read("isolated/" + name);
            bytes = bytes == null ? read(name) : bytes;
            return bytes == null ? super.getResourceAsStream(name) : new ByteArrayInputStream(bytes);
        } catch (IOException error) {
            return null;
        }
    }

    private byte[] read(String name) throws IOException {
        ZipEntry entry = jar.getEntry(name);
        if (entry == null) {
            return null;
        }
        try (InputStream stream = jar.getInputStream(entry)) {
            return stream.readAllBytes();
        }
    }
}
