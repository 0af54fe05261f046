package policy

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a decimal's text. They keep exact arithmetic small: without them
// 1e999999999 would ask math/big for a gigabyte.
const (
	decimalBytesMax    = 40
	decimalExponentMax = 30
)

// Decimal is a number kept exactly as it was written in JSON: 0.1 is one
// tenth. The zero value is the number 0.
type Decimal struct{ text string }

// ParseDecimal reads a number in JSON's notation. It refuses texts of more
// than 40 bytes and exponents beyond 30 either way; the error is worded as the
// Detail of a [Fault].
func ParseDecimal(text string) (Decimal, error) {
	if len(text) > decimalBytesMax {
		return Decimal{}, errors.New("must be written in at most " + strconv.Itoa(decimalBytesMax) + " characters")
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil || exponent > decimalExponentMax || exponent < -decimalExponentMax {
			return Decimal{}, errors.New("must have an exponent from -" + strconv.Itoa(decimalExponentMax) + " to " + strconv.Itoa(decimalExponentMax))
		}
	}
	number := jsontext.Value(text)
	if number.Kind() != jsontext.KindNumber || !number.IsValid() || strings.TrimSpace(text) != text {
		return Decimal{}, errors.New("must be a number")
	}
	return Decimal{text: text}, nil
}

// String gives the number as it was written.
func (d Decimal) String() string {
	if d.text == "" {
		return "0"
	}
	return d.text
}

// Rat gives the number's exact value; the caller may change what he gets.
func (d Decimal) Rat() *big.Rat {
	value, ok := new(big.Rat).SetString(d.String())
	if !ok {
		return new(big.Rat) // not reached: ParseDecimal has checked the notation
	}
	return value
}
