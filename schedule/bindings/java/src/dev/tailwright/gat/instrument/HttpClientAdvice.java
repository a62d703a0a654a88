package dev.tailwright.gat.instrument;

import dev.tailwright.gat.Propagation;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.util.List;
import java.util.Map;
import net.bytebuddy.asm.Advice;

/** java.net.http.HttpClient. Other threads than the caller's write the headers, for HTTP/1.1 and HTTP/2. */
final class HttpClientAdvice {
    private HttpClientAdvice() {}

    /** A call is made, or made again for a redirection or with credentials. */
    static final class Make {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object request, @Advice.AllArguments Object[] others) {
            Propagation.madeFrom(request, others);
        }
    }

    /** The headers of a call are asked for. */
    static final class Headers {
        @Advice.OnMethodExit
        static void exit(@Advice.This HttpRequest request, @Advice.Return(readOnly = false) HttpHeaders headers) {
            // What a proxy is asked to connect to is for the proxy.
            String host = request.method().equals("CONNECT") ? null : request.uri().getHost();
            Map<String, List<String>> before = headers.map();
            Map<String, List<String>> after = Propagation.outgoing(before, Propagation.of(request), host);
            if (after != before) {
                headers = HttpHeaders.of(after, Propagation.EVERY);
            }
        }
    }
}
