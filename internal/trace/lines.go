package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// lineBytesMax bounds a line: more than any server logs of one request.
const lineBytesMax = 64 << 10

// errLong is for a line that is not read.
var errLong = fmt.Errorf("is longer than %d bytes", lineBytesMax)

// lines reads a text line by line in bounded memory, gzip or not.
type lines struct {
	reader *bufio.Reader
	number int // of the line read last, from 1
}

func newLines(input io.Reader) (*lines, error) {
	reader := bufio.NewReaderSize(input, lineBytesMax)
	if magic, _ := reader.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(reader)
		if err != nil {
			return nil, fmt.Errorf("unpack the trace: %w", err)
		}
		reader = bufio.NewReaderSize(unpacked, lineBytesMax)
	}
	if mark, _ := reader.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = reader.Discard(len(mark)) // it has just been there
	}
	return &lines{reader: reader}, nil
}

// next gives the next line that is not blank, without its end; [io.EOF] behind
// the last, and errLong for one that is passed over.
func (l *lines) next() (string, error) {
	for {
		line, err := l.reader.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			return "", readError(err)
		}
		l.number++
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", l.passOver()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", readError(err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			return string(line), nil
		}
	}
}

// passOver reads to the end of a line that is too long.
func (l *lines) passOver() error {
	for {
		switch _, err := l.reader.ReadSlice('\n'); {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return errLong
		default:
			return readError(err)
		}
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("read the trace: %w", err)
}
