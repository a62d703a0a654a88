package gat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var forged = []string{"tailwright-start=5", "own=1"}

// serve starts a server behind the handler of an edge.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(Handler(handler, &Edge{}))
	t.Cleanup(server.Close)
	return server
}

// fetch is the reply with its body, and so with its trailers.
func fetch(t *testing.T, request *http.Request) (*http.Response, string) {
	t.Helper()
	reply, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply, string(body)
}

func get(t *testing.T, target string) *http.Request {
	request, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func expectOwn(t *testing.T, what string, headers map[string][]string) {
	t.Helper()
	if values := http.Header(headers).Values(header); !reflect.DeepEqual(values, []string{"own=1"}) {
		t.Errorf("%s: baggage is %q", what, values)
	}
}

func TestTheServerRemovesFilesOfForms(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files, err := os.ReadDir(os.TempDir()); err != nil || len(files) != 1 {
			t.Error("the form has a file while it is served", files, err)
		}
	})
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, _ := form.CreateFormFile("file", "name")
	_, _ = part.Write(make([]byte, 12<<20))
	_ = form.Close()
	request, _ := http.NewRequest(http.MethodPost, server.URL, &body)
	request.Header.Set("Content-Type", form.FormDataContentType())
	fetch(t, request)
	server.Close()
	if files, err := os.ReadDir(os.TempDir()); err != nil || len(files) > 0 {
		t.Error("files are left", files, err)
	}
}

func TestEveryWayToWriteAReplyStripsIt(t *testing.T) {
	ways := map[string]func(w http.ResponseWriter){
		"nothing":     func(http.ResponseWriter) {},
		"WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) },
		"Write":       func(w http.ResponseWriter) { fmt.Fprint(w, "text") },
		"Flush":       func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"WriteString": func(w http.ResponseWriter) { _, _ = w.(io.StringWriter).WriteString("text") },
		"ReadFrom":    func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("text")) },
		"controller":  func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
	}
	for what, write := range ways {
		for _, key := range []string{"Baggage", "baggage", "BAGGAGE"} {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()[key] = forged
				write(w)
			})
			reply, _ := fetch(t, get(t, server.URL))
			expectOwn(t, what+" "+key, reply.Header)
		}
	}
}

func TestTrailersAreStripped(t *testing.T) {
	ways := map[string]string{"Baggage": "Baggage", http.TrailerPrefix + "Baggage": "", http.TrailerPrefix + "baggage": ""}
	for key, declared := range ways {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if declared != "" {
				w.Header().Set("Trailer", declared)
			}
			fmt.Fprint(w, "text")
			w.(http.Flusher).Flush()
			w.Header()[key] = forged
		})
		reply, body := fetch(t, get(t, server.URL))
		expectOwn(t, key, reply.Trailer)
		if body != "text" {
			t.Errorf("%q", body)
		}
	}
}

func TestEarlyHintsAreStripped(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Baggage"] = forged
		w.WriteHeader(http.StatusEarlyHints)
		w.Header()["Baggage"] = forged
		w.WriteHeader(http.StatusOK)
	})
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, headers textproto.MIMEHeader) error {
		hints++
		expectOwn(t, "hints", headers)
		return nil
	}}
	request := get(t, server.URL)
	reply, _ := fetch(t, request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	expectOwn(t, "reply", reply.Header)
	if hints != 1 {
		t.Error("hints came", hints)
	}
}

func TestAProxyPassesUpgradesWithoutTags(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n"+
			"Baggage: tailwright-start=5\r\nBaggage: own=1\r\n\r\nbytes")
	}))
	t.Cleanup(inner.Close)
	target, _ := url.Parse(inner.URL)
	server := serve(t, httputil.NewSingleHostReverseProxy(target).ServeHTTP)
	request := get(t, server.URL)
	request.Header.Set("Connection", "upgrade")
	request.Header.Set("Upgrade", "x")
	reply, body := fetch(t, request)
	expectOwn(t, "upgrade", reply.Header)
	if reply.StatusCode != http.StatusSwitchingProtocols || body != "bytes" {
		t.Error(reply.StatusCode, body)
	}
}

