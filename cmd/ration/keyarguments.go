package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// keyArguments are those of a command that speaks of one key: NAME=VALUE, by
// the names that requests use.
const keyArguments = "NAME=VALUE…"

// keyHelp explains them.
const keyHelp = "A key is named by the attributes of its policy's `per`, as requests have them: verifiedAccount=A operation=search."

// readKey reads the attributes that name a key. Which of them it takes is for
// the service to say.
func readKey(arguments []string) (url.Values, error) {
	key := url.Values{}
	for _, argument := range arguments {
		name, value, ok := strings.Cut(argument, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("%q is not NAME=VALUE, such as verifiedAccount=A", argument)}
		}
		key.Add(name, value)
	}
	return key, nil
}

// keyText names a key in a line.
func keyText(attributes map[string]string) string {
	var parts []string
	for name, value := range attributes {
		parts = append(parts, name+"="+oneLine(value))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
