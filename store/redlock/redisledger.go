package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-singleton/singleton/store"
)

// asked returns what a script is told about a lease that is only asked about.
func asked(l *store.Lease) []any {
	if l == nil {
		return []any{"", "", ""}
	}
	return []any{token(*l), l.Replica, l.Nonce}
}

// text is a head as servers keep it.
func (h head) text() string {
	return fmt.Sprintf("%d %d %d %d", h.At.Token, h.At.Number, h.Base.Token, h.Base.Number)
}

// reportFields is how many fields a report has.
const reportFields = stampFields + 3

func (n *redisNode) report(group string, r reply) (report, error) {
	s, err := r.stamp()
	if err != nil {
		return report{}, err
	}
	got := report{stamp: s, Marker: r.text(stampFields + 1), Held: r.text(stampFields+2) == "1"}
	h, text := &got.Head, r.text(stampFields)
	_, err = fmt.Sscanf(text, "%d %d %d %d", &h.At.Token, &h.At.Number, &h.Base.Token, &h.Base.Number)
	if err != nil || h.text() != text || max(h.At.Token, h.At.Number, h.Base.Token, h.Base.Number) > store.MaxToken {
		return report{}, n.foreign(n.key(group, "ledger"), errors.New("an impossible position"))
	}
	return got, nil
}

func (n *redisNode) head(ctx context.Context, group string, l *store.Lease) (report, error) {
	r, err := n.run(ctx, headScript, n.keys(group), asked(l)...)
	if err != nil {
		return report{}, err
	}
	return n.report(group, r)
}

// places gives each bucket of changes a number, from 1, as scripts count.
func places(changes []store.Change) (names []string, args []any) {
	numbers := map[string]int{}
	for _, c := range changes {
		if numbers[c.Bucket] == 0 {
			names = append(names, c.Bucket)
			numbers[c.Bucket] = len(names)
		}
		args = append(args, numbers[c.Bucket], c.Key, !c.Delete, c.Value)
	}
	return names, args
}

func (n *redisNode) write(ctx context.Context, w write) (written, error) {
	group := w.Lease.Group
	names, changes := places(w.Changes)
	var more []string
	args := append(asked(&w.Lease), w.From.text(), w.To.text(), len(names))
	for _, name := range names {
		more = append(more, n.bucketKey(group, name))
		args = append(args, name)
	}
	r, err := n.run(ctx, writeScript, n.keys(group, more...), append(args, changes...)...)
	return n.written(group, r, err)
}

func (n *redisNode) written(group string, r reply, err error) (written, error) {
	if err != nil {
		return written{}, err
	}
	got, err := n.report(group, r)
	if err != nil {
		return written{}, err
	}
	effects := map[string]effect{"done": writeDone, "lost": writeLost, "behind": writeBehind, "nothing": writeNothing}
	if effects[r.word] == 0 {
		return written{}, errStrange
	}
	return written{got, effects[r.word]}, nil
}

func (n *redisNode) stage(ctx context.Context, group, transfer string, step int, changes []store.Change) error {
	names, list := places(changes)
	more := []string{n.stagedKey(group, transfer, "")}
	args := []any{step, len(names)}
	for _, name := range names {
		more = append(more, n.stagedKey(group, transfer, name))
		args = append(args, name)
	}
	r, err := n.run(ctx, stageScript, n.keys(group, more...), append(args, list...)...)
	if err == nil && r.word != "ok" {
		err = errors.New("what was put aside has been forgotten")
	}
	return err
}

func (n *redisNode) install(ctx context.Context, l store.Lease, transfer string, to head) (written, error) {
	list := n.stagedKey(l.Group, transfer, "")
	args := append(asked(&l), to.text(), n.key(l.Group, "r:"), list+":")
	r, err := n.run(ctx, installScript, n.keys(l.Group, list), args...)
	return n.written(l.Group, r, err)
}

func (n *redisNode) vouch(ctx context.Context, group string) (report, error) {
	r, err := n.run(ctx, vouchScript, n.keys(group))
	if err != nil {
		return report{}, err
	}
	return n.report(group, r)
}

func (n *redisNode) buckets(ctx context.Context, group string) ([]string, report, error) {
	r, err := n.run(ctx, bucketsScript, n.keys(group))
	if err != nil {
		return nil, report{}, err
	}
	got, err := n.report(group, r)
	if err != nil {
		return nil, report{}, err
	}
	var names []string
	for _, v := range r.list(reportFields) {
		name, _ := v.(string)
		if err := store.CheckBucket(name); err != nil {
			return nil, report{}, n.foreign(n.key(group, "buckets"), err)
		}
		names = append(names, name)
	}
	return names, got, nil
}

func (n *redisNode) read(ctx context.Context, group string, l *store.Lease, bucket string, keys []string) (page, error) {
	args := append(asked(l), pageBytes, pageRecords)
	for _, k := range keys {
		args = append(args, k)
	}
	at := n.bucketKey(group, bucket)
	r, err := n.run(ctx, readScript, n.keys(group, at), args...)
	if err != nil {
		return page{}, err
	}
	p := page{}
	if p.report, err = n.report(group, r); err != nil {
		return page{}, err
	}
	for _, v := range r.list(reportFields) {
		key, _ := v.(string)
		if err := store.CheckKey(key); err != nil {
			return page{}, n.foreign(at, err)
		}
		p.Keys = append(p.Keys, key)
	}
	for _, v := range r.list(reportFields + 1) {
		text, there := v.(string)
		if !there {
			p.Values = append(p.Values, nil)
			continue
		}
		p.Values = append(p.Values, append([]byte{}, text...))
	}
	if len(p.Values) > len(p.Keys) {
		return page{}, errStrange
	}
	return p, nil
}

func (n *redisNode) post(ctx context.Context, group, id string, message []byte) (bool, error) {
	r, err := n.run(ctx, postScript, n.keys(group), id, message, store.MaxInbox, n.channel(group, store.InboxFilled))
	return r.word == "full", err
}

func (n *redisNode) deliver(ctx context.Context, group string, messages []store.Record) error {
	args := make([]any, 0, 2*len(messages))
	for _, m := range messages {
		args = append(args, m.Key, m.Value)
	}
	_, err := n.run(ctx, deliverScript, n.keys(group), args...)
	return err
}
