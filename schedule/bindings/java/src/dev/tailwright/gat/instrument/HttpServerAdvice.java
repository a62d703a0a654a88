package dev.tailwright.gat.instrument;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import dev.tailwright.gat.Propagation;
import dev.tailwright.gat.Tag;
import java.net.URI;
import java.util.List;
import net.bytebuddy.asm.Advice;

/** Servers of com.sun.net.httpserver. */
final class HttpServerAdvice {
    private HttpServerAdvice() {}

    /** After the constructor of an exchange: its request has the tag that is accepted. */
    static final class Admit {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(1) URI uri, @Advice.FieldValue(value = "reqHdrs", readOnly = false) Headers headers) {
            List<String> before = headers.getOrDefault("Baggage", List.of());
            Tag tag = Propagation.receive(before, uri.getPath());
            Headers changed = new Headers();
            changed.putAll(headers);
            changed.set("Baggage", Propagation.seen(before, tag));
            headers = changed;
            Propagation.put(changed, tag);
        }
    }

    /** While filters and the handler work. */
    static final class Handle {
        @Advice.OnMethodEnter
        static Tag enter(@Advice.Argument(0) HttpExchange exchange) {
            Tag tag = Propagation.of(exchange.getRequestHeaders());
            // A filter may hand on an exchange of its own with other headers.
            return Propagation.exchange(tag == null ? Propagation.current() : tag);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Enter Tag former) {
            Propagation.restore(former);
        }
    }

    /** Before the header of a reply is written. */
    static final class Reply {
        @Advice.OnMethodEnter
        static void enter(@Advice.FieldValue("rspHdrs") Headers headers) {
            List<String> before = headers.get("Baggage");
            if (before != null) {
                headers.remove("Baggage");
                for (String value : Propagation.strip(before)) {
                    headers.add("Baggage", value);
                }
            }
        }
    }
}
