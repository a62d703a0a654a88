import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.tailwright.gat.Gat;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A service that calls others and tells what it knows: ExampleService [URL...], the first by HttpURLConnection, the others by
 * HttpClient, on other threads. Prints its port. Only Gat is of the agent; tags pass without it.
 */
public final class ExampleService {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final ExecutorService OTHERS = Executors.newFixedThreadPool(2);

    public static void main(String[] urls) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> answer(exchange, urls));
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    private static void answer(HttpExchange exchange, String[] urls) throws IOException {
        String start = Long.toUnsignedString(Gat.current().startNs());
        String baggage = String.join(",", exchange.getRequestHeaders().get("Baggage"));
        List<CompletableFuture<String>> called = new ArrayList<>();
        for (String url : urls) {
            called.add(called.isEmpty() ? CompletableFuture.supplyAsync(() -> callByConnection(url), OTHERS) : callByClient(url));
        }
        String answers = String.join(",", called.stream().map(CompletableFuture::join).toList());
        String text = "{\"start\":\"" + start + "\",\"baggage\":\"" + baggage + "\",\"called\":[" + answers + "]}";
        exchange.getResponseHeaders().add("baggage", "tailwright-start=1,reply=1");
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private static String callByConnection(String url) {
        try {
            HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
            connection.setRequestProperty("Baggage", "own=1");
            try (InputStream stream = connection.getInputStream()) {
                return new String(stream.readAllBytes());
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static CompletableFuture<String> callByClient(String url) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("Baggage", "own=1").build();
        return CLIENT.sendAsync(request, BodyHandlers.ofString()).thenApply(reply -> reply.body());
    }
}
