package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// fewestNodes is how many independent servers a majority of which outlives the loss of one.
const fewestNodes = 3

const wantRedlock = "want redlock://[user:password@]host[:port],host…[/database], three hosts or more, and an odd number of them; " +
	"redlocks in place of redlock for TLS"

// quorum is where the nodes of a Redlock are, as their URL says.
type quorum struct {
	name  string // the URL without password and options
	nodes []*redis.Options
	files secrets
}

// parseRedlock reads the URL of independent servers, and asks nobody. User and password before the first host are for all
// nodes that have none of their own; path and options are for all. Its errors repeat no part of the URL that could be a
// password.
func parseRedlock(raw string) (*quorum, error) {
	bad := func(what string) (*quorum, error) {
		return nil, errors.New("the store's URL " + what + "; " + wantRedlock)
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	if strings.Contains(tail, "min_replicas=") || strings.Contains(tail, "replica_timeout=") {
		return bad("has min_replicas or replica_timeout: nodes of a Redlock have no replicas")
	}
	hosts := strings.Split(authority, ",")
	everybody := hosts[0][:strings.LastIndexByte(hosts[0], '@')+1]
	q := &quorum{}
	var shown []string
	for i, host := range hosts {
		own := host[:strings.LastIndexByte(host, '@')+1]
		switch {
		case host == own:
			return bad("has an empty host")
		case own == "":
			host = everybody + host
		case everybody == "": // a password with a comma in it, most likely
			return bad("has a user or a password before a host that is not the first: give the first one, too, " +
				"and percent-encode special characters, such as a comma as %2C")
		}
		a, err := parseStore(strings.Replace(scheme, "redlock", "redis", 1) + "://" + host + tail)
		if err != nil {
			return bad(problemOf(err))
		}
		q.nodes, q.files = append(q.nodes, a.one), a.files
		_, name, _ := strings.Cut(a.name, "://")
		name, path, _ := strings.Cut(name, "/")
		if i > 0 && own == "" {
			name = name[strings.LastIndexByte(name, '@')+1:]
		}
		if i == len(hosts)-1 && path != "" {
			name += "/" + path
		}
		shown = append(shown, name)
	}
	if len(hosts) < fewestNodes {
		return bad(fmt.Sprintf("names %d hosts, and of fewer than %d independent servers none can be spared", len(hosts), fewestNodes))
	}
	addrs := make(map[string]bool, len(hosts))
	for _, n := range q.nodes {
		addrs[n.Addr] = true
	}
	if len(addrs) < len(hosts) {
		return bad("names a host twice: each must be a server of its own")
	}
	q.name = scheme + "://" + strings.Join(shown, ",")
	return q, nil
}

// problemOf is what a parser of URLs says, without what it wants.
func problemOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "the store's URL ")
	what, _, _ := strings.Cut(text, "; "+wantURL)
	return what
}

// openRedlock is the Opener of "redlock" and "redlocks".
func openRedlock(url string, _ time.Duration, log *slog.Logger) (store.Store, string, error) {
	q, err := parseRedlock(url)
	if err == nil {
		err = q.files.check()
	}
	if err != nil {
		return nil, "", err
	}
	redis.SetLogger(clientLog{log})
	st := &quorumStore{}
	for _, o := range q.nodes {
		st.clients = append(st.clients, redis.NewClient(o))
	}
	if st.Store, err = redlock.New(st.clients, redlock.Config{Logger: log}); err != nil {
		return nil, "", errors.Join(err, st.closeClients())
	}
	return st, q.name, nil
}

// Close closes the store, and the clients.
func (s *quorumStore) Close() error { return errors.Join(s.Store.Close(), s.closeClients()) }

func (s *quorumStore) closeClients() (err error) {
	for _, c := range s.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}
