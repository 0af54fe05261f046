package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// policyVersion is a version of a policy as the service answers it.
type policyVersion struct {
	ID          string    `json:"id"`
	Version     int       `json:"version"`
	InstalledAt time.Time `json:"installedAt"`
	Per         []string  `json:"per"`
	Limit       limit     `json:"limit"`
	Mode        string    `json:"mode"`
	Durability  string    `json:"durability"`
	Deleted     bool      `json:"deleted"`
	Warnings    []fault   `json:"warnings"`

	// Of a change that was waited for.
	Installed  *bool             `json:"installed"`
	WaitingFor []waitingInstance `json:"waitingFor"`

	raw json.RawMessage // the whole answer, as it came
}

// waitingInstance is an instance that has not confirmed a change in time.
type waitingInstance struct {
	Instance string    `json:"instance"`
	Name     string    `json:"name"`
	SeenAt   time.Time `json:"seenAt"`
}

// limit is a policy's limit, of whatever algorithm.
type limit struct {
	Algorithm     string      `json:"algorithm"`
	Capacity      json.Number `json:"capacity"`
	RefillTokens  json.Number `json:"refillTokens"`
	RefillSeconds json.Number `json:"refillSeconds"`
	Limit         json.Number `json:"limit"`
	WindowSeconds json.Number `json:"windowSeconds"`
	TTLSeconds    json.Number `json:"ttlSeconds"`
	Strict        bool        `json:"strict"`
}

// String says a limit in a few words.
func (l limit) String() string {
	switch {
	case l.WindowSeconds != "" && l.Strict:
		return fmt.Sprintf("%s in %s s, strict", l.Limit, l.WindowSeconds)
	case l.WindowSeconds != "":
		return fmt.Sprintf("%s in %s s", l.Limit, l.WindowSeconds)
	case l.TTLSeconds != "":
		return fmt.Sprintf("%s at a time, %s s each", l.Limit, l.TTLSeconds)
	default:
		return fmt.Sprintf("%s, %s every %s s", l.Capacity, l.RefillTokens, l.RefillSeconds)
	}
}

// fault is one thing said of one member.
type fault struct {
	Name    string `json:"name,omitempty"` // of a warning
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// String says a warning in one line.
func (f fault) String() string {
	if f.Name == "" {
		return f.Pointer + " " + f.Detail
	}
	return f.Name + ": " + f.Pointer + " " + f.Detail
}

// readPolicyVersion reads one version.
func readPolicyVersion(raw []byte) (policyVersion, error) {
	version := policyVersion{raw: bytes.TrimSpace(raw)}
	if err := json.Unmarshal(raw, &version); err != nil {
		return policyVersion{}, fmt.Errorf("read the service's answer: %w", err)
	}
	return version, nil
}

// member is a name and value of a JSON object.
type member struct{ name, text string }

// editObject gives a JSON object, indented, without the members named and with
// one more at its end. Everything else stays as it is written.
func editObject(object []byte, without []string, more ...member) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	var edited bytes.Buffer
	encoder := jsontext.NewEncoder(&edited, jsontext.WithIndent("  "))
	if decoder.PeekKind() != jsontext.KindBeginObject {
		return nil, errors.New("not a JSON object")
	}
	begin, err := decoder.ReadToken()
	if err == nil {
		err = encoder.WriteToken(begin)
	}
	for err == nil && decoder.PeekKind() != jsontext.KindEndObject {
		err = copyMember(encoder, decoder, without)
	}
	for _, one := range more {
		err = errors.Join(err, encoder.WriteToken(jsontext.String(one.name)), encoder.WriteToken(jsontext.String(one.text)))
	}
	if err == nil {
		_, err = decoder.ReadToken()
	}
	if err = errors.Join(err, encoder.WriteToken(jsontext.EndObject)); err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return edited.Bytes(), nil
}

func copyMember(encoder *jsontext.Encoder, decoder *jsontext.Decoder, without []string) error {
	name, err := decoder.ReadToken()
	if err != nil {
		return err
	}
	if slices.Contains(without, name.String()) {
		return decoder.SkipValue()
	}
	if err := encoder.WriteToken(name); err != nil {
		return err
	}
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	return encoder.WriteValue(value)
}
