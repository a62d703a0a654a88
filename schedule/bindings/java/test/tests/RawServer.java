package tests;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Answers every request with the same bytes, and hands out the heads that came; none of it is instrumented. */
final class RawServer {
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
    private final BlockingQueue<String> heads = new LinkedBlockingQueue<>();
    private final String answer;

    RawServer(String answer) throws IOException {
        this.answer = answer;
        Thread thread = new Thread(this::serve);
        thread.setDaemon(true);
        thread.start();
    }

    static RawServer answering() throws IOException {
        return new RawServer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    }

    static RawServer redirecting(String url) throws IOException {
        return new RawServer("HTTP/1.1 302 Found\r\nLocation: " + url + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }

    int port() {
        return listener.getLocalPort();
    }

    /** By its address, which the tests list as a host of the system. */
    String inside() {
        return "http://127.0.0.1:" + port() + "/";
    }

    /** By its name, which they do not. */
    String stranger() {
        return "http://localhost:" + port() + "/";
    }

    /** The next head that came. */
    String head() throws InterruptedException {
        return heads.take();
    }

    /** The values of baggage headers of the next head. */
    List<String> baggage() throws InterruptedException {
        return baggage(head());
    }

    static List<String> baggage(String head) {
        return head.lines().filter(line -> line.toLowerCase().startsWith("baggage:")).map(line -> line.substring(8).strip()).toList();
    }

    /** What a server answers to these bytes. */
    static String exchange(int port, String request) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
        }
    }

    private void serve() {
        while (true) {
            try (Socket socket = listener.accept()) {
                heads.add(readHead(socket.getInputStream()));
                socket.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
            } catch (IOException error) {
                heads.add("the server failed: " + error);
            }
        }
    }

    private static String readHead(InputStream stream) throws IOException {
        StringBuilder head = new StringBuilder();
        for (int c = stream.read(); c >= 0; c = stream.read()) {
            head.append((char) c);
            if (head.toString().endsWith("\r\n\r\n")) {
                break;
            }
        }
        return head.toString();
    }
}
