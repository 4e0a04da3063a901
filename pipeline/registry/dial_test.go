package registry

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) { // S9
	t.Parallel()
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.0.192": false, "::1": false, "::": false, "fe80::1": false,
		"fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:100.64.0.1": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "2002:a00:1::": false, "2001::1": false, "fec0::1": false,
		"fe80::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is public: %v", addr, got)
		}
	}
}
