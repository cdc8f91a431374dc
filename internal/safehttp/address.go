package safehttp

import "net/netip"

// The addresses that are not public, from the registries of special-purpose addresses (IANA, checked in November 2026). An IPv6 address is public only inside
// the range that is assigned to the internet, so that list has only the exceptions in it.
var (
	specialIPv4 = prefixes(
		"0.0.0.0/8",        // this network (RFC 791)
		"10.0.0.0/8",       // private (RFC 1918)
		"100.64.0.0/10",    // shared by the customers of a provider (RFC 6598)
		"127.0.0.0/8",      // loopback (RFC 1122)
		"168.63.129.16/32", // not in the registry: the host of a virtual machine in Azure
		"169.254.0.0/16",   // link-local, with the metadata services of clouds (RFC 3927)
		"172.16.0.0/12",    // private (RFC 1918)
		"192.0.0.0/24",     // protocol assignments (RFC 6890)
		"192.0.2.0/24",     // documentation (RFC 5737)
		"192.31.196.0/24",  // AS112 (RFC 7535)
		"192.52.193.0/24",  // AMT relays (RFC 7450)
		"192.88.99.0/24",   // 6to4 relays (RFC 7526)
		"192.168.0.0/16",   // private (RFC 1918)
		"192.175.48.0/24",  // AS112 (RFC 7534)
		"198.18.0.0/15",    // benchmarks (RFC 2544)
		"198.51.100.0/24",  // documentation (RFC 5737)
		"203.0.113.0/24",   // documentation (RFC 5737)
		"224.0.0.0/4",      // multicast (RFC 1112)
		"240.0.0.0/4",      // reserved, and broadcast (RFC 1112)
	)
	publicIPv6  = netip.MustParsePrefix("2000::/3")
	specialIPv6 = prefixes(
		"2001::/23",         // protocol assignments, with Teredo (RFC 2928)
		"2001:db8::/32",     // documentation (RFC 3849)
		"2002::/16",         // 6to4, which contains an IPv4 address (RFC 3056)
		"2620:4f:8000::/48", // AS112 (RFC 7534)
		"3fff::/20",         // documentation (RFC 9637)
	)
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// special returns the range because of which an address is not public, or "".
func special(ip netip.Addr) string {
	ranges := specialIPv4
	if ip.Is6() {
		if !publicIPv6.Contains(ip) {
			return "it is outside of " + publicIPv6.String()
		}
		ranges = specialIPv6
	}
	for _, p := range ranges {
		if p.Contains(ip) {
			return "it is in " + p.String()
		}
	}
	return ""
}
