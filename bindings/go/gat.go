// Package gat carries the start of a request from the edge to every service on its way, in the W3C baggage header.
//
//	http.ListenAndServe(":80", gat.Handler(mux, &gat.InnerTier{}))          // &gat.Edge{} at the entry point
//	client := &http.Client{Transport: &gat.Transport{Hosts: hosts}}        // hosts: gat.ParseHosts("store,*.svc")
//
// Calls have to be made with the context of the request that they are for (http.NewRequestWithContext). Current(ctx) is
// its tag: what a queue inside the service orders by.
package gat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// StartKey is the member of baggage with the start.
	StartKey = "tailwright-start"
	// DeadlineKey is the member of baggage with the deadline.
	DeadlineKey = "tailwright-deadline"

	header     = "Baggage"
	bytesMax   = 8192
	membersMax = 180
)

// Tag says when a request entered, and when its answer is due, in nanoseconds since 1970; no deadline is 0.
type Tag struct{ StartNs, DeadlineNs uint64 }

// ErrMalformed is the error of values in which something with our name is no tag.
var ErrMalformed = errors.New("malformed tag")

type contextKey struct{}

// Current is the tag of the request that the context belongs to, if there is one.
func Current(ctx context.Context) (Tag, bool) {
	tag, ok := ctx.Value(contextKey{}).(Tag)
	return tag, ok
}

// WithTag is a context of work for the request with this tag.
func WithTag(ctx context.Context, tag Tag) context.Context {
	return context.WithValue(ctx, contextKey{}, tag)
}

func trim(text string) string { return strings.Trim(text, " \t") }

func members(values []string) []string {
	var found []string
	for _, value := range values {
		for _, piece := range strings.Split(value, ",") {
			if member := trim(piece); member != "" {
				found = append(found, member)
			}
		}
	}
	return found
}

// Read finds the tag in the values of all baggage headers. The error is ErrMalformed.
func Read(values []string) (tag Tag, found bool, err error) {
	var hasDeadline bool
	for _, member := range members(values) {
		key, value, hasValue := strings.Cut(member, "=")
		value, _, _ = strings.Cut(value, ";")
		switch {
		case !hasValue:
		case trim(key) == StartKey:
			err = errors.Join(err, setOnce(&tag.StartNs, &found, trim(value), 0))
		case trim(key) == DeadlineKey:
			err = errors.Join(err, setOnce(&tag.DeadlineNs, &hasDeadline, trim(value), 1))
		}
	}
	if err == nil && hasDeadline && !found {
		err = fmt.Errorf("%w: a deadline without a start", ErrMalformed)
	}
	if err != nil {
		return Tag{}, false, err
	}
	return tag, found, nil
}

func setOnce(place *uint64, isSet *bool, digits string, least uint64) error {
	value, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" || value < least {
		return fmt.Errorf("%w: %q is no number of nanoseconds", ErrMalformed, digits)
	}
	if *isSet && *place != value {
		return fmt.Errorf("%w: two members of one name differ", ErrMalformed)
	}
	*place, *isSet = value, true
	return nil
}

// Write makes the one value that takes the place of all: the tag, then all that is not ours, within 8192 bytes and 180
// members.
func Write(values []string, tag Tag) string {
	kept := []string{StartKey + "=" + strconv.FormatUint(tag.StartNs, 10)}
	if tag.DeadlineNs != 0 {
		kept = append(kept, DeadlineKey+"="+strconv.FormatUint(tag.DeadlineNs, 10))
	}
	length := len(strings.Join(kept, ","))
	for _, member := range others(values) {
		if len(kept) == membersMax || length+1+len(member) > bytesMax {
			break
		}
		length += 1 + len(member)
		kept = append(kept, member)
	}
	return strings.Join(kept, ",")
}

// Strip takes out all that is ours, and what some library might take for it.
func Strip(values []string) []string {
	rest := others(values)
	if len(rest) == len(members(values)) {
		return values
	}
	if len(rest) == 0 {
		return nil
	}
	return []string{strings.Join(rest, ",")}
}

