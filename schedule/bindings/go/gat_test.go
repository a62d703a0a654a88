package gat

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

type sharedCase struct {
	What    string
	Values  []string
	Read    any
	Strip   string
	Written string
}

// The characters of the cases stand for bytes.
func latin1(text string) string {
	var bytes []byte
	for _, c := range text {
		bytes = append(bytes, byte(c))
	}
	return string(bytes)
}

func read(values []string) any {
	tag, found, err := Read(values)
	if err != nil {
		return "malformed"
	}
	if !found {
		return nil
	}
	pair := []any{strconv.FormatUint(tag.StartNs, 10), nil}
	if tag.DeadlineNs != 0 {
		pair[1] = strconv.FormatUint(tag.DeadlineNs, 10)
	}
	return pair
}

func TestTheCasesOfAllLanguages(t *testing.T) {
	text, err := os.ReadFile("../cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sharedCase
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 30 {
		t.Fatal(err, len(cases))
	}
	for _, one := range cases {
		var values []string
		for _, value := range one.Values {
			values = append(values, latin1(value))
		}
		if found := read(values); !reflect.DeepEqual(found, one.Read) {
			t.Errorf("%s: read %v, expected %v", one.What, found, one.Read)
		}
		stripped := "keep"
		if rest := Strip(values); !reflect.DeepEqual(rest, values) {
			stripped = "remove"
			if len(rest) > 0 {
				stripped = rest[0]
			}
		}
		if stripped != latin1(one.Strip) {
			t.Errorf("%s: stripped %q, expected %q", one.What, stripped, one.Strip)
		}
		if written := Write(values, Tag{StartNs: 1_700_000_000_000_000_000}); written != latin1(one.Written) {
			t.Errorf("%s: wrote %q, expected %q", one.What, written, one.Written)
		}
	}
}

func TestWhatAllLanguagesAccept(t *testing.T) {
	text, err := os.ReadFile("../received.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		What   string
		Values []string
		Tag    []any
		Case   string
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 10 {
		t.Fatal(err, len(cases))
	}
	for _, one := range cases {
		tier := &InnerTier{}
		tag := tier.Receive(one.Values, time.Unix(1_700_000_000, 0), nil)
		pair := []any{strconv.FormatUint(tag.StartNs, 10), nil}
		if tag.DeadlineNs != 0 {
			pair[1] = strconv.FormatUint(tag.DeadlineNs, 10)
		}
		name := ""
		for _, word := range strings.Split(one.Case, "_") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		counts := reflect.ValueOf(tier.Counts()).FieldByName(name)
		if !reflect.DeepEqual(pair, one.Tag) || counts.Uint() != 1 {
			t.Errorf("%s: %v, expected %v, %s", one.What, pair, one.Tag, one.Case)
		}
	}
}
