package etcdstore_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// guarded starts a server that wants users: root, one who may do what the documentation says, and one who may nothing.
func guarded(t *testing.T) (s *etcdtest.Server, root *clientv3.Client) {
	s = etcdtest.Start(t, "--bcrypt-cost", "4")
	open := admin(t, s.Addr())
	for _, user := range []string{"root", "leader", "powerless"} {
		_, err := open.RoleAdd(t.Context(), user)
		must(t, err)
		_, err = open.UserAdd(t.Context(), user, "s3cret")
		must(t, err)
		_, err = open.UserGrantRole(t.Context(), user, user)
		must(t, err)
	}
	allow(t, open)
	_, err := open.AuthEnable(t.Context())
	must(t, err)
	return s, adminAs(t, "root", "s3cret", s.Addr())
}

func allow(t *testing.T, root *clientv3.Client) {
	const prefix = "/p/singleton/"
	_, err := root.RoleGrantPermission(t.Context(), "leader", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
	must(t, err)
}

func TestB17PermanentErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	s, root := guarded(t)
	for _, c := range []struct{ name, user, password, remedy string }{
		{"no user", "", "", "want a user"},
		{"wrong password", "leader", "guess-w0rd", "refuse user and password"},
		{"unknown user", "nobody", "s3cret", "refuse user and password"},
		{"user who may nothing", "powerless", "s3cret", "grant-permission"},
	} {
		st := through(t, s.Addr(), etcdstore.Config{Prefix: "/p", User: c.user, Password: c.password})
		_, err1 := st.Acquire(short(t), "g", candidate("a", "n1"))
		_, err2 := st.Leader(short(t), "g")
		for _, err := range []error{err1, err2} {
			if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), c.remedy) || strings.Contains(err.Error(), "w0rd") {
				t.Errorf("%s: got %v", c.name, err)
			}
		}
	}
	// The user of the documentation, whose permission is taken away while it leads, and given back.
	st := through(t, s.Addr(), etcdstore.Config{Prefix: "/p", User: "leader", Password: "s3cret"})
	l := lead(t, st, "a", "n1")
	hints := watched(t, st, "g")
	<-hints
	must(t, st.Commit(short(t), l, 1, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}}))
	must(t, st.Post(short(t), "g", "1", nil))
	_, err := st.Renew(short(t), l)
	must(t, err)
	must(t, st.Release(short(t), l))
	<-hints
	l = lead(t, st, "a", "n2")
	_, err = root.RoleRevokePermission(t.Context(), "leader", "/p/singleton/", clientv3.GetPrefixRangeEnd("/p/singleton/"))
	must(t, err)
	if _, err := st.Renew(short(t), l); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "grant-permission") {
		t.Errorf("renewing without a permission: %v", err)
	}
	allow(t, root)
	if _, err := st.Renew(short(t), l); err != nil {
		t.Errorf("renewing with it again: %v", err)
	}
	// A server that has been started again knows no token that it has given.
	must(t, s.Restart())
	if _, err := tried(t, func(ctx context.Context) (store.Grant, error) { return st.Renew(ctx, l) }); err != nil {
		t.Errorf("renewing after a restart: %v", err)
	}
	// A watch that is not allowed disturbs none that is.
	elsewhere := watched(t, st, "g")
	<-elsewhere
}

func TestWatchesThatAreNotAllowedDisturbNoOther(t *testing.T) {
	t.Parallel()
	s, root := guarded(t)
	_, err := root.RoleRevokePermission(t.Context(), "leader", "/p/singleton/", clientv3.GetPrefixRangeEnd("/p/singleton/"))
	must(t, err)
	const mine = "/p/singleton/g/"
	_, err = root.RoleGrantPermission(t.Context(), "leader", mine, clientv3.GetPrefixRangeEnd(mine), clientv3.PermissionType(clientv3.PermReadWrite))
	must(t, err)
	st := through(t, s.Addr(), etcdstore.Config{Prefix: "/p", User: "leader", Password: "s3cret"})
	other, hints := watched(t, st, "other"), watched(t, st, "g")
	<-hints
	must(t, st.Release(short(t), lead(t, st, "a", "n1")))
	<-hints
	if len(other) > 0 {
		t.Error("a watch stands that is not allowed")
	}
	allow(t, root)
	<-other
}

