package registry

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// notPublic are ranges that an address on the Internet is never in, beyond those
// that netip knows by name: RFC 6890 and its registry. The documentation ranges are
// left out: nobody's service lives there.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT; clouds have metadata there
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), // IPv4-compatible
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/32"), // Teredo, which holds an IPv4 address
}

// Ranges of IPv6 that lead to an IPv4 address, and where it stands in them.
var embeds = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
}

// Public reports whether an address is one of the Internet's.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, e := range embeds {
		if e.prefix.Contains(a) {
			b := a.As16()
			return Public(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

// PublicDialer connects to public addresses alone. The check is made on the address that
// is connected to, after resolving, so that a name cannot change its mind between.
func PublicDialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{
		Timeout: 15 * time.Second, Resolver: resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s %s: %w", network, address, err)
			}
			if !Public(at.Addr()) {
				return &NotPublicError{Addr: at.Addr()}
			}
			return nil
		},
	}
}

// NotPublicError is why a connection was not made.
type NotPublicError struct{ Addr netip.Addr }

func (e *NotPublicError) Error() string {
	return fmt.Sprintf("%s is not a public address; list the registry with `private: true` if it is yours", e.Addr)
}
