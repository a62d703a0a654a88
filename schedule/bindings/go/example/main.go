// A service that calls others and tells what it knows: example ROLE HOSTS [URL...]. Prints its port.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	gat "tailwright.dev/gat"
)

func main() {
	slos := map[string]time.Duration{"/soon": 50 * time.Millisecond, "/later": 5 * time.Second}
	edge := &gat.Edge{SLOOf: func(r *http.Request) time.Duration { return slos[r.URL.Path] }}
	roles := map[string]gat.Role{"edge": edge, "inner": &gat.InnerTier{}}
	hosts, err := gat.ParseHosts(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &gat.Transport{Hosts: hosts}}
	service := func(w http.ResponseWriter, r *http.Request) {
		tag, _ := gat.Current(r.Context())
		called := []any{}
		for _, url := range os.Args[3:] {
			answer, err := call(client, r, url)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			called = append(called, answer)
		}
		start := strconv.FormatUint(tag.StartNs, 10)
		w.Header().Set("Baggage", "tailwright-start=1,reply=1")
		_ = json.NewEncoder(w).Encode(map[string]any{"start": start, "baggage": r.Header.Get("Baggage"), "called": called})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, gat.Handler(http.HandlerFunc(service), roles[os.Args[1]])))
}

func call(client *http.Client, r *http.Request, url string) (any, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Baggage", "own=1")
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var answer any
	return answer, json.NewDecoder(reply.Body).Decode(&answer)
}
