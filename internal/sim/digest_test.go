package sim

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/store"
)

// callName is what the trace calls a call.
func (t *trace) callName(c line.Call) string {
	switch c.Op {
	case "commit":
		return "commit " + strconv.FormatUint(c.Number, 10) + " of " + t.term(c.Lease.Token)
	case "renew":
		return "renewal of " + t.term(c.Lease.Token)
	case "acquire", "release", "post", "join":
		return c.Op
	}
	return strings.TrimSpace(c.Op + " " + c.About)
}

// content is what a call brings to the store, in short.
func content(c line.Call) string {
	h := fnv.New64a()
	fmt.Fprint(h, c.About, c.Session, c.Candidate.TTL, c.Candidate.Session, c.Candidate.Start, c.Candidate.Floor)
	for _, change := range c.Changes {
		fmt.Fprint(h, change.Bucket, " ", change.Key, " ", change.Delete, " ")
		h.Write([]byte(steady(string(change.Value))))
	}
	h.Write([]byte(steady(string(c.Message))))
	return strconv.FormatUint(h.Sum64(), 36)
}

// digest says what a call was answered.
func (t *trace) digest(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	switch v := v.(type) {
	case store.Lease:
		return t.term(v.Token) + " for " + v.TTL.String()
	case store.Grant:
		return v.TTL.String()
	case time.Duration:
		return v.String()
	case store.Leader:
		return v.Replica + " in " + t.term(v.Token) + " for " + v.Remaining.String()
	case line.Position:
		return t.term(v.Token) + " commit " + strconv.FormatUint(v.Number, 10)
	case []store.Replica:
		var ids []string
		for _, r := range v {
			ids = append(ids, r.ID)
		}
		return strings.Join(ids, " ")
	case []store.Record:
		h := fnv.New64a()
		for _, r := range v {
			h.Write([]byte(r.Key))
			h.Write([]byte(steady(string(r.Value))))
		}
		return strconv.Itoa(len(v)) + " records [" + strconv.FormatUint(h.Sum64(), 36) + "]"
	}
	return "done"
}

var shorts sync.Map // of names of stacks

// short keeps the innermost functions of a stack, without their packages' paths.
func short(stack string) string {
	if s, known := shorts.Load(stack); known {
		return s.(string)
	}
	if !strings.Contains(stack, "singleton/") {
		return stack // no stack: what else is told of is not told of twice
	}
	var names []string
	for f := range strings.SplitSeq(stack, " ") {
		names = append(names, f[strings.LastIndexByte(f, '/')+1:])
	}
	s := strings.Join(names[:min(3, len(names))], " < ")
	shorts.Store(stack, s)
	return s
}
