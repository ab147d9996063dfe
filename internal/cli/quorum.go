package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/redlock"
)

// quorumStore is a store on independent servers, with the clients that it stands on.
type quorumStore struct {
	*redlock.Store
	clients []*redis.Client
}

// ofOneServer are the checks of a single Redis that say something of a node, too.
var ofOneServer = []string{"version", "role", "persistence", "memory", "clock", "latency", "writing"}

// examine returns a line for each server, and what they are together.
func (s *quorumStore) examine(ctx context.Context, group string, lease time.Duration) ([]redisstore.Finding, error) {
	states, err := s.Nodes(ctx, group)
	if err != nil {
		return nil, err
	}
	lines := make([]redisstore.Finding, len(states))
	var all sync.WaitGroup
	for i, st := range states {
		all.Go(func() { lines[i] = s.examineNode(ctx, s.clients[i], st, group, lease) })
	}
	all.Wait()
	found := append([]redisstore.Finding{together(states)}, lines...)
	if group != "" {
		found = append(found, ledger(states, group))
	}
	return found, nil
}

// together says what the servers are, all in all.
func together(states []redlock.NodeState) redisstore.Finding {
	f := redisstore.Finding{Check: "servers", Level: redisstore.LevelOK}
	n, answer := len(states), 0
	runs := map[string]string{}
	for _, st := range states {
		if st.Err == nil {
			answer++
		}
		if other := runs[st.Run]; other != "" && st.Run != "" {
			f.Level, f.Found = redisstore.LevelFail, fmt.Sprintf("%s and %s are one server (run_id %s), which would count twice", other, st.Addr, st.Run)
			f.Remedy = "name each server once"
			return f
		}
		runs[st.Run] = st.Addr
	}
	most := n/2 + 1
	f.Found = fmt.Sprintf("%d of %d answer, and %d must", answer, n, most)
	switch {
	case answer < most:
		f.Level, f.Remedy = redisstore.LevelFail, "nobody can lead until more of them are back: see the lines below"
	case n%2 == 0:
		f.Level, f.Remedy = redisstore.LevelWarn, fmt.Sprintf("%d bear the loss of no more servers than %d: use an odd number", n, n-1)
	}
	return f
}

// ledger says whether enough servers are sure to have all records of a group.
func ledger(states []redlock.NodeState, group string) redisstore.Finding {
	f := redisstore.Finding{Check: "ledger", Level: redisstore.LevelOK}
	n, known, sure := len(states), 0, 0
	for _, st := range states {
		if st.Ledger {
			known++
		}
		if st.Ledger && st.Doubt == "" {
			sure++
		}
	}
	f.Found = fmt.Sprintf("%d of %d are sure to have all records of group %s, and %d must", sure, n, group, n/2+1)
	switch {
	case known == 0:
		f.Found = "there are no records of group " + group
	case sure < n/2+1:
		f.Level, f.Remedy = redisstore.LevelFail, fmt.Sprintf("bring the servers back with their data; while somebody leads he gives the others "+
			"a copy; when the data are gone for good, go on with what is left by singleton doctor --group %s --accept-loss", group)
	case sure < n:
		f.Level, f.Remedy = redisstore.LevelWarn, "the leader gives the others a copy at the next renewal; look again"
	}
	return f
}

// examineNode says in one line how a server is.
func (s *quorumStore) examineNode(ctx context.Context, client *redis.Client, st redlock.NodeState, group string, lease time.Duration) redisstore.Finding {
	l := nodeLine{addr: st.Addr, level: redisstore.LevelOK}
	if st.Err != nil {
		l.bad(redisstore.LevelWarn, "cannot be asked: "+st.Err.Error(), "is it running, and its address right?")
		return l.finding()
	}
	one := redisstore.New(client, &redisstore.Options{Logger: slog.New(slog.DiscardHandler)})
	defer one.Close()
	found, err := one.Check(ctx, "", lease)
	if err != nil {
		l.bad(redisstore.LevelWarn, "cannot be asked: "+err.Error(), "is it overloaded?")
		return l.finding()
	}
	for _, f := range found {
		switch {
		case !slices.Contains(ofOneServer, f.Check):
		case f.Level == redisstore.LevelOK:
			if f.Check == "version" || f.Check == "role" {
				l.good = append(l.good, f.Found)
			}
		default:
			l.bad(f.Level, f.Found, f.Remedy)
		}
	}
	switch {
	case st.Durable:
		l.good = append(l.good, "it loses nothing when it ends")
	case st.Up < lease:
		l.bad(redisstore.LevelWarn, fmt.Sprintf("it restarted %s ago and may have forgotten leases, so that it has no vote on them yet", compact(st.Up.Truncate(time.Second))),
			fmt.Sprintf("wait for another %s, or CONFIG SET appendfsync always, and the same in its configuration file", compact((lease-st.Up).Truncate(time.Second)+time.Second)))
	default:
		l.good = append(l.good, fmt.Sprintf("after a restart it has no vote for %s (appendfsync is not always)", compact(lease)))
	}
	if st.Replicas > 0 {
		l.bad(redisstore.LevelWarn, fmt.Sprintf("it has %d replicas: one that took its place would have forgotten what came last", st.Replicas),
			"let nothing fail over to them")
	}
	switch {
	case group == "":
	case !st.Ledger:
		l.good = append(l.good, "it has no records of group "+group)
	case st.Doubt != "":
		l.bad(redisstore.LevelWarn, "it "+st.Doubt, "the leader gives it a copy at the next renewal")
	default:
		l.good = append(l.good, fmt.Sprintf("it has the records up to commit %d of token %d", st.Number, st.Token))
	}
	return l.finding()
}

// nodeLine is what there is to say about a server.
type nodeLine struct {
	addr           string
	level          redisstore.Level
	good           []string
	wrong, mending []string
}

func (l *nodeLine) bad(level redisstore.Level, found, remedy string) {
	if l.level != redisstore.LevelFail {
		l.level = level
	}
	l.wrong = append(l.wrong, found)
	if remedy != "" {
		l.mending = append(l.mending, remedy)
	}
}

func (l *nodeLine) finding() redisstore.Finding {
	said := l.wrong
	if len(said) == 0 {
		said = l.good
	}
	return redisstore.Finding{Check: "server", Level: l.level, Found: l.addr + ": " + strings.Join(said, "; "), Remedy: strings.Join(l.mending, "; ")}
}
