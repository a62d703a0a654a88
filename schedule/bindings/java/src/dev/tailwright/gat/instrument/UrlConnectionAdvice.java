package dev.tailwright.gat.instrument;

import dev.tailwright.gat.Propagation;
import java.net.URL;
import java.util.List;
import net.bytebuddy.asm.Advice;
import sun.net.www.MessageHeader;

/** java.net.HttpURLConnection, below it where each header is written, those of redirected calls included. */
final class UrlConnectionAdvice {
    private UrlConnectionAdvice() {}

    /** Before the header of a call is written. */
    static final class Call {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) MessageHeader headers, @Advice.FieldValue("url") URL url) {
            // What a proxy is asked to connect to is for the proxy.
            String line = headers.getKey(0);
            boolean isConnect = line != null && line.startsWith("CONNECT ");
            List<String> before = Propagation.all(headers.multiValueIterator(Propagation.HEADER));
            List<String> after = Propagation.outgoing(before, Propagation.current(), isConnect ? null : url.getHost());
            headers.remove(Propagation.HEADER);
            for (String value : after) {
                headers.add(Propagation.HEADER, value);
            }
        }
    }
}
