package tests;

import static tests.Expect.expect;
import static tests.Expect.inRequest;

import com.sun.net.httpserver.HttpServer;
import dev.tailwright.gat.Gat;
import dev.tailwright.gat.TagCase;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.concurrent.Executors;

/** Requests, replies and calls of the JDK, under the agent of a service inside whose hosts are 127.0.0.1. */
public final class TestCalls {
    private static final long A = 1_000;
    private static final HttpClient CLIENT = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.ALWAYS).build();

    private interface Call {
        void to(String url, String... headers) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Expect.endWhenOneFails();
        for (Call call : List.<Call>of(TestCalls::byConnection, TestCalls::byClient, TestCalls::byClientLater)) {
            headers(call);
            redirections(call);
        }
        proxies();
        requestsAndReplies();
        System.exit(0);
    }

    private static void byConnection(String url, String... headers) throws IOException {
        read((HttpURLConnection) URI.create(url).toURL().openConnection(), headers);
    }

    private static void read(HttpURLConnection connection, String... headers) throws IOException {
        for (int at = 0; at < headers.length; at += 2) {
            connection.addRequestProperty(headers[at], headers[at + 1]);
        }
        try (InputStream stream = connection.getInputStream()) {
            stream.readAllBytes();
        }
    }

    private static HttpRequest request(String url, String... headers) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(url));
        return headers.length == 0 ? builder.build() : builder.headers(headers).build();
    }

    private static void byClient(String url, String... headers) throws Exception {
        CLIENT.send(request(url, headers), BodyHandlers.discarding());
    }

    private static void byClientLater(String url, String... headers) throws Exception {
        CLIENT.sendAsync(request(url, headers), BodyHandlers.discarding()).get();
    }

    private static void headers(Call call) throws Exception {
        RawServer server = RawServer.answering();
        String[] forged = {"baggage", "tailwright-start=5,own=1", "baggage", "%74ailwright-start=6,other=2"};
        inRequest(A, () -> {
            call.to(server.inside());
            call.to(server.inside(), forged);
            call.to(server.stranger());
            call.to(server.stranger(), forged);
            call.to(server.stranger(), "BAGGAGE", "Tailwright-Start=5");
            call.to(server.stranger(), "Baggage", "own=1", "X-Other", "tailwright-start=5");
            return null;
        });
        expect(server.baggage(), List.of("tailwright-start=1000"), "a call");
        expect(server.baggage(), List.of("tailwright-start=1000,own=1,other=2"), "a call with members of its own");
        expect(server.baggage(), List.of(), "a call to a stranger");
        expect(server.baggage(), List.of("own=1,other=2"), "a call to a stranger with tags of its own");
        expect(server.baggage(), List.of(), "with nothing else");
        String head = server.head();
        expect(RawServer.baggage(head), List.of("own=1"), "members of others");
        expect(head.contains("X-Other: tailwright-start=5"), true, "other headers stay");
        call.to(server.inside(), "baggage", "own=1", "baggage", "other=2");
        expect(server.baggage(), List.of("own=1", "other=2"), "a call outside of requests");
    }

    /** Each host is judged by itself. */
    private static void redirections(Call call) throws Exception {
        RawServer last = RawServer.answering();
        RawServer toStranger = RawServer.redirecting(last.stranger());
        RawServer toInside = RawServer.redirecting(last.inside());
        inRequest(A, () -> {
            call.to(toStranger.inside(), "Baggage", "own=1");
            call.to(toInside.stranger(), "Baggage", "own=1");
            return null;
        });
        expect(toStranger.baggage(), List.of("tailwright-start=1000,own=1"), "before a redirection");
        expect(last.baggage(), List.of("own=1"), "redirected to a stranger");
        expect(toInside.baggage(), List.of("own=1"), "before a redirection by a stranger");
        expect(last.baggage(), List.of("tailwright-start=1000,own=1"), "redirected into the system");
    }

    /** The host of the URL counts; what asks a proxy for a tunnel is for the proxy. */
    private static void proxies() throws Exception {
        RawServer proxy = RawServer.answering();
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", proxy.port());
        HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.of(address)).build();
        String[] own = {"Baggage", "own=1"};
        inRequest(A, () -> {
            Proxy ofConnection = new Proxy(Proxy.Type.HTTP, address);
            read((HttpURLConnection) URI.create("http://stranger.example/").toURL().openConnection(ofConnection), own);
            client.send(request("http://stranger.example/", own), BodyHandlers.discarding());
            for (Call tunnel : List.<Call>of(
                    (url, headers) -> read((HttpURLConnection) URI.create(url).toURL().openConnection(ofConnection), headers),
                    (url, headers) -> client.send(request(url, headers), BodyHandlers.discarding()))) {
                try {
                    tunnel.to("https://127.0.0.1:1/", own);
                } catch (IOException expected) {
                    continue;
                }
                throw new AssertionError("there is no TLS behind the proxy");
            }
            return null;
        });
        expect(proxy.baggage(), List.of("own=1"), "a stranger behind a proxy");
        expect(proxy.baggage(), List.of("own=1"), "a stranger behind a proxy");
        for (int tunnel = 0; tunnel < 2; tunnel++) {
            String head = proxy.head();
            expect(head.startsWith("CONNECT 127.0.0.1:1 ") && !head.contains("tailwright"), true, head);
        }
    }

    private static void requestsAndReplies() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newSingleThreadExecutor());
        server.createContext("/", exchange -> {
            List<String> seen = exchange.getRequestHeaders().get("baggage");
            exchange.getResponseHeaders().add("Baggage", "tailwright-start=5");
            if (exchange.getRequestURI().getPath().equals("/own")) {
                exchange.getResponseHeaders().add("BAGGAGE", "own=1");
            }
            byte[] text = (Gat.current() + " " + seen).getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
            if (exchange.getRequestURI().getPath().equals("/fails")) {
                throw new IllegalStateException("a handler that fails");
            }
        });
        server.start();
        int port = server.getAddress().getPort();
        long now = System.currentTimeMillis() * 1_000_000;
        String close = " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        String reply = RawServer.exchange(port, "GET /fails" + close + "baggage: a=1\r\nBaggage: tailwright-start=" + now + "\r\n\r\n");
        expect(reply.endsWith("Tag[startNs=" + now + ", deadlineNs=0] [tailwright-start=" + now + ",a=1]"), true, reply);
        expect(RawServer.baggage(reply), List.of(), reply);
        reply = RawServer.exchange(port, "GET /own" + close + "baggage: \u00ff=\u00fe,tailwright-start=" + now + "\r\n\r\n");
        expect(RawServer.baggage(reply), List.of("own=1"), reply);
        expect(reply.contains("[tailwright-start=" + now + ","), true, reply);
        reply = RawServer.exchange(port, "GET /" + close + "baggage: tailwright-start=" + now + "0\r\n\r\n");
        expect(reply.contains("startNs=" + now + "0,"), false, "a start in the far future: " + reply);
        expect(RawServer.exchange(port, "GET /" + close + "\r\n").contains(" [tailwright-start="), true, "a request without a tag");
        expect(List.of(Gat.counts().get(TagCase.ACCEPTED), Gat.counts().get(TagCase.FUTURE), Gat.counts().get(TagCase.UNTAGGED)),
                List.of(2L, 1L, 1L), "counts");
    }
}
