package zkstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

var errEndure = errors.New("it belongs to no ZooKeeper session, so that it would never end")

// grant is what the znode of a lease holds.
type grant struct {
	token          uint64
	replica, nonce string
	ttl            time.Duration
	owner          int64 // the ZooKeeper session that it ends with
}

func (g grant) encode() []byte {
	return fmt.Appendf(nil, "%s %d %s %s %d", values.Format, g.token, g.replica, g.nonce, g.ttl.Milliseconds())
}

func decodeGrant(data []byte) (g grant, err error) {
	words, err := values.Decode(data, 4)
	if err != nil {
		return g, err
	}
	ms, wrong := values.Number(words[3])
	if g.token, err = values.Number(words[0]); err == nil {
		err = wrong
	}
	if err == nil && store.CheckName("replica", words[1]) != nil {
		err = values.ErrFormat
	}
	g.replica, g.nonce, g.ttl = words[1], words[2], time.Duration(ms)*time.Millisecond
	if g.ttl > store.MaxDuration {
		err = values.ErrFormat
	}
	return g, err
}

// leaseOf decodes what the znode of a lease holds, which must end with a ZooKeeper session.
func leaseOf(path string, data []byte, stat *zk.Stat) (g grant, err error) {
	if stat.EphemeralOwner == 0 {
		return g, foreign(path, errEndure)
	}
	if g, err = decodeGrant(data); err != nil {
		return g, foreign(path, err)
	}
	g.owner = stat.EphemeralOwner
	return g, nil
}

// of tells whether l names this lease; the token is compared where it is known.
func (g grant) of(l store.Lease) bool {
	return g.replica == l.Replica && g.nonce == l.Nonce && (l.Token == 0 || g.token == l.Token)
}

// foreign says that a znode of ours holds what no store has put there.
func foreign(path string, err error) error {
	return store.Permanent(fmt.Sprintf("zkstore: %s cannot be read: find out who writes there, or use the version of this "+
		"program that has written it", path), err)
}
