package gat

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"time"
)

// Handler gives requests a current tag, in their headers, too, and takes tags from replies and their trailers.
//
// The writer that next gets is an http.Flusher, http.Hijacker (which fails where the one below is none), io.ReaderFrom and
// io.StringWriter, but no http.Pusher and no http.CloseNotifier; and http.MaxBytesReader cannot close the connection by it.
// What next writes to a hijacked connection is its own, except for the header that it takes from the writer.
func Handler(next http.Handler, role Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := valuesOf(r.Header)
		tag := role.Receive(values, time.Now(), r)
		inner := r.Clone(WithTag(r.Context(), tag))
		exchange(inner.Header, []string{Write(values, tag)})
		if r.Trailer != nil || r.ContentLength < 0 {
			inner.Body = receivedBody{r.Body, r, inner}
		}
		defer func() {
			// The server removes the temporary files of the request that it knows.
			if r.MultipartForm == nil {
				r.MultipartForm = inner.MultipartForm
			}
		}()
		next.ServeHTTP(&strippedWriter{ResponseWriter: w}, inner)
		// What the server writes by itself: a header that was not written yet, and trailers.
		stripHeader(w.Header())
	})
}

// strippedWriter takes tags from the header of a reply before it is written.
type strippedWriter struct {
	http.ResponseWriter
	isWritten  bool
	isHijacked bool
}

// Header is without tags once the connection is hijacked: httputil.ReverseProxy fills it and writes it by itself then.
func (w *strippedWriter) Header() http.Header {
	headers := w.ResponseWriter.Header()
	if w.isHijacked {
		stripHeader(headers)
	}
	return headers
}

func (w *strippedWriter) WriteHeader(status int) {
	if !w.isWritten {
		stripHeader(w.ResponseWriter.Header())
	}
	w.isWritten = w.isWritten || status >= 200 || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *strippedWriter) writeHeaderOnce() {
	if !w.isWritten {
		w.WriteHeader(http.StatusOK)
	}
}

func (w *strippedWriter) Write(bytes []byte) (int, error) {
	w.writeHeaderOnce()
	return w.ResponseWriter.Write(bytes)
}

// WriteString is Write without a copy, if the writer below can do that.
func (w *strippedWriter) WriteString(text string) (int, error) {
	w.writeHeaderOnce()
	return io.WriteString(w.ResponseWriter, text)
}

// ReadFrom copies all of the source, by sendfile if the writer below can do that.
func (w *strippedWriter) ReadFrom(source io.Reader) (int64, error) {
	w.writeHeaderOnce()
	return io.Copy(w.ResponseWriter, source)
}

// Flush sends what is there, and the header first.
func (w *strippedWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush that tells what failed.
func (w *strippedWriter) FlushError() error {
	w.writeHeaderOnce()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack hands the connection over; the error is http.ErrNotSupported where that cannot be, as with HTTP/2.
func (w *strippedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.isHijacked = w.isHijacked || err == nil
	return connection, buffer, err
}

// Unwrap is the writer below, for http.ResponseController.
func (w *strippedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// keysOf are the keys of headers that are sent as baggage: they need not be canonical.
func keysOf(headers http.Header) []string {
	var keys []string
	for key := range headers {
		if strings.EqualFold(key, header) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

func valuesOf(headers http.Header) []string {
	var values []string
	for _, key := range keysOf(headers) {
		values = append(values, headers[key]...)
	}
	return values
}

func exchange(headers http.Header, values []string) {
	for _, key := range keysOf(headers) {
		delete(headers, key)
	}
	if len(values) > 0 {
		headers[header] = values
	}
}

// stripHeader takes tags from a header, and from what becomes trailers.
func stripHeader(headers http.Header) {
	if values := valuesOf(headers); len(values) > 0 {
		exchange(headers, Strip(values))
	}
	for key, values := range headers {
		name, isTrailer := strings.CutPrefix(key, http.TrailerPrefix)
		if !isTrailer || !strings.EqualFold(name, header) {
			continue
		}
		headers[key] = Strip(values)
	}
}

// Transport gives calls to Hosts the tag of their context, and takes tags from calls to others, redirected ones included.
type Transport struct {
	Hosts Hosts
	// Base makes the calls; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip makes one call. Its trailer has no tag, whoever is called.
func (transport *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := transport.base()
	values := valuesOf(r.Header)
	tag, hasTag := Current(r.Context())
	isInside := transport.Hosts.Contains(r.URL)
	isSame := (isInside && !hasTag) || (!isInside && len(values) == 0)
	if isSame && r.Trailer == nil {
		return base.RoundTrip(r)
	}
	call := r.Clone(r.Context())
	stripTrailer(call, r.Trailer)
	switch {
	case isSame:
	case isInside:
		exchange(call.Header, []string{Write(values, tag)})
	default:
		exchange(call.Header, Strip(values))
	}
	return base.RoundTrip(call)
}

// CloseIdleConnections has the transport below close connections that no call uses, if it can do that.
func (transport *Transport) CloseIdleConnections() {
	if closing, ok := transport.base().(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}

func (transport *Transport) base() http.RoundTripper {
	if transport.Base == nil {
		return http.DefaultTransport
	}
	return transport.Base
}