// TestAFullDatabaseIsReportedOnceAndCostsNoLease: what is full refuses what is to be kept, not renewals.
func TestAFullDatabaseIsReportedOnceAndCostsNoLease(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t, "--quota-backend-bytes", "1000000")
	client := admin(t, s.Addr())
	log := &testlog.Log{}
	st := through(t, s.Addr(), etcdstore.Config{Logger: log.Logger(slog.LevelInfo)})
	l := lead(t, st, "a", "n1")
	must(t, st.Commit(short(t), l, 1, nil))
	join := func(ttl time.Duration) (granted time.Duration) {
		granted, err := st.Join(short(t), "g", store.Replica{ID: "b"}, ttl, true)
		must(t, err)
		return granted
	}
	join(time.Hour)
	for n := 0; ; n++ {
		if _, err := client.Put(t.Context(), fmt.Sprint("fill", n), strings.Repeat("x", 100_000)); err != nil {
			break
		}
	}
	until(t, "the alarm", func() bool { return st.Commit(short(t), l, 2, nil) != nil })
	for range 3 {
		err := st.Commit(short(t), l, 2, nil)
		if err == nil || store.Definite(err) || !strings.Contains(err.Error(), "space exceeded") {
			t.Errorf("committing: %v", err)
		}
		if _, err := st.Renew(short(t), l); err != nil {
			t.Errorf("renewing: %v", err)
		}
	}
	// The etcd lease that is there is what a session can have.
	for _, ttl := range []time.Duration{time.Minute, time.Hour, 2 * time.Hour} {
		if granted := join(ttl); granted != time.Hour {
			t.Errorf("a session refreshed for %v goes on for %v", ttl, granted)
		}
	}
	if n := strings.Count(log.String(), "alarm disarm"); n != 1 || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("the remedy was logged %d times:\n%s", n, log)
	}
	now, err := client.Delete(t.Context(), "fill", clientv3.WithPrefix())
	must(t, err)
	_, err = client.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	must(t, err)
	_, err = client.Defragment(t.Context(), s.Addr())
	must(t, err)
	_, err = client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	must(t, err)
	must(t, st.Commit(short(t), l, 2, nil))
}

// TestAUserThatTheServersComeToKnowMayCall: what they said of user and password before is not the last word.
func TestAUserThatTheServersComeToKnowMayCall(t *testing.T) {
	t.Parallel()
	s, root := guarded(t)
	st := through(t, s.Addr(), etcdstore.Config{Prefix: "/p", User: "leader", Password: "another"})
	for range 2 {
		if _, err := st.Leader(short(t), "g"); !errors.Is(err, store.ErrPermanent) {
			t.Errorf("with a wrong password: %v", err)
		}
	}
	_, err := root.UserChangePassword(t.Context(), "leader", "another")
	must(t, err)
	lead(t, st, "a", "n1")
}

// TestAWatchStandsAfterTheTokenOfItsStreamHasEnded: tokens end when they were not used for a while, and with a change of the
// password.
func TestAWatchStandsAfterTheTokenOfItsStreamHasEnded(t *testing.T) {
	t.Parallel()
	s, root := guarded(t)
	st := through(t, s.Addr(), etcdstore.Config{Prefix: "/p", User: "leader", Password: "s3cret"})
	hints := watched(t, st, "g")
	<-hints
	_, err := root.UserChangePassword(t.Context(), "leader", "s3cret")
	must(t, err)
	select {
	case <-watched(t, st, "other"):
	case <-short(t).Done():
		t.Error("a watch does not stand")
	}
	<-hints // over the new stream
	must(t, st.Release(short(t), lead(t, st, "a", "n1")))
	<-hints
}

func TestAServerThatTakesFewerOperationsIsNamed(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t, "--max-txn-ops", "100", "--max-request-bytes", "100000")
	st := through(t, s.Addr(), etcdstore.Config{})
	l := lead(t, st, "a", "n1")
	var changes []store.Change
	for i := range store.MaxChanges {
		changes = append(changes, store.Change{Bucket: "job", Key: fmt.Sprint(i)})
	}
	if err := st.Commit(short(t), l, 1, changes); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "--max-txn-ops") {
		t.Errorf("100 changes: %v", err)
	}
	must(t, st.Commit(short(t), l, 1, changes[1:]))
	for i := range changes[:3] {
		changes[i].Value = make([]byte, store.MaxValue)
	}
	if err := st.Commit(short(t), l, 2, changes[:3]); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "--max-request-bytes") {
		t.Errorf("192 KiB: %v", err)
	}
}

