// Summary reads the events of `go test -json` from its input and prints what a
// reader of a CI log wants: each package's closing line, the whole output of
// what failed, every skipped test with its reason, and the counts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

const lineBytesMax = 16 << 20 // a test that prints a larger line has other troubles

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, lineBytesMax)
	outputs := map[[2]string]*strings.Builder{} // by package and test, until it ended
	counts := map[string]int{}
	for input.Scan() {
		var e event
		if json.Unmarshal(input.Bytes(), &e) != nil {
			fmt.Println(input.Text()) // what the go command itself has to say
			continue
		}
		id := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "output" && e.Test == "", e.Action == "build-output":
			if e.Output != "PASS\n" {
				fmt.Print(e.Output)
			}
		case e.Action == "output":
			if outputs[id] == nil {
				outputs[id] = new(strings.Builder)
			}
			outputs[id].WriteString(e.Output)
		case e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			counts[e.Action]++
			report(e, outputs[id])
			delete(outputs, id)
		}
	}
	if err := input.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
	for id, output := range outputs { // a panic or a time-out leaves tests without an end
		fmt.Printf("UNFINISHED %s %s\n%s", id[0], id[1], output)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", counts["pass"], counts["fail"], counts["skip"])
	if counts["fail"] > 0 || len(outputs) > 0 {
		os.Exit(1)
	}
}

// report prints a failed test's output, and a skipped one's reason.
func report(e event, output *strings.Builder) {
	if output == nil {
		return
	}
	switch e.Action {
	case "fail":
		fmt.Print(output)
	case "skip":
		var reason []string
		for line := range strings.Lines(output.String()) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
				reason = append(reason, line)
			}
		}
		fmt.Printf("SKIP %s %s: %s\n", e.Package, e.Test, strings.Join(reason, " "))
	}
}
