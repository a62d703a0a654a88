package tests;

import static tests.Expect.expect;

import dev.tailwright.gat.Gat;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http2.Http2Protocol;

/** A servlet in Tomcat, for HTTP/1.1 and HTTP/2, under the agent of an edge with the SLO /soon=50ms. */
public final class TestTomcat {
    /** Tomcat serves all of them as the same path. */
    private static final List<String> SOON = List.of("/soon", "/%73oon", "/soon;x=1", "//soon", "/x/../soon", "/./soon", "/soon?x=1");

    private static final class Answers extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse reply) throws IOException {
            reply.setHeader("Baggage", "tailwright-start=5");
            reply.addHeader("baggage", "own=1,Tailwright-Start=5");
            if (request.getServletPath().equals("/trailers")) {
                reply.setHeader("Trailer", "Baggage");
                reply.setTrailerFields(() -> Map.of("Baggage", "tailwright-start=5,trailer=1"));
            }
            if (request.getServletPath().equals("/async")) {
                AsyncContext later = request.startAsync();
                later.start(() -> {
                    write(request, reply);
                    later.complete();
                });
            } else if (request.getServletPath().equals("/again") && request.getAttribute("again") == null) {
                request.setAttribute("again", true);
                AsyncContext again = request.startAsync();
                Thread thread = new Thread(again::dispatch);
                thread.start();
            } else {
                write(request, reply);
            }
        }

        private static void write(HttpServletRequest request, HttpServletResponse reply) {
            try {
                reply.getWriter().print(Gat.current().startNs() + " " + Collections.list(request.getHeaders("BAGGAGE")));
                reply.flushBuffer();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Expect.endWhenOneFails();
        java.util.logging.LogManager.getLogManager().reset();
        Tomcat tomcat = new Tomcat();
        Path folder = Files.createTempDirectory("tomcat");
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(0);
        tomcat.getConnector().addUpgradeProtocol(new Http2Protocol());
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "answers", new Answers()).setAsyncSupported(true);
        context.addServletMappingDecoded("/", "answers");
        tomcat.start();
        int port = tomcat.getConnector().getLocalPort();
        long last = 0;
        for (HttpClient.Version version : HttpClient.Version.values()) {
            HttpClient client = HttpClient.newBuilder().version(version).build();
            // The first call of HTTP/2 is one of HTTP/1.1 that asks for an upgrade.
            List<String> paths = new ArrayList<>(List.of("/", "/async", "/again", "/trailers", "/", "/soon/x", "/soo%256e"));
            paths.addAll(SOON);
            for (String path : paths) {
                last = check(client, "http://127.0.0.1:" + port, path, version, last);
            }
        }
        trailers(port);
        fullHeads(port);
        unreadable(port);
        tomcat.stop();
        tomcat.destroy();
        delete(folder);
        System.exit(0);
    }

    private static long check(HttpClient client, String server, String path, HttpClient.Version version, long last) throws Exception {
        String url = server + path;
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("baggage", "user=7,tailwright%2Dstart=5").build();
        HttpResponse<String> reply = client.send(request, BodyHandlers.ofString());
        expect(reply.version(), version, url);
        expect(reply.headers().allValues("baggage"), List.of("own=1"), url + " " + version);
        long start = Long.parseLong(reply.body().split(" ")[0]);
        expect(start > last, true, url + " starts increase, and no tag is left from the request before: " + reply.body());
        String deadline = SOON.contains(path) ? ",tailwright-deadline=" + (start + 50_000_000) : "";
        expect(reply.body(), start + " [tailwright-start=" + start + deadline + ",user=7]", url + " " + version);
        return start;
    }

    private static void trailers(int port) throws IOException {
        String reply = RawServer.exchange(port, "GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n");
        expect(RawServer.baggage(reply), List.of("own=1", "trailer=1"), reply);
    }

    /** As many fields as Tomcat takes, and on the same connection again; one more is too many as before. */
    private static void fullHeads(int port) throws IOException {
        String keepAlive = "GET / HTTP/1.1\r\nHost: a\r\n" + "X: 1\r\n".repeat(99) + "\r\n";
        String close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        String replies = RawServer.exchange(port, keepAlive + close + "X: 1\r\n".repeat(98) + "\r\n");
        expect(replies.split(" 200 ", -1).length - 1, 2, replies);
        String refused = RawServer.exchange(port, keepAlive + close + "X: 1\r\n".repeat(99) + "\r\n");
        expect(refused.split(" 200 ", -1).length - 1, 1, refused);
        expect(refused.contains("HTTP/1.1 400 "), true, refused);
    }

    /** Such a request has no path that could have an SLO. */
    private static void unreadable(int port) throws IOException {
        String reply = RawServer.exchange(port, "GET /a{b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        expect(reply.startsWith("HTTP/1.1 400 "), true, reply);
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> found = Files.walk(folder)) {
            for (Path each : found.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }
}
