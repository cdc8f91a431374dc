package shot

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Hosts is a list of hosts. A host on it stands for those below it as well: example.org for ads.example.org.
type Hosts map[string]bool

// NewHosts makes a list.
func NewHosts(names ...string) Hosts {
	list := Hosts{}
	for _, name := range names {
		list[strings.ToLower(strings.Trim(name, "."))] = true
	}
	return list
}

// Has reports whether a host, in lower case, is on the list.
func (h Hosts) Has(host string) bool {
	for host != "" {
		if h[host] {
			return true
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return false
}

// ReadHosts reads a list with one host on each line, as it is, or after an address as in a hosts file. # begins a comment.
func ReadHosts(from io.Reader) (Hosts, error) {
	list := Hosts{}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		name := strings.ToLower(words[len(words)-1])
		if len(words) > 2 || !domain.MatchString(name) {
			return nil, fmt.Errorf("line %d is neither a host nor an address and a host: %.60q", n, lines.Text())
		}
		list[strings.Trim(name, ".")] = true
	}
	return list, lines.Err()
}

// Ads returns the built-in list: the largest networks of advertisements and trackers.
func Ads() Hosts {
	return NewHosts(
		"doubleclick.net", "googlesyndication.com", "googleadservices.com", "googletagservices.com", "google-analytics.com", "googletagmanager.com", "adservice.google.com",
		"amazon-adsystem.com", "adnxs.com", "adsrvr.org", "criteo.com", "criteo.net", "taboola.com", "outbrain.com", "rubiconproject.com", "pubmatic.com", "openx.net",
		"casalemedia.com", "indexww.com", "smartadserver.com", "adform.net", "bidswitch.net", "3lift.com", "sharethrough.com", "teads.tv", "yieldmo.com", "sovrn.com", "lijit.com",
		"media.net", "moatads.com", "adsafeprotected.com", "doubleverify.com", "scorecardresearch.com", "quantserve.com", "demdex.net", "everesttech.net", "bluekai.com",
		"krxd.net", "rlcdn.com", "agkn.com", "mathtag.com", "bat.bing.com", "ads-twitter.com", "connect.facebook.net", "ads.linkedin.com", "snap.licdn.com", "hotjar.com",
		"mouseflow.com", "fullstory.com", "clarity.ms", "chartbeat.com", "zedo.com", "revcontent.com", "mgid.com", "propellerads.com", "popads.net", "adroll.com",
	)
}
