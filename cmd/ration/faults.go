package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
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

// checkLoopback notes an address that others than this machine could reach.
func (f *faults) checkLoopback(variable, address string) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		f.notef(variable, "%q is not an address such as 127.0.0.1:8080", address)
		return
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return
	}
	f.notef(variable, "%q would be reached from other machines, and callers cannot identify themselves yet: "+
		"use a loopback address, such as 127.0.0.1 or [::1], and put what authenticates callers in front of it", address)
}

// checkURL notes what is not an absolute http or https URL.
func (f *faults) checkURL(variable, text string) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		f.notef(variable, "%q is not a URL that begins with http:// or https://", text)
	}
}
