package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestB7Names(t *testing.T) {
	for _, name := range []string{"a", "A", "0", "a.b", "a-b", "a_b", "worker-10", "a...", strings.Repeat("a", 128)} {
		if err := store.CheckName("group", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "-a", "_a", "a b", "a\n", "\na", "a/b", "a:b", "{a}", "a*", "ä", "a\x00", "a\xff", strings.Repeat("a", 129)} {
		err := store.CheckName("group", name)
		if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "group") {
			t.Errorf("%q: %v", name, err)
		}
	}
	long := store.CheckName("group", strings.Repeat("ä", 1<<20))
	if n := len(long.Error()); n > 2000 {
		t.Errorf("the error about a long name has %d bytes", n)
	}
}

func TestBuckets(t *testing.T) {
	for _, bucket := range []string{"job", "run", "seen", "inbox", "history/report", "history/a.b-c_d"} {
		if err := store.CheckBucket(bucket); err != nil {
			t.Errorf("%q: %v", bucket, err)
		}
	}
	for _, bucket := range []string{"", "/", "/a", "Job", "job/", "job/a/b", "job:a", "job1", "job a", "ä", strings.Repeat("j", 33)} {
		if err := store.CheckBucket(bucket); !errors.Is(err, store.ErrPermanent) {
			t.Errorf("%q: %v", bucket, err)
		}
	}
}

func TestChecksOfWholeArguments(t *testing.T) {
	l := store.Lease{Group: "g", Replica: "a", Nonce: "n", Token: 1, Grant: store.Grant{TTL: time.Second}}
	foreign := store.Lease{Group: "h", Replica: "a", Nonce: "n"}
	change := store.Change{Bucket: "job", Key: "k"}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"a lease", store.CheckLease(l), nil},
		{"a renewal", store.CheckRenewal(l), nil},
		{"a renewal of no duration", store.CheckRenewal(foreign), store.ErrPermanent},
		{"a lease of no replica", store.CheckLease(store.Lease{Group: "g", Nonce: "n"}), store.ErrPermanent},
		{"a commit", store.CheckCommit(l, 1, []store.Change{change, {Bucket: "run", Key: "k"}}), nil},
		{"a commit of number 0", store.CheckCommit(l, 0, nil), store.ErrPermanent},
		{"a commit of a number that no script holds", store.CheckCommit(l, store.MaxToken+1, nil), store.ErrPermanent},
		{"a commit that names a record twice", store.CheckCommit(l, 1, []store.Change{change, change}), store.ErrPermanent},
		{"a commit of too many changes", store.CheckCommit(l, 1, make([]store.Change, store.MaxChanges+1)), store.ErrTooLarge},
		{"a removal with a value", store.CheckCommit(l, 1, []store.Change{{Bucket: "job", Key: "k", Value: make([]byte, store.MaxBytes), Delete: true}}), nil},
		{"a read", store.CheckRead("g", nil, "job"), nil},
		{"a read under a lease", store.CheckRead("g", &l, "job"), nil},
		{"a read under a lease of another group", store.CheckRead("g", &foreign, "job"), store.ErrPermanent},
		{"a watch", store.CheckWatch("g", store.InboxFilled), nil},
		{"a watch of nothing", store.CheckWatch("g", 0), store.ErrPermanent},
		{"a message", store.CheckMessage("g", "018f-1", make([]byte, store.MaxValue)), nil},
		{"a message too long", store.CheckMessage("g", "018f-1", make([]byte, store.MaxValue+1)), store.ErrTooLarge},
		{"a session", store.CheckSession("g", store.Replica{ID: "a"}, store.MaxDuration), nil},
		{"a session too long", store.CheckSession("g", store.Replica{ID: "a"}, store.MaxDuration+1), store.ErrPermanent},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
}

func TestSEC7ErrorsAndLeasesNameNoNonce(t *testing.T) {
	l := store.Lease{Group: "g", Replica: "a", Nonce: "canary with blanks", Token: 7}
	for _, text := range []string{fmt.Sprint(store.CheckLease(l)), l.String(), fmt.Sprintf("%v %+v %s", l, l, l)} {
		if strings.Contains(text, "canary") {
			t.Errorf("the nonce is in %s", text)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	cause := errors.New("cause")
	err := store.Permanent("do this", cause)
	if !errors.Is(err, store.ErrPermanent) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "do this") {
		t.Error(err)
	}
	if err := store.Permanent("do this", nil); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "do this") {
		t.Error(err)
	}
	held := &store.HeldError{Leader: store.Leader{Replica: "a", Token: 7, Remaining: time.Second}}
	if got, want := held.Error(), "store: lease is held by a for at most 1s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
