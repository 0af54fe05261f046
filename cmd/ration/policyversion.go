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

	"github.com/rationhq/ration/policy"
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
	ModeInForce string    `json:"modeInForce"` // where a kill switch makes it another than Mode
	Deleted     bool      `json:"deleted"`
	Warnings    []fault   `json:"warnings"`

	// Of a change that was waited for.
	Installed  *bool             `json:"installed"`
	WaitingFor []waitingInstance `json:"waitingFor"`

	raw json.RawMessage // the whole answer, as it came
}

// notPutMembers are those that the service adds to the content of a version in
// force, and that a put does not take.
var notPutMembers = []string{"id", "version", "installedAt", "modeInForce"}

// mode says what the policy does now.
func (v *policyVersion) mode() string {
	switch {
	case v.Deleted:
		return "deleted"
	case v.ModeInForce != "":
		return v.ModeInForce + " (kill switch)"
	}
	return v.Mode
}

// waitingInstance is an instance that has not confirmed a change in time.
type waitingInstance struct {
	Instance string    `json:"instance"`
	Name     string    `json:"name"`
	SeenAt   time.Time `json:"seenAt"`
}

// limit is a policy's limit as the service answers it.
type limit struct{ policy.Limit }

// UnmarshalJSON implements [json.Unmarshaler].
func (l *limit) UnmarshalJSON(stored []byte) error {
	read, err := policy.ParseLimit(stored)
	if err == nil {
		l.Limit = *read
	}
	return err
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