func others(values []string) []string {
	var found []string
	for _, member := range members(values) {
		if !isOurs(member) {
			found = append(found, member)
		}
	}
	return found
}

func isOurs(member string) bool {
	key := member
	if end := strings.IndexAny(member, "=;"); end >= 0 {
		key = member[:end]
	}
	key = folded(trim(key))
	return key == StartKey || key == DeadlineKey
}

// folded is the key in lower case; percent-encoding is undone, in as many layers as there are, and what libraries trim is
// left out.
func folded(key string) string {
	if strings.IndexFunc(key, isUnusual) < 0 {
		return strings.ToLower(key)
	}
	for {
		decoded := decodedOnce(key)
		if decoded == key {
			break
		}
		key = decoded
	}
	var kept []byte
	for _, c := range []byte(key) {
		if '!' <= c && c <= '~' && c != '+' {
			kept = append(kept, c)
		}
	}
	return strings.ToLower(string(kept))
}

func isUnusual(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_.", c))
}

func decodedOnce(text string) string {
	var decoded []byte
	for at := 0; at < len(text); at++ {
		if text[at] == '%' && at+2 < len(text) {
			if hex, err := strconv.ParseUint(text[at+1:at+3], 16, 8); err == nil {
				decoded = append(decoded, byte(hex))
				at += 2
				continue
			}
		}
		decoded = append(decoded, text[at])
	}
	return string(decoded)
}

// Role decides on the tag of a request that comes in: *Edge or *InnerTier.
type Role interface {
	Receive(values []string, now time.Time) Tag
}

// Edge stamps requests from outside, and believes nothing that they claim. Starts increase strictly.
type Edge struct {
	// SLO is how long after the start the answer is due; 0 for no deadline.
	SLO time.Duration

	mutex  sync.Mutex
	lastNs uint64
}

// Receive is the tag of a request that enters now.
func (edge *Edge) Receive(_ []string, now time.Time) Tag {
	edge.mutex.Lock()
	defer edge.mutex.Unlock()
	edge.lastNs = max(edge.lastNs+1, uint64(max(now.UnixNano(), 0)))
	tag := Tag{StartNs: edge.lastNs}
	if edge.SLO > 0 {
		tag.DeadlineNs = tag.StartNs + uint64(edge.SLO)
	}
	return tag
}

// Counts says how often each case occurred at an InnerTier.
type Counts struct{ Accepted, Untagged, Malformed, Future, TooOld, DeadlineBeforeStart uint64 }

// InnerTier believes tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival.
type InnerTier struct {
	// AheadMax is by how much a start may be in the future; 0 is one second.
	AheadMax time.Duration
	// AgeMax is how old a request can be; 0 is one hour.
	AgeMax time.Duration

	mutex  sync.Mutex
	counts Counts
}

// Counts are the cases so far.
func (tier *InnerTier) Counts() Counts {
	tier.mutex.Lock()
	defer tier.mutex.Unlock()
	return tier.counts
}

// Receive is the tag by which a request is served here, and which its calls to other services carry.
func (tier *InnerTier) Receive(values []string, now time.Time) Tag {
	tier.mutex.Lock()
	defer tier.mutex.Unlock()
	tag, count := tier.judge(values, uint64(max(now.UnixNano(), 0)))
	*count++
	return tag
}

func (tier *InnerTier) judge(values []string, nowNs uint64) (Tag, *uint64) {
	arrived := Tag{StartNs: nowNs}
	tag, found, err := Read(values)
	ageMaxNs := uint64(orDefault(tier.AgeMax, time.Hour))
	oldestNs := nowNs - min(nowNs, ageMaxNs)
	switch {
	case err != nil:
		return arrived, &tier.counts.Malformed
	case !found:
		return arrived, &tier.counts.Untagged
	case tag.StartNs > nowNs+uint64(orDefault(tier.AheadMax, time.Second)):
		return arrived, &tier.counts.Future
	case tag.StartNs < oldestNs:
		if tag.DeadlineNs < oldestNs {
			tag.DeadlineNs = 0
		}
		return Tag{oldestNs, tag.DeadlineNs}, &tier.counts.TooOld
	case tag.DeadlineNs != 0 && tag.DeadlineNs < tag.StartNs:
		return Tag{StartNs: tag.StartNs}, &tier.counts.DeadlineBeforeStart
	}
	return tag, &tier.counts.Accepted
}

