package redisclient

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Class is what to do about an error.
type Class int

const (
	Transient Class = iota // ask again
	Alarming               // ask again, and tell a person
	Permanent              // asking again does not help
)

// kinds are the errors of servers, by a word or phrase that stands in their text: at the start, or, where a script was
// refused a command, further on. The first that matches counts.
var kinds = []struct {
	sign   string
	class  Class
	remedy string
}{
	{"READONLY", Transient, ""},    // a replica: a failover is under way, or the address is wrong
	{"LOADING", Transient, ""},     // the server reads its data
	{"MASTERDOWN", Transient, ""},  // a replica without its primary
	{"CLUSTERDOWN", Transient, ""}, // no owner for some slots
	{"TRYAGAIN", Transient, ""},    // a slot is moving
	{"MOVED", Transient, ""},
	{"ASK", Transient, ""},
	{"BUSY", Transient, ""},       // somebody's script runs long
	{"UNKILLABLE", Transient, ""}, // and has written
	{"NOREPLICAS", Transient, ""}, // min-replicas-to-write
	{"NOSCRIPT", Transient, ""},   // flushed between EVALSHA and EVAL
	{"max number of clients reached", Transient, ""},
	{"OOM", Alarming, "the Redis server is out of memory: raise its maxmemory or remove what fills it"},
	{"MISCONF", Alarming, "the Redis server cannot write to its disk: free space there and look at its log"},
	{"NOAUTH", Permanent, noPassword},
	{"unauthenticated multibulk length", Permanent, noPassword}, // how a request of many parts is refused
	{"WRONGPASS", Permanent, "the Redis server refuses user and password: set those that it knows"},
	{"invalid password", Permanent, "the Redis server refuses the password: set the one that it knows"},
	{"without any password configured", Permanent, needlessPassword},
	{"no password is set", Permanent, needlessPassword},
	{"run the 'select' command", Permanent, "the Redis user may not choose a database: grant +select, or use database 0"},
	{"NOPERM", Permanent, noPermission},
	{"executing the script can't", Permanent, noPermission},
	{"CROSSSLOT", Permanent, "the keys of a group must share one hash slot: let nothing on the way to the server rewrite keys"},
	{"WRONGTYPE", Permanent, "another program uses a key of ours: give one of the two another prefix, or delete the key"},
	{"NOTOKEN", Permanent, "no honest clock uses up the tokens: delete the fence key and look for what has set it so high"},
	{"unknown command", Permanent, TooOld},
	{"Unknown Redis command", Permanent, TooOld},
	{"DB index is out of range", Permanent, "the Redis server has no database of that number: use another"},
	{"SELECT is not allowed in cluster mode", Permanent, "a Redis Cluster has database 0 only: use it"},
}

// TooOld is the remedy for a server that lacks a command.
const TooOld = "the Redis server lacks a command: use Redis 6.2 or later or Valkey 7.2 or later, and rename no command"

const (
	noPassword       = "the Redis server wants a password: set one in the client's options or the URL"
	needlessPassword = "the Redis server has no password: set none in the client's options or the URL"
	noPermission     = "the Redis user lacks a permission: grant what singleton doctor names, or all that package redisstore documents"
)

// Classify returns what to do about an error's text. It looks for whole words, with the hyphen before them that older
// servers put there.
func Classify(text string) (Class, string) {
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
	return Transient, ""
}

// Refused tells whether the server has answered that it does not do this, for us or at all.
func Refused(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	return answered
}

// Discreet cuts off what a server repeats of the arguments: a nonce or a password may be among them.
func Discreet(err error) error {
	if text, _, repeats := strings.Cut(err.Error(), ", with args beginning with"); repeats {
		return errors.New(text)
	}
	return err
}
