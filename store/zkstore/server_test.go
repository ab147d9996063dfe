package zkstore_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

func TestB17PermissionsAreForTheUserAlone(t *testing.T) {
	c := zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout, User: "leader", Password: "s3cret"}
	s := open(t, c)
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}}))
	must(t, s.Post(short(t), "g", "1", nil))
	conn := admin(t, server.Addr())
	for _, path := range []string{"/lease", "/fence", "/ledger", "/ledger/job", "/ledger/job/k", "/inbox/1", "/sessions/a"} {
		if _, _, err := conn.Get(chrootOf(t) + "/singleton/g" + path); err != zk.ErrNoAuth {
			t.Errorf("anybody reads %s: %v", path, err)
		}
	}
	for _, wrong := range []zkstore.Config{{}, {User: "leader", Password: "other"}} {
		wrong.Chroot, wrong.SessionTimeout = c.Chroot, timeout
		other := open(t, wrong)
		_, err := other.Acquire(short(t), "g", candidate("b", "n2"))
		if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "set the user and password") || strings.Contains(err.Error(), "other") {
			t.Errorf("as %q: %v", wrong.User, err)
		}
	}
	// After a loss of the session the user is known again.
	proxy := netproxy.Start(t, server.Addr())
	again := c
	again.Servers = []string{proxy.Addr()}
	other := open(t, again)
	if leads(t, other) != "a" {
		t.Error("nobody leads")
	}
	proxy.Requests.Drop()
	proxy.Replies.Drop()
	ctx, cancel := context.WithTimeout(t.Context(), timeout+time.Second)
	defer cancel()
	_, err := other.Leader(ctx, "g")
	if err == nil || errors.Is(err, store.ErrPermanent) {
		t.Errorf("without a connection: %v", err)
	}
	proxy.Requests.Pass()
	proxy.Replies.Pass()
	if l, err := tried(t, func(ctx context.Context) (store.Leader, error) { return other.Leader(ctx, "g") }); err != nil || l.Replica != "a" {
		t.Errorf("%v, %v", l, err)
	}
}

func TestB57AServerThatHasLostItsDataIsANewOne(t *testing.T) {
	lost := zktest.Start(t)
	s := through(t, lost.Addr(), zkstore.Config{Chroot: "/a/b", SessionTimeout: timeout})
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, nil))
	must(t, lost.Restart())
	if _, err := tried(t, func(ctx context.Context) (store.Grant, error) { return s.Renew(ctx, l) }); err != nil {
		t.Errorf("renewing after a restart: %v", err)
	}
	must(t, lost.RestartEmpty())
	if _, err := tried(t, func(ctx context.Context) (store.Grant, error) { return s.Renew(ctx, l) }); !errors.Is(err, store.ErrLost) {
		t.Errorf("renewing after the loss: %v", err)
	}
	if token, number, err := s.Position(short(t), "g"); token+number != 0 || err != nil {
		t.Errorf("position %d %d, %v", token, number, err)
	}
	c := candidate("b", "n2")
	c.Floor = l.Token
	next, err := s.Acquire(short(t), "g", c)
	if must(t, err); next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

func TestErrorsSayWhichServersDoNotAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	s := through(t, addr, zkstore.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = s.Leader(ctx, "g")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), addr) || errors.Is(err, store.ErrPermanent) {
		t.Errorf("got %v", err)
	}
}

func TestAProblemOfTheConfigIsThePermanentErrorOfEachCall(t *testing.T) {
	for want, c := range map[string]zkstore.Config{
		"no server":       {},
		"not host":        {Servers: []string{"a:b:c"}},
		"chroot":          {Servers: []string{"h"}, Chroot: "/a//b"},
		"not a path":      {Servers: []string{"h"}, Chroot: "a"},
		"session timeout": {Servers: []string{"h"}, SessionTimeout: time.Millisecond},
		"36h":             {Servers: []string{"h"}, SessionTimeout: 37 * time.Hour},
		"colon":           {Servers: []string{"h"}, User: "a:b"},
		"user is empty":   {Servers: []string{"h"}, Password: "s3cret"},
	} {
		s := zkstore.New(c)
		_, err := s.Leader(t.Context(), "g")
		if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", want, err)
		}
		if err := s.Watch(t.Context(), "g", store.LeaseFree, func() {}); !errors.Is(err, store.ErrPermanent) {
			t.Errorf("%s: Watch: %v", want, err)
		}
		must(t, s.Close())
	}
}

