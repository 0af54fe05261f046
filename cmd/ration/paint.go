package main

import "os"

// painter colours text on a terminal and leaves it alone elsewhere.
type painter struct{ on bool }

// painter is the one for standard output; NO_COLOR turns it off.
func (p *program) painter() painter {
	_, plain := p.environment["NO_COLOR"]
	return painter{on: !plain && isTerminal(p.out)}
}

// isTerminal says whether what is read or written is a person's. The null
// device is a character device, too, and nobody's.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func (p painter) gone(text string) string   { return p.paint("31", text) } // red
func (p painter) added(text string) string  { return p.paint("32", text) } // green
func (p painter) strong(text string) string { return p.paint("1", text) }  // bold

func (p painter) paint(code, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
