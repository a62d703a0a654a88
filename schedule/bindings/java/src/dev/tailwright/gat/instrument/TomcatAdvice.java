package dev.tailwright.gat.instrument;

import dev.tailwright.gat.Propagation;
import dev.tailwright.gat.Tag;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import net.bytebuddy.asm.Advice;
import org.apache.coyote.Request;
import org.apache.coyote.Response;
import org.apache.tomcat.util.http.MimeHeaders;

/** Tomcat, below servlets. Its requests are used again for others; attributes are not. */
final class TomcatAdvice {
    private TomcatAdvice() {}

    /** A request comes in: what is set in the course of it ends with it. */
    static final class Service {
        @Advice.OnMethodEnter
        static Tag enter() {
            return Propagation.current();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Enter Tag former) {
            Propagation.restore(former);
        }
    }

    /** Its path is decoded, normalised and mapped, before any code of the service sees it; a request that is refused is not seen. */
    static final class Parse {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Request request, @Advice.Return boolean isAccepted) {
            if (!isAccepted) {
                return;
            }
            MimeHeaders headers = request.getMimeHeaders();
            List<String> before = new ArrayList<>();
            for (Enumeration<String> values = headers.values(Propagation.HEADER); values.hasMoreElements(); ) {
                before.add(values.nextElement());
            }
            Tag tag = Propagation.receive(before, request.decodedURI().toString());
            headers.removeHeader(Propagation.HEADER);
            // Tomcat limits the headers of a request, which have been read; it sets the limit anew for the next one.
            headers.setLimit(-1);
            headers.addValue(Propagation.HEADER).setString(Propagation.seen(before, tag));
            request.setAttribute("dev.tailwright.gat", tag);
            Propagation.restore(tag);
        }
    }

    /** A request goes on after an event. */
    static final class Dispatch {
        @Advice.OnMethodEnter
        static Tag enter(@Advice.Argument(0) Request request) {
            return Propagation.exchange((Tag) request.getAttribute("dev.tailwright.gat"));
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Enter Tag former) {
            Propagation.restore(former);
        }
    }

    /** Before the header of a reply is written. */
    static final class Reply {
        @Advice.OnMethodEnter
        static void enter(@Advice.FieldValue("response") Response response) {
            MimeHeaders headers = response.getMimeHeaders();
            List<String> before = new ArrayList<>();
            for (Enumeration<String> values = headers.values(Propagation.HEADER); values.hasMoreElements(); ) {
                before.add(values.nextElement());
            }
            if (!before.isEmpty()) {
                headers.removeHeader(Propagation.HEADER);
                for (String value : Propagation.strip(before)) {
                    headers.addValue(Propagation.HEADER).setString(value);
                }
            }
        }
    }

    /** Trailers of a reply. */
    static final class Trailers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Supplier<Map<String, String>> trailers) {
            trailers = Propagation.withoutTags(trailers);
        }
    }

    /** AsyncContext.start: a thread of the container goes on. */
    static final class AsyncStart {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Runnable task) {
            task = Propagation.tagged(task);
        }
    }
}
