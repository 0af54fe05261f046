package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// faults are all that is wrong with a configuration, so that it is mended in
// one go.
type faults struct {
	variables []string
	sentences []string
}

// notef notes a fault of a variable. One fault each: a value that cannot be
// read has no size to find fault with.
func (f *faults) notef(variable, format string, arguments ...any) {
	if slices.Contains(f.variables, variable) {
		return
	}
	f.variables = append(f.variables, variable)
	f.sentences = append(f.sentences, variable+" "+fmt.Sprintf(format, arguments...))
}

// together notes the variable of two that is missing beside the other one, and
// says whether none is.
func (f *faults) together(names, values [2]string) bool {
	for i, value := range values {
		if value == "" && values[1-i] != "" {
			f.notef(names[i], "is not set, and %s is nothing without it", names[1-i])
			return false
		}
	}
	return true
}

// err is nil without faults, else an error that names each.
func (f *faults) err() error {
	switch len(f.sentences) {
	case 0:
		return nil
	case 1:
		return usageError{errors.New(f.sentences[0])}
	default:
		return usageError{fmt.Errorf("%d variables cannot be as they are:\n  %s", len(f.sentences), strings.Join(f.sentences, "\n  "))}
	}
}

// checkAddress notes what is no address to listen on.
func (f *faults) checkAddress(variable, address string) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		f.notef(variable, "%q is not an address such as 127.0.0.1:8080", address)
	}
}

// checkLoopback notes an address that others than this machine could reach,
// and why they must not.
func (f *faults) checkLoopback(variable, address, because string) {
	f.checkAddress(variable, address)
	if !isLoopback(address) {
		f.notef(variable, "%q would be reached from other machines, and %s: use a loopback address, such as 127.0.0.1 or [::1]", address, because)
	}
}

// isLoopback says whether only this machine reaches an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || notIP == nil && ip.Unmap().IsLoopback())
}

// checkDatabase notes what names no PostgreSQL database, whether there is one
// or not.
func (f *faults) checkDatabase(variable, text string) {
	if _, err := pgxpool.ParseConfig(text); err != nil {
		f.notef(variable, "names no database: %v", err)
	}
}

// checkURL notes what is not an absolute http or https URL.
func (f *faults) checkURL(variable, text string) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		f.notef(variable, "%q is not a URL that begins with http:// or https://", text)
	}
}
