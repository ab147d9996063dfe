package zkstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// errAgain means that the group has changed while a call looked at it.
var errAgain = errors.New("zkstore: the group has changed meanwhile")

// maxPacket is the most that is sent in one request: servers refuse 1 MiB where jute.maxbuffer says nothing else.
const maxPacket = 1_000_000

// What the client knows by their numbers only.
const (
	unimplemented = "unknown error: -6"
	quotaExceeded = "unknown error: -125"
)

const (
	noPermission = "the ZooKeeper user may not do this: set the user and password that the znodes were created with, or give " +
		"this user all permissions on them (setAcl)"
	tooOld = "the ZooKeeper server does not know a request: use ZooKeeper 3.5 or later"
	quota  = "a ZooKeeper quota is used up: raise it (setquota) or remove what fills it"
)

// answers are the errors of the contract that a call gives as they are.
var answers = []error{store.ErrLost, store.ErrNoLeader, store.ErrEnded, store.ErrStale, store.ErrGap, store.ErrTooLarge, store.ErrFull, store.ErrPermanent}

// judge turns the error of a method into what the contract wants, and logs once what a person should see. A nil error
// ends the spell.
func (s *Store) judge(ctx context.Context, method string, err error) error {
	if err == nil {
		s.spells.End(method)
		return nil
	}
	if _, held := errors.AsType[*store.HeldError](err); held {
		s.spells.End(method)
		return err
	}
	for _, a := range answers {
		if errors.Is(err, a) {
			return err
		}
	}
	if errors.Is(err, errClosing) && s.ctx.Err() != nil {
		return errClosed
	}
	err = fmt.Errorf("zkstore: %s: %w", method, err)
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return store.Permanent(noPermission, err)
	case strings.Contains(err.Error(), unimplemented):
		return store.Permanent(tooOld, err)
	case strings.Contains(err.Error(), quotaExceeded):
		s.spells.Alarm(ctx, s.log, method, err, quota)
	}
	return err
}

// clientLog brings what the client says of its connections into the log.
type clientLog struct{ log *slog.Logger }

// Printf implements zk.Logger.
func (l clientLog) Printf(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("zookeeper client", "line", fmt.Sprintf(format, args...))
	}
}
