package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-singleton/singleton/store"
)

const (
	wrongUser    = "the etcd servers refuse user and password: set those that they know"
	noUser       = "the etcd servers want a user: set a user and a password, or a client certificate that names one"
	noPermission = "the etcd user may not do this: grant its role readwrite on the prefix of the keys (etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX)"
	tooManyOps   = "the etcd servers take fewer than 101 operations in one transaction: raise their --max-txn-ops to 128, the default, or more"
	tooLarge     = "the etcd servers take requests of less than 512 KiB only: raise their --max-request-bytes to 1.5 MiB, the default, or more"
	leaseTooLong = "the etcd servers refuse leases of this length: ask for a shorter one"
	noSpace      = "the etcd servers have used up their quota: compact and defragment them, disarm the alarm (etcdctl alarm disarm), or raise --quota-backend-bytes"
	corrupt      = "the etcd servers have found their data corrupt: replace the member that differs, then disarm the alarm"
)

// permanent are the errors that no retry heals, and what to do.
var permanent = []struct {
	error
	remedy string
}{
	{rpctypes.ErrAuthFailed, wrongUser},
	{rpctypes.ErrUserEmpty, noUser},
	{rpctypes.ErrUserNotFound, wrongUser},
	{rpctypes.ErrPermissionDenied, noPermission},
	{rpctypes.ErrTooManyOps, tooManyOps},
	{rpctypes.ErrRequestTooLarge, tooLarge},
	{rpctypes.ErrLeaseTTLTooLarge, leaseTooLong},
}

// alarming are the errors that a person should hear of; the store is asked again.
var alarming = []struct {
	error
	remedy string
}{
	{rpctypes.ErrNoSpace, noSpace},
	{rpctypes.ErrCorrupt, corrupt},
}

// full tells whether the servers have refused to keep more.
func full(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

// coded is an error of grpc.
type coded interface {
	error
	GRPCStatus() *status.Status
}

// code returns grpc's code of an error, whichever layer of the client it comes from.
func code(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	if s, ok := errors.AsType[coded](err); ok {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}

// lame tells whether err says that an endpoint does not serve.
func lame(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Canceled:
		return true
	}
	return false
}

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
	if store.Definite(err) {
		return err
	}
	if s.ctx.Err() != nil { // it may have been done all the same
		return fmt.Errorf("etcdstore: %s: the store has been closed meanwhile: %w", method, err)
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", err, ended)
	}
	if code(err) == codes.Unavailable {
		err = &unreachable{err}
	}
	err = fmt.Errorf("etcdstore: %s: %w", method, err)
	known := rpctypes.Error(cause(err))
	for _, p := range permanent {
		if errors.Is(known, p.error) {
			return store.Permanent(p.remedy, err)
		}
	}
	for _, a := range alarming {
		if errors.Is(known, a.error) {
			s.spells.Alarm(ctx, s.log, method, err, a.remedy)
		}
	}
	return err
}

// unreachable is the error of a server that is not there. It is a net.Error, as grpc's own is not.
type unreachable struct{ error }

// Error returns what grpc tells without what it calls that.
func (u *unreachable) Error() string {
	if s, ok := errors.AsType[coded](u.error); ok {
		return s.GRPCStatus().Message()
	}
	return u.error.Error()
}

// Unwrap returns the error of the client.
func (u *unreachable) Unwrap() error { return u.error }

// Timeout implements net.Error.
func (u *unreachable) Timeout() bool { return false }

// Temporary implements net.Error.
func (u *unreachable) Temporary() bool { return true }

// cause is the error of the client that err wraps.
func cause(err error) error {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e
	}
	if s, ok := errors.AsType[coded](err); ok {
		return s.GRPCStatus().Err()
	}
	return err
}
