package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestKE3Addresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1":                 "192.0.2.1",
		"192.0.2.1:5678":            "192.0.2.1",
		"[2001:db8::1]:443":         "2001:db8::1",
		"[::1]":                     "::1",
		"2001:db8::1":               "2001:db8::1",
		"2001:db8::1234":            "2001:db8::1234",
		"2001:DB8:0:0:0:0:0:0001":   "2001:db8::1",
		"::ffff:192.0.2.1":          "192.0.2.1",
		"::FFFF:C000:0201":          "192.0.2.1",
		"[::ffff:192.0.2.1]:80":     "192.0.2.1",
		"1::ffff:192.0.2.1":         "1::ffff:c000:201",
		"64:ff9b::192.0.2.1":        "64:ff9b::c000:201",
		"::ffff:0:192.0.2.1":        "::ffff:0:c000:201", // translated, not mapped
		"2001:db8:1:2:3:4:5:6":      "2001:db8:1:2:3:4:5:6",
		"255.255.255.255:65535":     "255.255.255.255",
		"[ffff:ffff:ffff:ffff::]:1": "ffff:ffff:ffff:ffff::",

		"fe80::1%eth0": "", "[fe80::1%eth0]:80": "", "::ffff:1.2.3.4%0": "", "192.0.2.01": "", "": "", "unknown": "",
		"192.0.2.1:": "", "192.0.2.1:65536": "", "192.0.2.1:x": "", "[192.0.2.1]": "", "[192.0.2.1]:1": "", "[::1": "", "::1]": "", "[]": "",
		"[::1]x": "", "192.0.2": "", "192.0.2.1.1": "", "0x7f.1": "", "2130706433": "", " 192.0.2.1": "", "192.0.2.1/32": "",
		"1.2.3.4, 5.6.7.8": "", "localhost": "", "localhost:80": "", ":": "", ":80": "", "１.2.3.4": "", "_hidden": "",
	} {
		address, err := ParseAddress(text)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q was read as %s", text, address)
		case want != "" && (err != nil || address.String() != want):
			t.Errorf("%q: got %s, %v, want %s", text, address, err, want)
		}
	}
}

func TestKE1AddressesShareTheirPrefix(t *testing.T) {
	t.Parallel()
	spec := &Spec{Per: []Attribute{IP}, IPPrefix: defaultIPPrefix()}
	key := func(ip string) Key { return KeyOf("p", spec, &[AttributeCount]string{IP: ip}) }
	first := key("2001:db8:1:2::")
	for _, ip := range []string{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2:8000::"} {
		if key(ip) != first {
			t.Errorf("%s has a bucket of its own", ip)
		}
	}
	for _, ip := range []string{"2001:db8:1:3::", "2001:db8:1::", "192.0.2.1"} {
		if key(ip) == first {
			t.Errorf("%s shares the bucket of another network", ip)
		}
	}
	if key("192.0.2.1") == key("192.0.2.2") {
		t.Error("two IPv4 addresses share a bucket")
	}
}

func FuzzIP(f *testing.F) {
	for _, seed := range []string{"192.0.2.1:5678", "[2001:db8::1]:443", "::ffff:1.2.3.4", "fe80::1%eth0", "192.0.2.01", "[::1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := ParseAddress(text)
		if err != nil {
			return
		}
		if !address.IsValid() || address.Zone() != "" || address.Is4In6() {
			t.Fatalf("%q was read as %#v", text, address)
		}
		again, err := ParseAddress(address.String())
		if err != nil || again != address {
			t.Fatalf("%q: canonical %s reads as %s, %v", text, address, again, err)
		}
		bits := bitText(address, address.BitLen())
		for length := range address.BitLen() + 1 {
			network := netip.PrefixFrom(address, length).Masked()
			if !strings.HasPrefix(bits, bitText(network.Addr(), length)) {
				t.Fatalf("%s is not under %s as text", address, network)
			}
		}
	})
}
