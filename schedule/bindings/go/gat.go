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
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	var kept []byte
	for _, c := range decoded(key) {
		if '!' <= c && c <= '~' && c != '+' {
			kept = append(kept, c)
		}
	}
	return strings.ToLower(string(kept))
}

func isUnusual(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_.", c))
}

// decoded is the text after percent-decoding until nothing is left to decode, in one pass: what a decoded byte completes is
// decoded at once. No two escapes can overlap, so that the order makes no difference.
func decoded(text string) []byte {
	stack := make([]byte, 0, len(text))
	for _, c := range []byte(text) {
		stack = append(stack, c)
		for c, ok := escaped(stack); ok; c, ok = escaped(stack) {
			stack = append(stack[:len(stack)-3], c)
		}
	}
	return stack
}

// escaped is the byte that the last three stand for, if they are an escape.
func escaped(stack []byte) (byte, bool) {
	at := len(stack) - 3
	if at < 0 || stack[at] != '%' {
		return 0, false
	}
	var c [1]byte
	_, err := hex.Decode(c[:], stack[at+1:])
	return c[0], err == nil
}
