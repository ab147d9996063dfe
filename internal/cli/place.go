package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/go-singleton/singleton/store"
)

const (
	defaultStore = "redis://127.0.0.1:6379"
	memoryStore  = "memory:"
)

// place is where a store is, and who said so. It is the value of a flag.
type place struct {
	url  string // may hold a password
	from string // flag or variable, for errors
}

func (p *place) String() string { return "" } // may hold a password
func (p *place) Type() string   { return "URL" }
func (p *place) Set(text string) error {
	p.url, p.from = text, "--store"
	return nil
}

// choose applies the order: flag (or SINGLETON_STORE, which sets it), REDIS_URL, a Redis on this machine.
func (a *app) choose(flag place) place {
	if flag.url != "" {
		return flag
	}
	if u, ok := a.lookup("REDIS_URL"); ok && u != "" {
		return place{u, "REDIS_URL"}
	}
	return place{defaultStore, "the default"}
}

// storeError is what a store, or the way to it, has said, in words for people.
type storeError struct {
	text string
	err  error
}

// Error returns the words.
func (e *storeError) Error() string { return e.text }

// Unwrap returns the error as it came.
func (e *storeError) Unwrap() error { return e.err }

// layers are the names that packages put in front of what a store has said: "scheduler: leader of g: redisstore: leader: ".
var layers = regexp.MustCompile(`^(?:(?:scheduler|election): [^:]+: )?(?:(?:(?:redis|zk|etcd)store|redlock): (?:[a-z]+: )?)?`)

// said is what a store has said, without those names and without the word for programs that it is permanent.
func said(err error) string {
	text := strings.ReplaceAll(layers.ReplaceAllString(err.Error(), ""), " ("+store.ErrPermanent.Error()+")", "")
	return strings.ReplaceAll(text, ".: ", ": ") // a server's sentence in the middle of ours
}

// explain says which store an error is of, who named it, and what to look at.
func (o *opened) explain(err error) error {
	which := fmt.Sprintf("the store %s (%s)", o.name, o.from)
	said := said(err)
	secure := ""
	scheme, _, _ := strings.Cut(o.name, "://")
	if scheme, _, _ = strings.Cut(scheme, "+"); scheme != "redis" && strings.HasSuffix(scheme, "s") { // rediss, zks, ...
		secure = ", does it speak TLS"
	}
	if scheme == "redis" && errors.Is(err, io.EOF) {
		secure = ", does it want TLS (rediss in place of redis)"
	}
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	network, isNetwork := errors.AsType[net.Error](err) // the first: what a client has met may stand before the end of its time
	text := which + ": " + said
	switch {
	case errors.Is(err, store.ErrPermanent):
		text = which + " cannot be used: " + said // and what to do
	case distrusted:
		text = fmt.Sprintf("%s cannot be trusted: %s; is it the right server, and the ca of the URL right?", which, untimed(said))
	case isNetwork && network.Timeout():
		text = fmt.Sprintf("%s does not answer in time; is it overloaded%s, or the network cut?", which, secure)
	case isNetwork, errors.Is(err, io.EOF):
		text = fmt.Sprintf("%s cannot be asked: %s; is it running%s, and the URL right?", which, untimed(said), secure)
	}
	return &storeError{text, err}
}

// untimed is an error's text without the end of the time, before which a client has met that error again and again.
func untimed(said string) string {
	return strings.TrimSuffix(said, ": "+context.DeadlineExceeded.Error())
}
