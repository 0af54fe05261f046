package trace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rationhq/ration/policy"
)

// What a column can be beside an attribute.
const (
	timeColumn = "time"
	costColumn = "cost"
)

// csv reads lines of values divided by commas. A value in quotes may hold a
// comma and doubled quotes, and ends on its line.
type csv struct {
	time    TimeForm
	columns []column
	values  []string
}

// column is what one column of the file is; nil: nothing of a request.
type column func(value string, into *Record) error

// CSV reads a file of comma-separated values whose first line names the
// columns. columns says what a column is: an attribute by its name in policies
// or requests, time or cost. Columns that bear such a name themselves need not
// be in it. An empty value is none.
func CSV(input io.Reader, columns map[string]string, form TimeForm, defaults Defaults) (*Reader, error) {
	r, err := open(input, defaults)
	if err != nil {
		return nil, err
	}
	header, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the trace is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("the first line %w", err)
	}
	layout := &csv{time: form}
	r.layout = layout
	return r, layout.readHeader(header, columns)
}

// readHeader finds out what each column is.
func (c *csv) readHeader(line string, meanings map[string]string) error {
	names, err := splitCSV(line, nil)
	if err != nil {
		return fmt.Errorf("the first line %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no column %q; the first line names %s", name, strings.Join(names, ", "))
		}
	}
	from := map[string]string{} // columns by what they are
	for _, name := range names {
		meaning, said := meanings[name]
		if !said {
			meaning = name
		}
		read := c.column(&meaning)
		switch {
		case read == nil && said:
			return fmt.Errorf("column %q cannot be %q: it is time, cost or an attribute of a request", name, meaning)
		case read != nil && from[meaning] != "":
			return fmt.Errorf("columns %q and %q are both %s", from[meaning], name, meaning)
		case read != nil:
			from[meaning] = name
		}
		c.columns = append(c.columns, read)
	}
	if from[timeColumn] == "" {
		return fmt.Errorf("no column is the time; the first line names %s", strings.Join(names, ", "))
	}
	return nil
}

// column gives how a column is read by what it is, nil where it is nothing.
func (c *csv) column(meaning *string) column {
	switch *meaning {
	case timeColumn:
		return func(value string, into *Record) (err error) {
			into.AtMicros, err = c.time.parse(value)
			return err
		}
	case costColumn:
		return readCost
	}
	attribute, known := attributeOf(*meaning)
	if !known {
		return nil
	}
	*meaning = attribute.String()
	return func(value string, into *Record) (err error) {
		if into.Request.Values[attribute], err = policy.CanonicalValue(attribute, value); err != nil {
			return fmt.Errorf("has the %s %q, which %w", attribute, value, err)
		}
		return nil
	}
}

func readCost(value string, into *Record) error {
	cost, err := strconv.ParseInt(value, 10, 64)
	if err != nil || cost < 1 || cost > policy.CostMax {
		return fmt.Errorf("has the cost %q, which is no whole number from 1", value)
	}
	into.Request.Cost = cost
	return nil
}

func (c *csv) read(line string, into *Record) (err error) {
	if c.values, err = splitCSV(line, c.values[:0]); err != nil {
		return err
	}
	if len(c.values) != len(c.columns) {
		return fmt.Errorf("has %d columns, and the first line %d", len(c.values), len(c.columns))
	}
	into.AtMicros = -1
	for i, value := range c.values {
		if c.columns[i] != nil && value != "" {
			if err := c.columns[i](value, into); err != nil {
				return err
			}
		}
	}
	if into.AtMicros < 0 {
		return errors.New("has no time")
	}
	return nil
}

// splitCSV appends the values of a line.
func splitCSV(line string, values []string) ([]string, error) {
	for rest, more := line, true; more; {
		if !strings.HasPrefix(rest, `"`) {
			var value string
			value, rest, more = strings.Cut(rest, ",")
			values = append(values, value)
			continue
		}
		end := closingQuote(rest)
		if end < 0 {
			return nil, errors.New("has a quoted value that does not end on it")
		}
		values = append(values, strings.ReplaceAll(rest[1:end], `""`, `"`))
		if rest = rest[end+1:]; rest != "" && rest[0] != ',' {
			return nil, errors.New("has something behind a quoted value")
		}
		rest, more = strings.CutPrefix(rest, ",")
	}
	return values, nil
}

// closingQuote finds the end of a quoted value, -1 when there is none.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			i++ // it stands for a quote
			continue
		}
		return i
	}
	return -1
}