func orDefault(value, fallback time.Duration) time.Duration {
	if value == 0 {
		return fallback
	}
	return value
}

// Handler gives requests a current tag, in their headers, too, and takes tags from replies.
func Handler(next http.Handler, role Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := role.Receive(r.Header.Values(header), time.Now())
		inner := r.Clone(WithTag(r.Context(), tag))
		inner.Header.Set(header, Write(r.Header.Values(header), tag))
		stripped := &strippedWriter{ResponseWriter: w}
		next.ServeHTTP(stripped, inner)
		if !stripped.isWritten {
			// The server writes the header by itself.
			exchange(w.Header(), Strip(w.Header().Values(header)))
		}
	})
}

// strippedWriter takes tags from the header of a reply before it is written.
type strippedWriter struct {
	http.ResponseWriter
	isWritten bool
}

func (w *strippedWriter) WriteHeader(status int) {
	if values := w.Header().Values(header); !w.isWritten && len(values) > 0 {
		exchange(w.Header(), Strip(values))
	}
	w.isWritten = w.isWritten || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *strippedWriter) Write(bytes []byte) (int, error) {
	if !w.isWritten {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(bytes)
}

// Flush sends what is there, and the header first.
func (w *strippedWriter) Flush() {
	if !w.isWritten {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is the writer below, for http.ResponseController.
func (w *strippedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func exchange(headers http.Header, values []string) {
	headers.Del(header)
	for _, value := range values {
		headers.Add(header, value)
	}
}

// Hosts are those that may see tags. The zero value is nobody.
type Hosts struct{ patterns []string }

// ParseHosts reads names, addresses and *.SUFFIX, separated by commas; * is every host.
func ParseHosts(text string) (Hosts, error) {
	var hosts Hosts
	for _, piece := range strings.Split(text, ",") {
		piece = strings.TrimSpace(piece)
		if piece == "" {
			continue
		}
		suffix, isSuffix := strings.CutPrefix(piece, "*.")
		name := canonical(suffix)
		isColon := func(c rune) bool { return isUnusual(c) && c != ':' }
		if piece != "*" && (name == "" || strings.IndexFunc(name, isColon) >= 0 || strings.Count(name, ":") == 1) {
			return Hosts{}, fmt.Errorf("%q names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path", piece)
		}
		if isSuffix {
			name = "." + name
		}
		hosts.patterns = append(hosts.patterns, name)
	}
	return hosts, nil
}

// Contains says whether the host of a URL may see tags.
func (hosts Hosts) Contains(target *url.URL) bool {
	name := canonical(target.Hostname())
	for _, pattern := range hosts.patterns {
		isBelow := strings.HasPrefix(pattern, ".") && len(name) > len(pattern) && strings.HasSuffix(name, pattern)
		if name != "" && (pattern == "*" || pattern == name || isBelow) {
			return true
		}
	}
	return false
}

func canonical(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Transport gives calls to Hosts the tag of their context, and takes tags from calls to others, redirected ones included.
type Transport struct {
	Hosts Hosts
	// Base makes the calls; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip makes one call.
func (transport *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := transport.Base
	if base == nil {
		base = http.DefaultTransport
	}
	values := r.Header.Values(header)
	tag, hasTag := Current(r.Context())
	isInside := transport.Hosts.Contains(r.URL)
	if (isInside && !hasTag) || (!isInside && len(values) == 0) {
		return base.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	if isInside {
		exchange(r.Header, []string{Write(values, tag)})
	} else {
		exchange(r.Header, Strip(values))
	}
	return base.RoundTrip(r)
}
