// Package values is what the keys of a group hold on stores that keep one value for each, etcd and ZooKeeper: words with a
// blank between them, of which the first is the version of the format.
package values

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// Format is the version that is written, and the only one that is read.
const Format = "1"

// Remembered is how many nonces released last a group remembers.
const Remembered = 32

// ErrFormat says that a value is not one of these.
var ErrFormat = errors.New("it is not of a form that this version writes")

// Fence is what the key of that name holds. It changes with each grant and each release, so that whatever is guarded by the
// key's version stands on the lease it has seen.
type Fence struct {
	Token    uint64   // the last one given
	Released []string // nonces, the last first
}

// Encode returns the value.
func (f Fence) Encode() string {
	return strings.Join(append([]string{Format, strconv.FormatUint(f.Token, 10)}, f.Released...), " ")
}

// DecodeFence reads what Encode has written.
func DecodeFence(data []byte) (f Fence, err error) {
	words, err := Decode(data, 1)
	if err != nil {
		return f, err
	}
	f.Token, err = Number(words[0])
	f.Released = words[1:]
	return f, err
}

// Release returns the fence that remembers a nonce, too.
func (f Fence) Release(nonce string) Fence {
	f.Released = slices.Insert(slices.Clone(f.Released), 0, nonce)
	f.Released = f.Released[:min(len(f.Released), Remembered)]
	return f
}

// Position is what the key of the ledger holds.
type Position struct{ Token, Number uint64 }

// Encode returns the value.
func (p Position) Encode() string { return fmt.Sprintf("%s %d %d", Format, p.Token, p.Number) }

// DecodePosition reads what Encode has written.
func DecodePosition(data []byte) (p Position, err error) {
	words, err := Decode(data, 2)
	if err != nil {
		return p, err
	}
	if p.Token, err = Number(words[0]); err == nil {
		p.Number, err = Number(words[1])
	}
	return p, err
}

// Decode returns the words after the version, of which there must be n at least.
func Decode(data []byte, n int) ([]string, error) {
	words := strings.Fields(string(data))
	if len(words) < n+1 || words[0] != Format {
		return nil, ErrFormat
	}
	return words[1:], nil
}

// Number reads a word that is a number, of a token's size at most.
func Number(word string) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil || n > store.MaxToken {
		return 0, ErrFormat
	}
	return n, nil
}
