package zkstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// What znodes hold is words with a blank between them; the first is the version of the format.
const format = "1"

var errFormat = errors.New("it is not of a form that this version writes")

// remembered is how many nonces released last a group remembers.
const remembered = 32

// fence is what the znode of that name holds. It changes with each grant and each release, so that whatever checks its
// version stands on the lease it has seen.
type fence struct {
	token    uint64   // the last one given
	released []string // nonces, the last first
}

func (f fence) encode() []byte {
	return []byte(strings.Join(append([]string{format, strconv.FormatUint(f.token, 10)}, f.released...), " "))
}

func decodeFence(data []byte) (f fence, err error) {
	words, err := decode(data, 1)
	if err != nil {
		return f, err
	}
	f.token, err = number(words[0])
	f.released = words[1:]
	return f, err
}

// release remembers a nonce.
func (f fence) release(nonce string) fence {
	f.released = slices.Insert(slices.Clone(f.released), 0, nonce)
	f.released = f.released[:min(len(f.released), remembered)]
	return f
}

// grant is what the znode of a lease holds.
type grant struct {
	token          uint64
	replica, nonce string
	ttl            time.Duration
	owner          int64 // the ZooKeeper session that it ends with
}

func (g grant) encode() []byte {
	return fmt.Appendf(nil, "%s %d %s %s %d", format, g.token, g.replica, g.nonce, g.ttl.Milliseconds())
}

func decodeGrant(data []byte) (g grant, err error) {
	words, err := decode(data, 4)
	if err != nil {
		return g, err
	}
	ms, wrong := number(words[3])
	if g.token, err = number(words[0]); err == nil {
		err = wrong
	}
	if err == nil && store.CheckName("replica", words[1]) != nil {
		err = errFormat
	}
	g.replica, g.nonce, g.ttl = words[1], words[2], time.Duration(ms)*time.Millisecond
	if g.ttl > store.MaxDuration {
		err = errFormat
	}
	return g, err
}

// of tells whether l names this lease; the token is compared where it is known.
func (g grant) of(l store.Lease) bool {
	return g.replica == l.Replica && g.nonce == l.Nonce && (l.Token == 0 || g.token == l.Token)
}

// position is what the znode of the ledger holds.
type position struct{ token, number uint64 }

func (p position) encode() []byte { return fmt.Appendf(nil, "%s %d %d", format, p.token, p.number) }

func decodePosition(data []byte) (p position, err error) {
	words, err := decode(data, 2)
	if err != nil {
		return p, err
	}
	if p.token, err = number(words[0]); err == nil {
		p.number, err = number(words[1])
	}
	return p, err
}

// decode returns the words after the version, of which there must be n at least.
func decode(data []byte, n int) ([]string, error) {
	words := strings.Fields(string(data))
	if len(words) < n+1 || words[0] != format {
		return nil, errFormat
	}
	return words[1:], nil
}

func number(word string) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil || n > store.MaxToken {
		return 0, errFormat
	}
	return n, nil
}

// foreign says that a znode of ours holds what no store has put there.
func foreign(path string, err error) error {
	return store.Permanent(fmt.Sprintf("zkstore: %s cannot be read: find out who writes there, or use the version of this "+
		"program that has written it", path), err)
}