func TestWritersThatCannotHijackSaySo(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
	}
	Handler(http.HandlerFunc(handler), &Edge{}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (trip roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return trip(r) }

func TestKeysNeedNotBeCanonical(t *testing.T) {
	hosts, err := ParseHosts("inside")
	if err != nil {
		t.Fatal(err)
	}
	for host, expected := range map[string]string{"inside": "tailwright-start=7,own=1", "outside": "own=1"} {
		var sent http.Header
		transport := Transport{Hosts: hosts, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return nil, errors.New("it is not sent")
		})}
		request := get(t, "http://"+host+"/")
		request.Header["baggage"] = forged
		_, _ = transport.RoundTrip(request.WithContext(WithTag(request.Context(), Tag{StartNs: 7})))
		if !reflect.DeepEqual(sent, http.Header{"Baggage": {expected}}) {
			t.Errorf("%s: %q", host, sent)
		}
		if !reflect.DeepEqual(request.Header, http.Header{"baggage": forged}) {
			t.Errorf("the caller's request changed: %q", request.Header)
		}
	}
	var seen http.Header
	request := httptest.NewRequest("GET", "/", nil)
	request.Header["baggage"] = forged
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })
	Handler(handler, &Edge{}).ServeHTTP(httptest.NewRecorder(), request)
	if len(seen) != 1 || !strings.HasSuffix(seen.Get(header), ",own=1") || strings.Contains(seen.Get(header), "start=5") {
		t.Errorf("%q", seen)
	}
}

// A trailer may get its value while the body is read, until its end.
type endingBody struct {
	io.Reader
	atEnd func()
}

func (body endingBody) Read(bytes []byte) (int, error) {
	count, err := body.Reader.Read(bytes)
	if err == io.EOF {
		body.atEnd()
	}
	return count, err
}

// withTrailer is a call with a tag in its trailer, which is there from the begin or comes at the end of the body.
func withTrailer(t *testing.T, target string, isLate bool) *http.Request {
	request := get(t, target)
	request.Method = http.MethodPost
	request.Trailer = http.Header{"Baggage": nil, "X-Other": nil}
	fill := func() {
		request.Trailer["Baggage"] = append([]string(nil), forged...)
		request.Trailer["X-Other"] = []string{"tailwright-start=5"}
	}
	if !isLate {
		fill()
	}
	request.Body = io.NopCloser(endingBody{strings.NewReader("text"), fill})
	return request
}

func TestTrailersOfCallsAreStripped(t *testing.T) {
	hosts, err := ParseHosts("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var trailer http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if trailer = r.Trailer; err != nil || string(body) != "text" {
			t.Error(string(body), err)
		}
	}))
	t.Cleanup(server.Close)
	client := http.Client{Transport: &Transport{Hosts: hosts}}
	check := func(request *http.Request, what string) {
		reply, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if !reflect.DeepEqual(trailer, http.Header{"Baggage": {"own=1"}, "X-Other": {"tailwright-start=5"}}) {
			t.Errorf("%s: %q", what, trailer)
		}
		if !reflect.DeepEqual(request.Trailer["Baggage"], forged) {
			t.Errorf("%s: the caller's trailer changed: %q", what, request.Trailer)
		}
	}
	for _, target := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
		for _, isLate := range []bool{false, true} {
			request := withTrailer(t, target, isLate)
			check(request, fmt.Sprint(target, isLate))
			request = withTrailer(t, target, isLate)
			check(request.WithContext(WithTag(request.Context(), Tag{StartNs: 7})), fmt.Sprint(target, isLate, " with a tag"))
		}
	}
}

// What a server says of the trailer of a request in two protocols, with and without a handler around it.
func TestTrailersOfRequestsArrive(t *testing.T) {
	for _, isHTTP2 := range []bool{false, true} {
		var trailer http.Header
		server := httptest.NewUnstartedServer(Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if trailer = r.Trailer; err != nil || string(body) != "text" {
				t.Error(string(body), err)
			}
		}), &InnerTier{}))
		server.EnableHTTP2 = isHTTP2
		server.StartTLS()
		request := withTrailer(t, server.URL, true)
		reply, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.ProtoMajor == 2 != isHTTP2 {
			t.Error(reply.Proto)
		}
		if !reflect.DeepEqual(trailer, http.Header{"Baggage": {"own=1"}, "X-Other": {"tailwright-start=5"}}) {
			t.Errorf("%s: %q", reply.Proto, trailer)
		}
		server.Close()
	}
}

// A trailer that no header announces comes with HTTP/1.1 only.
func TestTrailersThatAreNotAnnouncedArrive(t *testing.T) {
	var trailer http.Header
	server := httptest.NewServer(Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		trailer = r.Trailer
	}), &InnerTier{}))
	t.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprint(connection, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n0\r\nX-Sum: 5\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(connection), nil); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(trailer, http.Header{"X-Sum": {"5"}}) {
		t.Errorf("%q", trailer)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	var open atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := http.Client{Transport: &Transport{Base: &http.Transport{}}}
	reply, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	client.CloseIdleConnections()
	for wait := 0; open.Load() > 0; wait++ {
		if wait == 1000 {
			t.Fatal("the connection is still open")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
