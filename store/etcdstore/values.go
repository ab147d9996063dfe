package etcdstore

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

var errEndure = errors.New("it hangs on no etcd lease, so that it would never end")

// grant is what the key of a lease holds: no two terms of a group have the same, so that a request which is guarded by
// its value stands on the very term. How long it lasts is the business of the etcd lease that the key hangs on.
type grant struct {
	token          uint64
	replica, nonce string
}

func grantOf(l store.Lease) grant { return grant{token: l.Token, replica: l.Replica, nonce: l.Nonce} }

func (g grant) encode() string {
	return fmt.Sprintf("%s %d %s %s", values.Format, g.token, g.replica, g.nonce)
}

func decodeGrant(data []byte) (g grant, err error) {
	words, err := values.Decode(data, 3)
	if err == nil && len(words) > 3 {
		err = values.ErrFormat
	}
	if err != nil {
		return g, err
	}
	if g.token, err = values.Number(words[0]); err == nil && store.CheckName("replica", words[1]) != nil {
		err = values.ErrFormat
	}
	g.replica, g.nonce = words[1], words[2]
	return g, err
}

// presence is what the key of a session holds: the seconds of the etcd lease that it hangs on, and, on a line of its own,
// what the replica says about itself.
type presence struct {
	seconds int64
	info    []byte
}

func (p presence) encode() string { return fmt.Sprintf("%s %d\n%s", values.Format, p.seconds, p.info) }

func decodePresence(data []byte) (p presence, err error) {
	line, info, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return p, values.ErrFormat
	}
	words, err := values.Decode(line, 1)
	if err != nil {
		return p, err
	}
	seconds, err := values.Number(words[0])
	return presence{seconds: int64(seconds), info: info}, err
}

// foreign says that a key of ours holds what no store has put there.
func foreign(key string, err error) error {
	return store.Permanent(fmt.Sprintf("etcdstore: %s cannot be read: find out who writes there, or use the version of this "+
		"program that has written it", key), err)
}
