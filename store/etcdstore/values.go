package etcdstore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// What keys hold is words with a blank between them; the first is the version of the format.
const format = "1"

var (
	errFormat = errors.New("it is not of a form that this version writes")
	errEndure = errors.New("it hangs on no etcd lease, so that it would never end")
)

// remembered is how many nonces released last a group remembers.
const remembered = 32

// fence is what the key of that name holds. It changes with each grant and each release, so that whatever is guarded by
// its revision stands on the lease it has seen.
type fence struct {
	token    uint64   // the last one given
	released []string // nonces, the last first
}

func (f fence) encode() string {
	return strings.Join(append([]string{format, strconv.FormatUint(f.token, 10)}, f.released...), " ")
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

// grant is what the key of a lease holds: no two terms of a group have the same, so that a request which is guarded by
// its value stands on the very term. How long it lasts is the business of the etcd lease that the key hangs on.
type grant struct {
	token          uint64
	replica, nonce string
}

func grantOf(l store.Lease) grant { return grant{token: l.Token, replica: l.Replica, nonce: l.Nonce} }

func (g grant) encode() string {
	return fmt.Sprintf("%s %d %s %s", format, g.token, g.replica, g.nonce)
}

func decodeGrant(data []byte) (g grant, err error) {
	words, err := decode(data, 3)
	if err == nil && len(words) > 3 {
		err = errFormat
	}
	if err != nil {
		return g, err
	}
	if g.token, err = number(words[0]); err == nil && store.CheckName("replica", words[1]) != nil {
		err = errFormat
	}
	g.replica, g.nonce = words[1], words[2]
	return g, err
}

// position is what the key of the ledger holds.
type position struct{ token, number uint64 }

func (p position) encode() string { return fmt.Sprintf("%s %d %d", format, p.token, p.number) }

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

// presence is what the key of a session holds: the seconds of the etcd lease that it hangs on, and, on a line of its own,
// what the replica says about itself.
type presence struct {
	seconds int64
	info    []byte
}

func (p presence) encode() string { return fmt.Sprintf("%s %d\n%s", format, p.seconds, p.info) }

func decodePresence(data []byte) (p presence, err error) {
	line, info, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return p, errFormat
	}
	words, err := decode(line, 1)
	if err != nil {
		return p, err
	}
	seconds, err := number(words[0])
	return presence{seconds: int64(seconds), info: info}, err
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

// foreign says that a key of ours holds what no store has put there.
func foreign(key string, err error) error {
	return store.Permanent(fmt.Sprintf("etcdstore: %s cannot be read: find out who writes there, or use the version of this "+
		"program that has written it", key), err)
}
