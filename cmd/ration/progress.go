package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	progressAfter = time.Second            // what takes less needs no bar
	progressEvery = 100 * time.Millisecond // as often as an eye sees
	progressWidth = 40                     // characters of the bar
)

// progress is a file that is read, with a bar on a terminal for those who wait
// for its end.
type progress struct {
	io.Reader

	file    *os.File
	to      io.Writer // nil: nobody watches
	size    int64
	read    int64
	next    time.Time // when the bar is drawn
	drawing bool
}

// newProgress shows how far a file is read on a terminal; on anything else it
// shows nothing.
func newProgress(file *os.File, to io.Writer) *progress {
	p := &progress{Reader: file, file: file}
	if size, err := file.Stat(); err == nil && size.Size() > 0 && isTerminal(to) {
		p.to, p.size, p.next = to, size.Size(), time.Now().Add(progressAfter)
	}
	return p
}

// Read reads on, and draws the bar at times.
func (p *progress) Read(into []byte) (int, error) {
	n, err := p.Reader.Read(into)
	p.read += int64(n)
	if p.to != nil && time.Now().After(p.next) {
		p.draw()
		p.next = time.Now().Add(progressEvery)
	}
	return n, err
}

func (p *progress) draw() {
	share := min(1, float64(p.read)/float64(p.size))
	full := int(share * progressWidth)
	fmt.Fprintf(p.to, "\r[%s%s] %3.0f%%", strings.Repeat("=", full), strings.Repeat(" ", progressWidth-full), 100*share)
	p.drawing = true
}

// done takes the bar away.
func (p *progress) done() {
	if p.drawing {
		fmt.Fprint(p.to, "\r\x1b[K")
		p.drawing = false
	}
}

// Close closes the file.
func (p *progress) Close() error {
	if p.file == nil {
		return nil // standard input is its owner's
	}
	return p.file.Close()
}
