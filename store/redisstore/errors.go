package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

// class is what to do about an error.
type class int

const (
	transient class = iota // ask again
	alarming               // ask again, and tell a person
	permanent              // asking again does not help
)

// kinds are the errors of servers, by a word or phrase that stands in their text: at the start, or, where a script was
// refused a command, further on. The first that matches counts.
var kinds = []struct {
	sign   string
	class  class
	remedy string
}{
	{"READONLY", transient, ""},    // a replica: a failover is under way, or the address is wrong
	{"LOADING", transient, ""},     // the server reads its data
	{"MASTERDOWN", transient, ""},  // a replica without its primary
	{"CLUSTERDOWN", transient, ""}, // no owner for some slots
	{"TRYAGAIN", transient, ""},    // a slot is moving
	{"MOVED", transient, ""},
	{"ASK", transient, ""},
	{"BUSY", transient, ""},       // somebody's script runs long
	{"UNKILLABLE", transient, ""}, // and has written
	{"NOREPLICAS", transient, ""}, // min-replicas-to-write
	{"NOSCRIPT", transient, ""},   // flushed between EVALSHA and EVAL
	{"max number of clients reached", transient, ""},
	{"OOM", alarming, "the Redis server is out of memory: raise its maxmemory or remove what fills it"},
	{"MISCONF", alarming, "the Redis server cannot write to its disk: free space there and look at its log"},
	{"NOAUTH", permanent, noPassword},
	{"unauthenticated multibulk length", permanent, noPassword}, // how a request of many parts is refused
	{"WRONGPASS", permanent, "the Redis server refuses user and password: set those that it knows"},
	{"invalid password", permanent, "the Redis server refuses the password: set the one that it knows"},
	{"without any password configured", permanent, needlessPassword},
	{"no password is set", permanent, needlessPassword},
	{"NOPERM", permanent, noPermission},
	{"executing the script can't", permanent, noPermission},
	{"CROSSSLOT", permanent, "the keys of a group must share one hash slot: let nothing on the way to the server rewrite keys"},
	{"WRONGTYPE", permanent, "another program uses a key of ours: give one of the two another prefix, or delete the key"},
	{"NOTOKEN", permanent, "no honest clock uses up the tokens: delete the fence key and look for what has set it so high"},
	{"unknown command", permanent, tooOld},
	{"Unknown Redis command", permanent, tooOld},
	{"DB index is out of range", permanent, "the Redis server has no database of that number: use another"},
	{"SELECT is not allowed in cluster mode", permanent, "a Redis Cluster has database 0 only: use it"},
}

const (
	noPassword       = "the Redis server wants a password: set one in the client's options or the URL"
	needlessPassword = "the Redis server has no password: set none in the client's options or the URL"
	noPermission     = "the Redis user lacks a permission: grant what singleton doctor names, or all that package redisstore documents"
	tooOld           = "the Redis server lacks a command: use Redis 6.2 or later or Valkey 7.2 or later, and rename no command"
)

// classify returns what to do about an error's text. It looks for whole words, with the hyphen before them that older
// servers put there.
func classify(text string) (class, string) {
	for _, k := range kinds {
		for rest := text; ; {
			i := strings.Index(rest, k.sign)
			if i < 0 {
				break
			}
			end := i + len(k.sign)
			begins := i == 0 || strings.IndexByte(" -:", rest[i-1]) >= 0
			ends := end == len(rest) || strings.IndexByte(" .,'`", rest[end]) >= 0
			if begins && ends {
				return k.class, k.remedy
			}
			rest = rest[end:]
		}
	}
	return transient, ""
}

// judge turns the error of a method into what the contract wants, and logs once what a person should see. A nil error
// ends the spell.
func (s *Store) judge(ctx context.Context, method string, err error) error {
	if err == nil {
		s.spells.End(method)
		return nil
	}
	if errors.Is(err, store.ErrPermanent) {
		return err
	}
	if errors.Is(err, redis.ErrClosed) && !s.ours() { // one of ours is closed when another server takes its place
		return store.Permanent("redisstore: the Redis client has been closed: close it after everything that uses it", err)
	}
	err = wrap(method, err)
	what, remedy := classify(err.Error())
	switch what {
	case permanent:
		return store.Permanent(remedy, err)
	case alarming:
		s.spells.Alarm(ctx, s.log, method, err, remedy)
	}
	return err
}

// wrap names the method, and cuts off what a server repeats of the arguments: a nonce or a password may be among them.
func wrap(method string, err error) error {
	if err == nil {
		return nil
	}
	if text, _, repeats := strings.Cut(err.Error(), ", with args beginning with"); repeats {
		err = errors.New(text)
	}
	return fmt.Errorf("redisstore: %s: %w", method, err)
}
