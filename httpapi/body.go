package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/rationhq/ration/policy"
)

// Bounds of request bodies, in bytes.
const (
	decisionBytesMax = 16 << 10 // every member at its longest fits several times
	batchBytesMax    = 1 << 20  // 1,000 items of a kilobyte
)

// PolicyBytesMax bounds the body of a policy's change, in bytes: some thousand
// names in a match.
const PolicyBytesMax = 64 << 10

// readJSON reads a JSON body of at most bytesMax into buffer, which it may
// grow, and gives the bytes read. Errors: unsupported-media-type,
// content-too-large, invalid-request when the body ends early.
func readJSON(r *http.Request, buffer []byte, bytesMax int64) ([]byte, error) {
	if err := checkJSON(r.Header); err != nil {
		return buffer, err
	}
	if r.ContentLength > bytesMax {
		return buffer, tooLarge(bytesMax)
	}
	body, err := readAll(io.LimitReader(r.Body, bytesMax+1), buffer[:0])
	if int64(len(body)) > bytesMax {
		return body, tooLarge(bytesMax)
	}
	if err != nil {
		failure := policy.Invalid(policy.ReasonInvalidRequest, "The body could not be read to its end.")
		failure.Cause = err
		return body, failure
	}
	return body, nil
}

// readBody reads what a request of an operator that has no parameters says in
// its body. Errors: those of readJSON, and of parse.
func readBody[T any](r *http.Request, parse func(body []byte) (*T, error)) (*T, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	body, err := readJSON(r, nil, decisionBytesMax)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

func tooLarge(bytesMax int64) error {
	return &policy.Error{
		Code: policy.CodeInvalid, Reason: reasonContentTooLarge,
		Detail: fmt.Sprintf("The body is longer than %d bytes.", bytesMax),
	}
}

// readAll is io.ReadAll into a buffer that is kept for the next request.
func readAll(from io.Reader, buffer []byte) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if errors.Is(err, io.EOF) {
			return buffer, nil
		}
		if err != nil {
			return buffer, err
		}
	}
}

// checkJSON wants exactly one content type, application/json in UTF-8, and no
// content coding: a body that is something else is not guessed at.
func checkJSON(header http.Header) error {
	types := header["Content-Type"]
	if len(types) != 1 || !isJSON(types[0]) {
		return &policy.Error{
			Code: policy.CodeInvalid, Reason: reasonUnsupportedMediaType,
			Detail: "The content type must be application/json.",
		}
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &policy.Error{
			Code: policy.CodeInvalid, Reason: reasonUnsupportedMediaType,
			Detail: "The body must come without a content coding.",
		}
	}
	return nil
}

// isJSON says whether a content type is JSON in UTF-8, which is the only
// encoding JSON has between systems.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return false
	}
	for name, value := range parameters {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}
