package policy

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// IPPrefix is the number of leading bits of an address that make the key.
type IPPrefix struct {
	V4 int // 1 to 32, default 32
	V6 int // 1 to 128, default 64
}

// defaultIPPrefix cuts IPv6 to what one customer is given as a rule: within
// it he chooses his addresses himself.
func defaultIPPrefix() IPPrefix { return IPPrefix{V4: 32, V6: 64} }

var (
	errNotAddress = errors.New("must be an IP address")
	errZone       = errors.New("must not have a zone id, which means nothing on another machine")
)

// ParseAddress reads an IP address in any textual form, with or without a
// port ("192.0.2.1:5678", "[2001:db8::1]:443") and brackets. IPv4-mapped IPv6
// is unwrapped; zone ids are refused. The error is worded as the Detail of a
// [Fault].
func ParseAddress(text string) (netip.Addr, error) {
	var address netip.Addr
	var err error
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		address, err = netip.ParseAddr(text[1 : len(text)-1])
		if err == nil && address.Is4() {
			return netip.Addr{}, errNotAddress // brackets are IPv6's
		}
	case strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1:
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(text)
		address = withPort.Addr()
	default:
		address, err = netip.ParseAddr(text)
	}
	switch {
	case err != nil:
		return netip.Addr{}, errNotAddress
	case address.Zone() != "":
		return netip.Addr{}, errZone
	}
	return address.Unmap(), nil
}

// cut gives the part of an address that makes the key, and its length in bits.
func (p IPPrefix) cut(address netip.Addr) (masked netip.Addr, bits int) {
	bits = p.V6
	if address.Is4() {
		bits = p.V4
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return address, address.BitLen() // not reached: lengths are checked at install
	}
	return prefix.Addr(), bits
}

// address reads an address into its canonical text.
func (r *reader) address(value jsontext.Value) string {
	text := r.text(value, 1, TextBytesMax)
	if text == "" {
		return "" // the fault is noted
	}
	address, err := ParseAddress(text)
	if err != nil {
		r.fault(err.Error())
		return ""
	}
	return address.String()
}

// canonicalNetwork gives the canonical text of a match's address or CIDR
// prefix. The error is worded as the Detail of a [Fault].
func canonicalNetwork(text string) (string, error) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			return "", errors.New("must be an IP address, a CIDR prefix or *")
		case address.Zone() != "":
			return "", errZone
		}
		return address.Unmap().String(), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return "", errors.New("must be an IP address, a CIDR prefix or *")
	}
	const mappedBits = 96 // the prefix under which IPv6 holds IPv4
	if network.Addr().Is4In6() && network.Bits() >= mappedBits {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mappedBits)
	}
	if network != network.Masked() {
		return "", errors.New("has bits set behind its prefix length; write " + network.Masked().String())
	}
	return network.String(), nil
}

// bitText writes the first bits of an address out, its family before them, so
// that a network is to an address what a prefix is to text.
func bitText(address netip.Addr, bits int) string {
	var out [1 + 128]byte
	out[0] = '6'
	if address.Is4() {
		out[0] = '4'
	}
	raw := address.AsSlice()
	for i := range bits {
		out[1+i] = '0' + raw[i/8]>>(7-i%8)&1
	}
	return string(out[:1+bits])
}

var ipPrefixMembers = members[IPPrefix]{
	{name: "v4", read: func(r *reader, p *IPPrefix, v jsontext.Value) { p.V4 = int(r.positive(v, 32)) }},
	{name: "v6", read: func(r *reader, p *IPPrefix, v jsontext.Value) { p.V6 = int(r.positive(v, 128)) }},
}

// readIPPrefix reads how a policy cuts addresses.
func readIPPrefix(r *reader, change *Change, value jsontext.Value) {
	readObject(r, value, &change.Spec.IPPrefix, ipPrefixMembers)
}

// ipPrefix writes how addresses are cut.
func (w *writer) ipPrefix(prefix IPPrefix) {
	w.open("ipPrefix", '{')
	w.integer("v4", int64(prefix.V4))
	w.integer("v6", int64(prefix.V6))
	w.close('}')
}
