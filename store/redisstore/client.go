package redisstore

import (
	"context"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
)

const (
	connections = redisclient.Connections
	ioTimeout   = redisclient.Timeout
	callTimeout = 3 * ioTimeout // for a whole call, whatever its context allows: a dial, a write, a read
)

// shared returns the options of a client of one server among those of a client of several: the fields of the same name
// and type. Routing of reads to replicas is not among them.
func shared(from any) *redis.Options {
	o := &redis.Options{}
	to, fields := reflect.ValueOf(o).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if same := fields.FieldByName(field.Name); field.IsExported() && same.IsValid() && same.Type() == field.Type {
			to.Field(i).Set(same)
		}
	}
	return o
}

// answer is the outcome of a call.
type answer struct {
	got any
	err error
}

// call runs fn, in one of the slots where there are some, and returns when it does or, before that, when ctx ends: go-redis obeys the deadline of a context, not its
// cancellation. What fn does after that is nobody's; its outcome is not known.
func (s *Store) call(ctx context.Context, slots chan struct{}, fn func(context.Context, servers) (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	servers, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if slots != nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			s.calls.Done()
			return nil, ctx.Err()
		}
	}
	answered := make(chan answer, 1)
	go func() {
		defer s.calls.Done()
		got, err := fn(ctx, servers)
		if slots != nil {
			<-slots
		}
		answered <- answer{got, err}
	}()
	select {
	case a := <-answered:
		return a.got, a.err
	case <-ctx.Done():
		select {
		case a := <-answered: // both at once: an answer is worth more
			return a.got, a.err
		default:
			return nil, ctx.Err()
		}
	}
}
