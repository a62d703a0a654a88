package gat

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

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
		if piece != "*" && !isHost(name) {
			return Hosts{}, fmt.Errorf("%q names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path", piece)
		}
		if isSuffix {
			name = "." + name
		}
		hosts.patterns = append(hosts.patterns, name)
	}
	return hosts, nil
}

func isHost(name string) bool {
	if strings.Contains(name, ":") {
		address, err := netip.ParseAddr(name)
		return err == nil && address.Zone() == ""
	}
	return name != "" && name[0] != '.' && strings.IndexFunc(name, isUnusual) < 0
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

// canonical is without brackets and the final dot, in lower case, and has addresses of IPv6 in one spelling.
func canonical(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		return address.String()
	}
	return host
}
