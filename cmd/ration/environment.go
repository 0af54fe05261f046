package main

import (
	"cmp"
	"errors"
	"log/slog"
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
	all, _ := errors.AsType[env.AggregateError](err) // its only error; none without
	for _, one := range all.Errors {
		unread, ok := errors.AsType[env.ParseError](one)
		if !ok {
			found.notef("the configuration", "cannot be read: %v", one) // a fault of our tags, which tests find
			continue
		}
		field, _ := reflect.TypeOf(into).Elem().FieldByName(unread.Name)
		variable := field.Tag.Get("env")
		found.notef(variable, "%q is not %s", e[variable], form(unread))
	}
}

// form says what a value of the field looks like.
func form(unread env.ParseError) string {
	return cmp.Or(map[reflect.Type]string{
		reflect.TypeFor[bool]():                "true or false",
		reflect.TypeFor[int]():                 "a whole number",
		reflect.TypeFor[float64]():             "a number",
		reflect.TypeFor[time.Duration]():       "a duration such as 50ms or 2s",
		reflect.TypeFor[httpapi.ResetHeader](): "delta, epoch or off",
		reflect.TypeFor[slog.Level]():          "debug, info, warn or error",
	}[unread.Type], "usable: "+unread.Err.Error())
}

func parseResetHeader(name string) (any, error) {
	form, known := httpapi.ParseResetHeader(name)
	if !known {
		return nil, errors.New("unknown")
	}
	return form, nil
}

func parseDuration(text string) (any, error) { return time.ParseDuration(text) }