func TestB57AServerThatHasLostItsDataIsANewOne(t *testing.T) {
	t.Parallel()
	lost := etcdtest.Start(t)
	s := through(t, lost.Addr(), etcdstore.Config{Prefix: "/a/b"})
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
	if next := lead(t, s, "b", "n2"); next.Token <= l.Token { // its clock alone makes it higher
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

func TestErrorsSayWhichServersDoNotAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	s := through(t, addr, etcdstore.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), rivals.Patience)
	defer cancel()
	_, err = s.Leader(ctx, "g")
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), addr) || store.Definite(err) {
		t.Errorf("nobody listens: got %v", err)
	}
	l, err = net.Listen("tcp", "127.0.0.1:0") // accepts, and answers nothing
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	s = through(t, l.Addr().String(), etcdstore.Config{})
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = s.Leader(ctx, "g")
	if !errors.Is(err, context.DeadlineExceeded) || store.Definite(err) {
		t.Errorf("nobody answers: got %v", err)
	}
}

func TestAProblemOfTheConfigIsThePermanentErrorOfEachCall(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]etcdstore.Config{
		"no endpoint":        {},
		"not host":           {Endpoints: []string{"a:b:c"}},
		"host:port":          {Endpoints: []string{"http://h:2379"}},
		"prefix":             {Endpoints: []string{"h"}, Prefix: "/a//b"},
		"not a path":         {Endpoints: []string{"h"}, Prefix: "a b"},
		"without a password": {Endpoints: []string{"h"}, User: "a"},
		"without a user":     {Endpoints: []string{"h"}, Password: "s3cret"},
	} {
		s := etcdstore.New(c)
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

func TestSEC1TLSWithCertificatesThatAreKnown(t *testing.T) {
	t.Parallel()
	authority, err := redistest.NewAuthority(t.TempDir())
	must(t, err)
	certificate, key, err := authority.Issue("etcd")
	must(t, err)
	s := etcdtest.Start(t, "--cert-file", certificate, "--key-file", key, "--trusted-ca-file", authority.CA, "--client-cert-auth")
	known := authority.Client()
	for name, c := range map[string]struct {
		config *tls.Config
		works  bool
	}{
		"both": {known, true}, "no authority": {&tls.Config{Certificates: known.Certificates}, false},
		"no certificate": {&tls.Config{RootCAs: known.RootCAs}, false}, "plain": {nil, false},
	} {
		st := through(t, s.Addr(), etcdstore.Config{TLS: c.config})
		_, err := st.Leader(short(t), "g")
		if works := errors.Is(err, store.ErrNoLeader); works != c.works || !c.works && store.Definite(err) {
			t.Errorf("%s: got %v", name, err)
		}
		if c.works {
			<-watched(t, st, "g")
		}
	}
	c, _, err := etcdstore.ParseURL("etcds://" + s.Addr() + "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key)
	must(t, err)
	if _, err := open(t, c).Leader(short(t), "g"); !errors.Is(err, store.ErrNoLeader) {
		t.Errorf("by URL: %v", err)
	}
}

// TestAForeignKeyIsNamed: another program, or a later version, has written there.
func TestAForeignKeyIsNamed(t *testing.T) {
	t.Parallel()
	client := admin(t, server.Addr())
	s := open(t, etcdstore.Config{Prefix: prefixOf(t)})
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, nil))
	group := prefixOf(t) + "/singleton/g"
	for key, value := range map[string]string{"/lease": "1 2 a n1 x", "/fence": "2 1", "/ledger": "x", "/sessions/b": "1 x\n"} {
		before, err := client.Get(t.Context(), group+key)
		must(t, err)
		_, err = client.Put(t.Context(), group+key, value)
		must(t, err)
		_, err1 := s.Acquire(short(t), "g", candidate("b", "n2"))
		_, _, err2 := s.Position(short(t), "g")
		_, err3 := s.Replicas(short(t), "g")
		if err := errors.Join(err1, err2, err3); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), group+key) {
			t.Errorf("%s: got %v", key, err)
		}
		if len(before.Kvs) == 0 {
			_, err = client.Delete(t.Context(), group+key)
		} else {
			_, err = client.Put(t.Context(), group+key, string(before.Kvs[0].Value), clientv3.WithLease(clientv3.LeaseID(before.Kvs[0].Lease)))
		}
		must(t, err)
	}
}
