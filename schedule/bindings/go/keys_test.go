package gat

import (
	"encoding/json"
	"math/rand"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheHostsOfAllLanguages(t *testing.T) {
	text, err := os.ReadFile("../hosts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Patterns, Host  string
		Contains, Error bool
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 30 {
		t.Fatal(err, len(cases))
	}
	for _, one := range cases {
		hosts, err := ParseHosts(one.Patterns)
		if (err != nil) != one.Error {
			t.Errorf("%q: %v", one.Patterns, err)
		}
		host := one.Host
		if strings.Contains(host, ":") && host[0] != '[' {
			host = "[" + host + "]"
		}
		if err == nil && hosts.Contains(&url.URL{Host: host}) != one.Contains {
			t.Errorf("%q contains %q: expected %v", one.Patterns, one.Host, one.Contains)
		}
	}
}

// One pass for each layer.
func decodedSlowly(text string) string {
	for {
		var once []byte
		for at := 0; at < len(text); at++ {
			if text[at] == '%' && at+2 < len(text) {
				if c, err := strconv.ParseUint(text[at+1:at+3], 16, 8); err == nil {
					once = append(once, byte(c))
					at += 2
					continue
				}
			}
			once = append(once, text[at])
		}
		if string(once) == text {
			return text
		}
		text = string(once)
	}
}

func TestOnePassDecodesAllLayers(t *testing.T) {
	pieces := []string{"%", "%", "25", "%25", "%2", "5", "3", "7", "f", "A", "x", "%74", "%3", "%zz", "\xe9"}
	random := rand.New(rand.NewSource(1))
	for round := 0; round < 20_000; round++ {
		var text string
		for left := random.Intn(20); left > 0; left-- {
			text += pieces[random.Intn(len(pieces))]
		}
		if found := string(decoded(text)); found != decodedSlowly(text) {
			t.Fatalf("%q: %q, expected %q", text, found, decodedSlowly(text))
		}
	}
}

func fastest(value string) time.Duration {
	least := time.Hour
	for round := 0; round < 10; round++ {
		before := time.Now()
		Strip([]string{value})
		least = min(least, time.Since(before))
	}
	return least
}

func TestLongKeysCostLinearWork(t *testing.T) {
	layers := func(length int) string { return "%" + strings.Repeat("25", length/2) + "74ailwright-start=1" }
	if rest := Strip([]string{layers(1000)}); len(rest) > 0 {
		t.Error("the key is ours")
	}
	// Ten times the length: 10 for linear work, 100 for quadratic.
	if growth := float64(fastest(layers(200_000))) / float64(fastest(layers(20_000))); growth > 40 {
		t.Errorf("ten times the length took %.0f times as long", growth)
	}
}
