package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/rationhq/ration/httpapi"
)

// environment holds the variables that are set to something: an empty one
// means the default, as in a shell's ${NAME:-default}.
type environment map[string]string

func newEnvironment(environ []string) environment {
	variables := make(environment)
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); value != "" {
			variables[name] = value
		}
	}
	return variables
}

// faults are all that is wrong with a configuration, so that it is mended in
// one go.
type faults []string

// notef notes a fault of a variable.
func (f *faults) notef(variable, format string, arguments ...any) {
	*f = append(*f, variable+" "+fmt.Sprintf(format, arguments...))
}

// err is nil without faults, else an error that names each.
func (f *faults) err() error {
	switch len(*f) {
	case 0:
		return nil
	case 1:
		return usageError{errors.New((*f)[0])}
	default:
		return usageError{fmt.Errorf("%d variables cannot be as they are:\n  %s", len(*f), strings.Join(*f, "\n  "))}
	}
}

// read fills a struct by its `env` tags and notes every value that cannot be
// read.
func (e environment) read(into any, found *faults) {
	err := env.ParseWithOptions(into, env.Options{
		Environment: e,
		FuncMap: map[reflect.Type]env.ParserFunc{
			reflect.TypeFor[httpapi.ResetHeader](): parseResetHeader,
			reflect.TypeFor[time.Duration]():       parseDuration,
		},
	})
	var all env.AggregateError
	if !errors.As(err, &all) {
		all.Errors = nil
	}
	for _, one := range all.Errors {
		var unread env.ParseError
		if !errors.As(one, &unread) {
			*found = append(*found, one.Error())
			continue
		}
		field, _ := reflect.TypeOf(into).Elem().FieldByName(unread.Name)
		variable := field.Tag.Get("env")
		found.notef(variable, "%q is not %s", e[variable], form(unread))
	}
}

// form says what a value of the field looks like.
func form(unread env.ParseError) string {
	switch unread.Type.Kind() { //nolint:exhaustive // the kinds of our own fields; the error itself says the rest
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return cmp.Or(map[reflect.Type]string{
			reflect.TypeFor[time.Duration]():       "a duration such as 50ms or 2s",
			reflect.TypeFor[httpapi.ResetHeader](): "delta, epoch or off",
		}[unread.Type], "usable: "+unread.Err.Error())
	}
}

func parseResetHeader(name string) (any, error) {
	form, known := httpapi.ParseResetHeader(name)
	if !known {
		return nil, errors.New("unknown")
	}
	return form, nil
}

func parseDuration(text string) (any, error) { return time.ParseDuration(text) }

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
