package scheduler

import (
	"github.com/go-singleton/singleton/store"
)

// stepChanges and stepBytes bound what one step (the claim of a tick, the end of an attempt) may need, so that a step is
// never split over two commits.
const (
	stepChanges = 8
	stepBytes   = 96 << 10
)

// batch gathers the changes of one commit: of two changes of one record the later counts.
type batch struct {
	changes []store.Change
	at      map[[2]string]int
	bytes   int
	hooks   []hook
}

func (b *batch) add(c store.Change) {
	key := [2]string{c.Bucket, c.Key}
	b.bytes += len(c.Bucket) + len(c.Key) + len(c.Value)
	if i, ok := b.at[key]; ok {
		old := b.changes[i]
		b.bytes -= len(old.Bucket) + len(old.Key) + len(old.Value)
		b.changes[i] = c
		return
	}
	if b.at == nil {
		b.at = make(map[[2]string]int)
	}
	b.at[key] = len(b.changes)
	b.changes = append(b.changes, c)
}

// full reports whether another step might not fit.
func (b *batch) full() bool {
	return len(b.changes)+stepChanges > store.MaxChanges || b.bytes+stepBytes > store.MaxBytes
}

func (b *batch) empty() bool { return len(b.changes) == 0 && len(b.hooks) == 0 }

// hook is what follows a commit.
type hook struct {
	done   func() // once the store has it
	failed func() // when the term has ended without an answer
}

func (b *batch) fail() {
	for _, h := range b.hooks {
		h.failed()
	}
	*b = batch{}
}