func TestSEC1TLSWithAnAuthorityThatIsKnown(t *testing.T) {
	authority, err := redistest.NewAuthority(t.TempDir())
	must(t, err)
	certificate, key, err := authority.Issue("zookeeper")
	must(t, err)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	must(t, err)
	ours := &tls.Config{Certificates: []tls.Certificate{pair}}
	for name, c := range map[string]struct {
		config *tls.Config
		works  bool
	}{"known": {authority.Client(), true}, "not known": {&tls.Config{}, false}} {
		s := through(t, terminate(t, ours, server.Addr()), zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout, TLS: c.config})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Leader(ctx, "g")
		if works := errors.Is(err, store.ErrNoLeader); works != c.works {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// terminate speaks TLS with clients and hands on what they say.
func terminate(t *testing.T, c *tls.Config, target string) (addr string) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				wg.Go(func() { _, _ = io.Copy(client, server); client.Close() })
				_, _ = io.Copy(server, client)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// TestAForeignZnodeIsNamed: another program, or a later version, has written there.
func TestAForeignZnodeIsNamed(t *testing.T) {
	conn := admin(t, server.Addr())
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, []store.Change{{Bucket: "job", Key: "k"}}))
	group := chrootOf(t) + "/singleton/g"
	for path, data := range map[string]string{"/lease": "1 2 a n1", "/fence": "2 1", "/ledger": "x"} {
		before, _, err := conn.Get(group + path)
		must(t, err)
		_, err = conn.Set(group+path, []byte(data), -1)
		must(t, err)
		_, err1 := s.Acquire(short(t), "g", candidate("b", "n2"))
		_, _, err2 := s.Position(short(t), "g")
		if err := errors.Join(err1, err2); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), group+path) {
			t.Errorf("%s: got %v", path, err)
		}
		_, err = conn.Set(group+path, before, -1)
		must(t, err)
	}
	_, err := conn.Create(group+"/ledger/job/%zz", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	for _, err = range s.Read(short(t), "g", &l, "job") {
		break
	}
	if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "/ledger/job") {
		t.Errorf("reading: %v", err)
	}
}

// TestALeaseThatWouldNeverEndIsNamed: a znode that a backup has brought back, or a person, belongs to no session.
func TestALeaseThatWouldNeverEndIsNamed(t *testing.T) {
	conn := admin(t, server.Addr())
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
	must(t, s.Release(short(t), lead(t, s, "a", "n1")))
	path := chrootOf(t) + "/singleton/g/lease"
	_, err := conn.Create(path, []byte("1 5 b n2 1000"), 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	_, err1 := s.Acquire(short(t), "g", candidate("a", "n3"))
	_, err2 := s.Leader(short(t), "g")
	for _, err := range []error{err1, err2} {
		if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
	must(t, conn.Delete(path, -1))
	lead(t, s, "a", "n3")
}

// TestALedgerThatWasDeletedIsBegunAnew: the leader that had it is told of the gap, and the next term commits.
func TestALedgerThatWasDeletedIsBegunAnew(t *testing.T) {
	conn := admin(t, server.Addr())
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: time.Hour})
	ledger := chrootOf(t) + "/singleton/g/ledger"
	changes := []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}}
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, changes))
	for _, path := range []string{"/job/k", "/job", ""} {
		must(t, conn.Delete(ledger+path, -1))
	}
	if err := s.Commit(short(t), l, 2, changes); !errors.Is(err, store.ErrGap) {
		t.Errorf("the next commit: %v", err)
	}
	must(t, s.Release(short(t), l))
	must(t, s.Commit(short(t), lead(t, s, "a", "n2"), 1, changes))
}

// TestWhatDoesNotFitIsRefusedBeforeItIsSent: keys that grow threefold in a path still fit.
func TestWhatDoesNotFitIsRefusedBeforeItIsSent(t *testing.T) {
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
	l := lead(t, s, "a", "n1")
	var changes []store.Change
	left := store.MaxBytes
	for i := range store.MaxChanges {
		key := strings.Repeat("/", 500) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		left -= len(key) + len("job")
		changes = append(changes, store.Change{Bucket: "job", Key: key})
	}
	for i := range changes {
		n := min(left, store.MaxValue)
		changes[i].Value = make([]byte, n)
		left -= n
	}
	must(t, s.Commit(short(t), l, 1, changes))
	n := 0
	for r, err := range s.Read(short(t), "g", &l, "job") {
		must(t, err)
		if r.Key[0] != '/' {
			t.Errorf("key %q", r.Key)
		}
		n++
	}
	if n != store.MaxChanges {
		t.Errorf("%d records", n)
	}
}
